/* SPDX-License-Identifier: MIT */
/* A stack that overflows ends the program by SIGSEGV, in the main thread and in another; one that
 * only comes near its guard page does not. */
#include "host.h"

#include <sys/resource.h>

__attribute__((noinline)) static unsigned dig(unsigned depth, char *above)
{
    volatile char room[512];
    room[0] = (char)depth;
    if (above)
        room[1] = above[0];
    if (depth == 0) {
        host_burn_us(30000);
        return 1;
    }
    return dig(depth - 1, (char *)room) + (unsigned)(room[0] & 0);
}

static void *dig_here(void *depth)
{
    HOST_CHECK(dig((unsigned)(uintptr_t)depth, NULL) == 1, "dig");
    return NULL;
}

static pid_t child(bool in_thread)
{
    pid_t pid = fork();
    if (pid == 0) {
        struct rlimit none = { 0, 0 };
        pthread_t thread;
        setrlimit(RLIMIT_CORE, &none);
        host_burn_us(15000);
        if (in_thread) {
            pthread_create(&thread, NULL, dig_here, (void *)(uintptr_t)10000000);
            pthread_join(thread, NULL);
        }
        dig_here((void *)(uintptr_t)10000000);
        _exit(0);
    }
    return pid;
}

int main(void)
{
    host_expect_signal("main thread", child(false), SIGSEGV);
    host_expect_signal("other thread", child(true), SIGSEGV);
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 262144);
    /* 560 to 600 bytes a frame: what is left is some 20 KiB. */
    pthread_create(&thread, &attributes, dig_here, (void *)(uintptr_t)390);
    pthread_join(thread, NULL);
    return host_end();
}
