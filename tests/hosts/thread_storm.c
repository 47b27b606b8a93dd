/* SPDX-License-Identifier: MIT */
/* Thousands of short threads, joined and detached, with thread-specific data whose destructors run,
 * and results that arrive. */
#include "host.h"

static pthread_key_t key;
static atomic_int destroyed, detached;

static void destroy(void *value)
{
    atomic_fetch_add(&destroyed, 1);
    free(value);
}

static void *brief(void *argument)
{
    pthread_setspecific(key, malloc(16));
    host_burn_us(100);
    return (char *)argument + 1;
}

static void *brief_detached(void *unused)
{
    host_burn_us(100);
    atomic_fetch_add(&detached, 1);
    return unused;
}

int main(void)
{
    enum { ROUNDS = 120, AT_ONCE = 10 };
    pthread_attr_t attributes;
    char base[AT_ONCE];
    pthread_key_create(&key, destroy);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[AT_ONCE], gone;
        for (int i = 0; i < AT_ONCE; i++)
            HOST_CHECK(pthread_create(&threads[i], NULL, brief, &base[i]) == 0, "create");
        HOST_CHECK(pthread_create(&gone, &attributes, brief_detached, NULL) == 0, "detached");
        for (int i = 0; i < AT_ONCE; i++) {
            void *result = NULL;
            pthread_join(threads[i], &result);
            HOST_CHECK(result == &base[i] + 1, "result");
        }
    }
    for (int i = 0; i < 3000 && atomic_load(&detached) < ROUNDS; i++)
        usleep(1000);
    HOST_CHECK(detached == ROUNDS, "%d detached threads", detached);
    HOST_CHECK(destroyed == ROUNDS * AT_ONCE, "%d destructors", destroyed);
    return host_end();
}
