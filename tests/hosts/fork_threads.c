/* SPDX-License-Identifier: MIT */
/* Forks out of a program whose other threads allocate, create threads and are sampled all the time:
 * the children allocate, make threads of their own and end; nothing deadlocks. */
#include "host.h"

#include <unistd.h>

static atomic_int stop, forks_seen;

static void *allocate(void *unused)
{
    void *kept[64] = { 0 };
    unsigned seed = 1;
    (void)unused;
    while (!atomic_load(&stop)) {
        seed = seed * 1664525u + 1013904223u;
        free(kept[seed >> 26]);
        kept[seed >> 26] = malloc((seed >> 8) % 5000);
    }
    for (int i = 0; i < 64; i++)
        free(kept[i]);
    return NULL;
}

static void *create(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, host_burn_thread, (void *)300) == 0)
            pthread_join(thread, NULL);
    }
    return NULL;
}

static void count_fork(void) { atomic_fetch_add(&forks_seen, 1); }

int main(void)
{
    pthread_t threads[3];
    pthread_atfork(count_fork, NULL, count_fork);
    pthread_create(&threads[0], NULL, allocate, NULL);
    pthread_create(&threads[1], NULL, allocate, NULL);
    pthread_create(&threads[2], NULL, create, NULL);
    for (int i = 0; i < 60; i++) {
        pid_t pid = i % 3 == 2 ? _Fork() : fork();
        if (pid == 0) {
            alarm(5);
            if (i % 3 != 2) {
                pthread_t thread;
                free(malloc(100000));
                pthread_create(&thread, NULL, host_burn_thread, (void *)2000);
                host_burn_us(2000);
                pthread_join(thread, NULL);
            }
            if (i % 2)
                _exit(i % 3 != 2 && forks_seen == 0 ? 1 : 31);
            i % 3 == 2 ? _exit(31) : exit(31);
        }
        host_expect_exit("child", pid, 31);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    HOST_CHECK(forks_seen == 40, "atfork ran %d times", forks_seen);
    return host_end();
}
