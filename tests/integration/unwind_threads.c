/* SPDX-License-Identifier: MIT */
/* Threads walk their stacks through a library that another thread loads and unloads all the time,
 * forgetting every rule each time. Every walk must be whole, or say that the gate was closed.
 *
 * usage: unwind_threads MILLISECONDS
 * Prints the walks, those that found the gate closed, and how often the library came and went. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#include "walk.h"

enum { THREADS = 4, MAX = 256, DEPTH = 20 };

static atomic_int stopping;
static atomic_ulong walks, closed, broken, loads;

struct walker {
    struct lapse_stack_bounds bounds;
    uint64_t pcs[MAX];
    struct lapse_walk walk;
};
static __thread struct walker walker;

__attribute__((noinline)) static void walk_here(void)
{
    ucontext_t context;
    getcontext(&context);
    sigaltstack(NULL, &context.uc_stack);
    walker.walk = (struct lapse_walk){ .pcs = walker.pcs, .max = MAX, .stack = walker.bounds };
    lapse_walk(&walker.walk, &context);
    __asm__ volatile("" ::: "memory");
}

static int compare(const void *a, const void *b)
{
    walk_here();
    return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static void recurse(int depth)
{
    int values[2] = { 2, 1 };
    if (depth)
        recurse(depth - 1);
    else
        qsort(values, 2, sizeof *values, compare);
    __asm__ volatile("" ::: "memory");
}

static int frames_of(void *function)
{
    int covered, count = 0;
    uint64_t start = lapse_unwind_function((uintptr_t)function, &covered);
    for (uint32_t i = 0; i < walker.walk.depth; i++)
        count += lapse_unwind_function(walker.pcs[i] - (i > 0), &covered) == start;
    return count;
}

static void *run_walker(void *unused)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    walker.bounds = (struct lapse_stack_bounds){ (uintptr_t)low, (uintptr_t)low + size };
    while (!atomic_load(&stopping)) {
        recurse(DEPTH);
        atomic_fetch_add(&walks, 1);
        if (walker.walk.flags == LAPSE_WALK_GATE_CLOSED)
            atomic_fetch_add(&closed, 1);
        else if (walker.walk.flags || frames_of((void *)recurse) != DEPTH + 1)
            atomic_fetch_add(&broken, 1);
    }
    return unused;
}

static void *run_loader(void *name)
{
    while (!atomic_load(&stopping)) {
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            return NULL;
        dlclose(library);
        lapse_unwind_forget();
        atomic_fetch_add(&loads, 1);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    char error[128];
    pthread_t threads[THREADS + 1];
    long milliseconds = argc > 1 ? atol(argv[1]) : 1000;
    if (lapse_unwind_init(error, sizeof error)) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_walker, NULL);
    pthread_create(&threads[THREADS], NULL, run_loader, "libanl.so.1");
    struct timespec time = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
    nanosleep(&time, NULL);
    atomic_store(&stopping, 1);
    for (int i = 0; i <= THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("walks %lu, gate closed %lu, broken %lu, loads %lu\n", walks, closed, broken, loads);
    return broken || !walks || !loads;
}
