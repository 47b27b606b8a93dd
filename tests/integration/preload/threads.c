/* SPDX-License-Identifier: MIT */
/* Host: threads. usage: threads short N MIN_US MAX_US | living N | exits SECONDS | outlives SECONDS
 * short: N threads, two at a time, each burns a time between the two; living: N threads that all live
 * at once and burn a little; exits: threads that end as fast as they are made; outlives: the first
 * thread ends, another loads a library then and burns there. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_barrier_t barrier;
static volatile unsigned long sink;

static long cpu_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void burn(long us)
{
    long end = cpu_us(CLOCK_THREAD_CPUTIME_ID) + us;
    while (cpu_us(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 1000; i++)
            sink++;
}

static void *burn_some(void *us)
{
    burn((long)us);
    return NULL;
}

static void *wait_and_burn(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    burn(200);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void *end_at_once(void *how)
{
    if (how)
        pthread_exit(NULL);
    return NULL;
}

static int run_short(int count, long least, long most)
{
    for (int i = 0; i < count; i += 2) {
        pthread_t pair[2];
        for (int k = 0; k < 2; k++)
            if (pthread_create(&pair[k], NULL, burn_some, (void *)(least + (i * (37L + 54 * k)) % (most - least + 1))))
                return 1;
        pthread_join(pair[0], NULL);
        pthread_join(pair[1], NULL);
    }
    return 0;
}

static int run_living(int count)
{
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    pthread_attr_t attr;
    int made = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 * 1024);
    pthread_barrier_init(&barrier, NULL, (unsigned)count + 1);
    for (; made < count; made++)
        if (pthread_create(&threads[made], &attr, wait_and_burn, NULL)) {
            printf("only %d threads can be had\n", made);
            exit(77);
        }
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    while (made)
        pthread_join(threads[--made], NULL);
    return 0;
}

static int run_exits(double seconds)
{
    long end = cpu_us(CLOCK_MONOTONIC) + (long)(seconds * 1e6);
    while (cpu_us(CLOCK_MONOTONIC) < end) {
        pthread_t threads[8];
        for (long i = 0; i < 8; i++)
            if (pthread_create(&threads[i], NULL, end_at_once, (void *)(i % 2)))
                return 1;
        for (int i = 0; i < 8; i++)
            pthread_join(threads[i], NULL);
    }
    return 0;
}

static void *outlive(void *us)
{
    burn(1000); /* the first thread is gone by now or soon */
    void *library = dlopen("libm.so.6", RTLD_NOW);
    double (*lgamma_there)(double) = NULL;
    void *symbol = library ? dlsym(library, "lgamma") : NULL;
    memcpy(&lgamma_there, &symbol, sizeof symbol);
    volatile double sum = 0;
    long end = cpu_us(CLOCK_THREAD_CPUTIME_ID) + (long)us;
    while (lgamma_there && cpu_us(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 1000; i++)
            sum += lgamma_there(i + 0.5);
    exit(lgamma_there ? 17 : 1);
}

int main(int argc, char **argv)
{
    pthread_t thread;
    if (argc == 3 && !strcmp(argv[1], "outlives") &&
        pthread_create(&thread, NULL, outlive, (void *)(long)(atof(argv[2]) * 1e6)) == 0)
        pthread_exit(NULL);
    if (argc == 5 && !strcmp(argv[1], "short"))
        return run_short(atoi(argv[2]), atol(argv[3]), atol(argv[4]));
    if (argc == 3 && !strcmp(argv[1], "living"))
        return run_living(atoi(argv[2]));
    if (argc == 3 && !strcmp(argv[1], "exits"))
        return run_exits(atof(argv[2]));
    return 2;
}
