/* SPDX-License-Identifier: MIT */
/* lapse_intern from many threads at once: equal texts give one copy, every copy stays what it was.
 * usage: stress-intern SECONDS */
#include <lapse.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, TEXTS = 3000 };

static _Atomic(const char *) first[TEXTS];
static atomic_int failures, ending;
static atomic_ulong calls;

static void *intern(void *context)
{
    unsigned seed = (unsigned)(size_t)context;
    char text[64];
    while (!atomic_load_explicit(&ending, memory_order_relaxed)) {
        int number = rand_r(&seed) % TEXTS;
        snprintf(text, sizeof text, "text number %d", number);
        const char *copy = lapse_intern(text), *none = NULL;
        if (!copy || strcmp(copy, text))
            failures++;
        if (!atomic_compare_exchange_strong(&first[number], &none, copy) && none != copy)
            failures++;
        atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    struct timespec length = { argc > 1 ? atoi(argv[1]) : 1, 0 };
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, intern, (void *)(i + 1));
    nanosleep(&length, NULL);
    ending = 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%lu calls, %d failures\n", atomic_load(&calls), atomic_load(&failures));
    return failures != 0;
}
