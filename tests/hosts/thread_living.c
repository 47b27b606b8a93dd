/* SPDX-License-Identifier: MIT */
/* Five thousand threads living at once, each of which burns a little, waits for all, burns again. */
#include "host.h"

static pthread_barrier_t barrier;
static atomic_int done;

static void *live(void *unused)
{
    host_burn_us(100);
    pthread_barrier_wait(&barrier);
    host_burn_us(100);
    atomic_fetch_add(&done, 1);
    return unused;
}

int main(void)
{
    enum { THREADS = 5000 };
    static pthread_t threads[THREADS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 65536);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], &attributes, live, NULL) != 0) {
            printf("no %d threads here\n", THREADS);
            return 77;
        }
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    HOST_CHECK(done == THREADS, "%d threads", done);
    return host_end();
}
