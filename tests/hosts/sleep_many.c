/* SPDX-License-Identifier: MIT */
/* A million sleeping calls under the default clock: not one EINTR. */
#include "host.h"

#include <poll.h>

static void *sleep_on(void *count)
{
    struct timespec time = { 0, 1000 };
    long cut = 0;
    for (long i = 0; i < (long)(intptr_t)count; i++) {
        cut += nanosleep(&time, NULL) != 0;
        cut += ppoll(NULL, 0, &time, NULL) != 0;
    }
    return (void *)cut;
}

int main(void)
{
    enum { THREADS = 16, EACH = 31250 };
    pthread_t threads[THREADS];
    long cut = 0;
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, sleep_on, (void *)EACH);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        cut += (long)result;
    }
    HOST_CHECK(cut == 0, "%ld of a million calls were cut short", cut);
    return host_end();
}
