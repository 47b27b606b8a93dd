/* SPDX-License-Identifier: MIT */
/* The loader's lock and malloc's under sampling: one arena for all threads; one opens and closes a
 * library and runs its code, one walks the modules and allocates meanwhile, one takes backtraces,
 * others allocate. A profiler that takes one of these locks in its handler hangs here. */
#include "host.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <malloc.h>

static atomic_int stop;
static atomic_long opened, walked, traced, allocated;

static void *open_and_close(void *unused)
{
    while (!atomic_load(&stop)) {
        void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        double (*lgamma_there)(double) = NULL, sum = 0;
        void *symbol = library ? dlsym(library, "lgamma") : NULL;
        memcpy(&lgamma_there, &symbol, sizeof symbol);
        HOST_CHECK(lgamma_there, "dlopen or dlsym");
        for (int i = 1; lgamma_there && i < 3000; i++)
            sum += lgamma_there(1 + i * 0.37);
        HOST_CHECK(sum > 0 && dlclose(library) == 0, "dlclose");
        HOST_CHECK(dlopen("/nowhere.so", RTLD_NOW) == NULL && dlerror(), "dlerror");
        atomic_fetch_add(&opened, 1);
    }
    return unused;
}

static int visit(struct dl_phdr_info *info, size_t size, void *sum)
{
    (void)size;
    char *copy = strdup(info->dlpi_name);
    *(size_t *)sum += strlen(copy) + 1;
    free(copy);
    return 0;
}

static void *walk(void *unused)
{
    while (!atomic_load(&stop)) {
        size_t sum = 0;
        dl_iterate_phdr(visit, &sum);
        HOST_CHECK(sum > 0, "no modules");
        atomic_fetch_add(&walked, 1);
    }
    return unused;
}

static void *trace(void *unused)
{
    while (!atomic_load(&stop)) {
        void *pcs[32];
        Dl_info info;
        HOST_CHECK(backtrace(pcs, 32) >= 2, "backtrace");
        HOST_CHECK(dladdr((void *)(uintptr_t)trace, &info), "dladdr");
        atomic_fetch_add(&traced, 1);
    }
    return unused;
}

static void *allocate(void *unused)
{
    void *kept[128] = { 0 };
    unsigned seed = 17;
    while (!atomic_load(&stop)) {
        seed = seed * 1664525u + 1013904223u;
        unsigned slot = seed >> 25;
        size_t size = seed % 7 ? (seed >> 8) % 3000 : 140000 + (seed >> 8) % 60000;
        kept[slot] = realloc(kept[slot], size + 1);
        memset(kept[slot], 1, size < 64 ? size : 64);
        atomic_fetch_add(&allocated, 1);
    }
    for (int i = 0; i < 128; i++)
        free(kept[i]);
    return unused;
}

int main(void)
{
    void *(*const functions[])(void *) = { open_and_close, walk, trace, allocate, allocate };
    enum { THREADS = sizeof functions / sizeof functions[0] };
    pthread_t threads[THREADS];
    void *warm[4];
    mallopt(M_ARENA_MAX, 1);
    backtrace(warm, 4);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, functions[i], NULL);
    usleep(1200000);
    atomic_store(&stop, 1);
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 5;
    for (int i = 0; i < THREADS; i++)
        if (pthread_timedjoin_np(threads[i], NULL, &limit) != 0) {
            host_fail("thread %d hangs", i);
            _exit(1); /* exit() could hang on the same lock */
        }
    HOST_CHECK(opened && walked && traced && allocated, "no progress: %ld %ld %ld %ld", opened,
               walked, traced, allocated);
    return host_end();
}
