/* SPDX-License-Identifier: MIT */
/* Host with a malloc of its own that ends the process when it is called by lapse: from the drain
 * thread, from code of liblapse.so, or while the tick handler runs. Threads, so that pthread_create
 * and its interposition are passed too. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static char heap[64 << 20];
static _Atomic size_t used;
static uintptr_t lapse_low, lapse_high;
static volatile unsigned long sink;

static void complain(const char *why)
{
    ssize_t ignored = write(2, why, strlen(why));
    (void)ignored;
    _exit(9);
}

static void check(uintptr_t caller)
{
    char name[17] = "";
    prctl(PR_GET_NAME, name);
    if (!strcmp(name, "lapse-drain"))
        complain("malloc called in the drain thread\n");
    if (caller >= lapse_low && caller < lapse_high)
        complain("malloc called by liblapse.so\n");
}

void *malloc(size_t size)
{
    check((uintptr_t)__builtin_return_address(0));
    size_t at = (used += (size + 31) & ~(size_t)15);
    if (at > sizeof heap)
        return NULL;
    char *block = heap + at - ((size + 31) & ~(size_t)15);
    memcpy(block, &size, sizeof size);
    return block + 16;
}

void free(void *block)
{
    check((uintptr_t)__builtin_return_address(0));
    (void)block;
}

void *calloc(size_t count, size_t size)
{
    check((uintptr_t)__builtin_return_address(0));
    return malloc(count * size); /* fresh memory is zero */
}

void *realloc(void *old, size_t size)
{
    size_t old_size = 0;
    check((uintptr_t)__builtin_return_address(0));
    char *block = malloc(size);
    if (old)
        memcpy(&old_size, (char *)old - 16, sizeof old_size);
    if (block && old)
        memcpy(block, old, old_size < size ? old_size : size);
    return block;
}

/* Where the text of liblapse.so lies. */
static void find_lapse(void)
{
    static char line[4096];
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long low, high;
        if (!strstr(line, "liblapse.so") || sscanf(line, "%lx-%lx", &low, &high) != 2)
            continue;
        lapse_low = lapse_low ? lapse_low : low;
        lapse_high = high;
    }
    fclose(maps);
}

static void *work(void *unused)
{
    struct timespec now;
    (void)unused;
    do {
        for (int i = 0; i < 1000; i++) {
            char *block = malloc(48);
            sink += (unsigned long)block[0];
            if (used > sizeof heap / 2)
                used = sizeof heap / 4; /* start over: nobody keeps these */
        }
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_nsec < 200000000 && now.tv_sec == 0);
    return NULL;
}

int main(void)
{
    find_lapse();
    if (getenv("LD_PRELOAD") && !lapse_low)
        complain("liblapse.so is not there\n");
    for (int i = 0; i < 3; i++) {
        pthread_t threads[4];
        for (int k = 0; k < 4; k++)
            pthread_create(&threads[k], NULL, work, NULL);
        for (int k = 0; k < 4; k++)
            pthread_join(threads[k], NULL);
    }
    return 0;
}
