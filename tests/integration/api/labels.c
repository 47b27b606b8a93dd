/* SPDX-License-Identifier: MIT */
/* A program with labels, spans, names and exclusions whose right answer it prints: CPU time of each
 * label by the thread's own clock, in ns. usage: labels OUT */
#include <lapse.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static volatile uint64_t sink;

__attribute__((noinline)) static uint64_t work(uint64_t ms)
{
    uint64_t start = cpu_ns(), end = start + ms * 1000000;
    while (cpu_ns() < end)
        for (int i = 0; i < 20000; i++)
            sink = sink * 6364136223846793005u + 1;
    return cpu_ns() - start;
}

struct totals { uint64_t alpha, beta, none; };

/* Requests in turn, some time outside any label, nests deeper than what is carried in between. Lengths
 * vary, so that they do not beat with the kernel's tick. */
static void *serve(void *context)
{
    struct totals *totals = context;
    lapse_thread_name("a server thread with a long name");
    const char *alpha = lapse_intern("alpha");
    unsigned seed = (unsigned)(uintptr_t)context;
    for (int i = 0; i < 50; i++) {
        lapse_label_push("request", alpha);
        lapse_span_begin("alpha span");
        totals->alpha += work(5 + (unsigned)rand_r(&seed) % 15);
        lapse_span_end();
        lapse_label_pop();
        for (int depth = 0; depth < 12; depth++)
            lapse_label_push(depth ? "depth" : "request", depth ? "inner" : "beta");
        totals->beta += work(1 + (unsigned)rand_r(&seed) % 11);
        for (int depth = 0; depth < 12; depth++)
            lapse_label_pop();
        totals->none += work(1 + (unsigned)rand_r(&seed) % 3);
    }
    return NULL;
}

__attribute__((noinline)) static void hidden_work(void)
{
    work(150);
    sink++;
}

static void *excluded(void *context)
{
    (void)context;
    lapse_thread_exclude();
    hidden_work();
    lapse_thread_include();
    lapse_thread_pause();
    hidden_work();
    lapse_thread_resume();
    return NULL;
}

int main(int argc, char **argv)
{
    struct lapse_options options = { .out = argc > 1 ? argv[1] : NULL, .hz = 250, .exports = LAPSE_EXPORT_FOLDED };
    struct totals totals[2] = { { 0 } };
    pthread_t threads[3];
    lapse_label_push("before", "the session");
    int error = lapse_start(&options);
    if (error) {
        fprintf(stderr, "lapse_start: %s\n", strerror(-error));
        return 1;
    }
    lapse_label_pop();
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, serve, &totals[i]);
    pthread_create(&threads[2], NULL, excluded, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    if ((error = lapse_stop())) {
        fprintf(stderr, "lapse_stop: %s\n", strerror(-error));
        return 1;
    }
    printf("alpha %llu\nbeta %llu\nnone %llu\n", (unsigned long long)(totals[0].alpha + totals[1].alpha),
           (unsigned long long)(totals[0].beta + totals[1].beta),
           (unsigned long long)(totals[0].none + totals[1].none));
    return 0;
}
