/* SPDX-License-Identifier: MIT */
/* Processes and threads made without pthread_create and fork: clone() with and without shared memory,
 * raw clone, clone3 and fork by syscall(). */
#include "host.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static int shared;

static int in_clone(void *argument)
{
    host_burn_us(15000);
    shared++;
    return (int)(intptr_t)argument;
}

/* A thread without a TLS block of its own may call nothing of the C library. */
static int bare_thread(void *argument)
{
    volatile unsigned value = 1;
    for (int i = 0; i < 20000000; i++)
        value = value * 3 + 1;
    __atomic_store_n((int *)argument, 1, __ATOMIC_RELEASE);
    return 0;
}

int main(void)
{
    size_t size = 256 * 1024;
    char *stack = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    host_burn_us(20000);
    pid_t pid = clone(in_clone, stack + size, SIGCHLD, (void *)21);
    host_expect_exit("clone, own memory", pid, 21);
    HOST_CHECK(shared == 0, "memory was shared");
    pid = clone(in_clone, stack + size, CLONE_VM | CLONE_VFORK | SIGCHLD, (void *)22);
    host_expect_exit("clone, shared memory", pid, 22);
    HOST_CHECK(shared == 1, "memory was not shared");

    pid = (pid_t)syscall(SYS_fork);
    if (pid == 0) {
        host_burn_us(10000);
        _exit(23);
    }
    host_expect_exit("raw fork", pid, 23);
    pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        host_burn_us(10000);
        _exit(24);
    }
    host_expect_exit("raw clone", pid, 24);
    struct clone_args arguments = { .exit_signal = SIGCHLD };
    pid = (pid_t)syscall(SYS_clone3, &arguments, sizeof arguments);
    if (pid == 0) {
        host_burn_us(10000);
        exit(25);
    }
    host_expect_exit("raw clone3", pid, 25);
    errno = 0;
    HOST_CHECK(syscall(SYS_clone3, &arguments, (size_t)1) == -1 && errno == EINVAL, "clone3: %d",
               errno);
    HOST_CHECK(syscall(SYS_close, -1) == -1 && errno == EBADF, "raw close");
    HOST_CHECK(syscall(SYS_getpid) == getpid(), "raw getpid");

    int done = 0, tid = 0;
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
                CLONE_PARENT_SETTID;
    HOST_CHECK(clone(bare_thread, stack + size, flags, &done, &tid) > 0 && tid > 0, "bare thread");
    for (int i = 0; i < 4000 && !__atomic_load_n(&done, __ATOMIC_ACQUIRE); i++)
        usleep(1000);
    HOST_CHECK(__atomic_load_n(&done, __ATOMIC_ACQUIRE), "bare thread does not end");
    usleep(20000); /* it still returns on its stack */
    return host_end();
}
