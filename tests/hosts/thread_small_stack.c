/* SPDX-License-Identifier: MIT */
/* Threads on the smallest stacks that there are, with a guard page and on memory of the program's. */
#include "host.h"

#include <limits.h>
#include <sys/mman.h>

static void *brief(void *unused)
{
    (void)unused;
    host_burn_us(12000);
    return (void *)0x51;
}

static void run(pthread_attr_t *attributes, int count, char *memory, size_t size)
{
    pthread_t threads[16];
    for (int i = 0; i < count; i++) {
        if (memory)
            pthread_attr_setstack(attributes, memory + (size_t)i * (size + 4096) + 4096, size);
        HOST_CHECK(pthread_create(&threads[i], attributes, brief, NULL) == 0, "create %d", i);
    }
    for (int i = 0; i < count; i++) {
        void *result = NULL;
        pthread_join(threads[i], &result);
        HOST_CHECK(result == (void *)0x51, "result");
    }
}

int main(void)
{
    size_t size = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    if (size < 16384)
        size = 16384;
    size = (size + 4095) & ~(size_t)4095;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    HOST_CHECK(pthread_attr_setstacksize(&attributes, size) == 0, "stack size %zu", size);
    for (int round = 0; round < 2; round++)
        run(&attributes, 12, NULL, 0);
    size_t whole = 12 * (size + 4096);
    char *memory = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 12; i++) /* below each stack, nothing may be touched */
        mprotect(memory + (size_t)i * (size + 4096), 4096, PROT_NONE);
    run(&attributes, 12, memory, size);
    return host_end();
}
