/* SPDX-License-Identifier: MIT */
/* Shared by the host programs: each is a small program with a right answer, run plain and under
 * lapse by run.sh, with equal output and status. Exit 0 right, 1 wrong, 77 skipped. */
#ifndef LAPSE_TESTS_HOSTS_HOST_H
#define LAPSE_TESTS_HOSTS_HOST_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define HOST_UNUSED __attribute__((unused))

static atomic_int host_failures;

HOST_UNUSED static int64_t host_clock_us(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Use so much CPU time of the calling thread, nearly all of it in user code. */
HOST_UNUSED __attribute__((noinline)) static unsigned host_burn_us(int64_t us)
{
    volatile unsigned value = 7;
    int64_t end = host_clock_us(CLOCK_THREAD_CPUTIME_ID) + us;
    while (host_clock_us(CLOCK_THREAD_CPUTIME_ID) < end)
        for (int i = 0; i < 3000; i++)
            value = value * 1664525u + 1013904223u;
    return value;
}

HOST_UNUSED static void *host_burn_thread(void *us)
{
    host_burn_us((int64_t)(intptr_t)us);
    return NULL;
}

/* One line a failure, at most twenty; written at once, since the process may die next. */
HOST_UNUSED __attribute__((format(printf, 1, 2))) static void host_fail(const char *format, ...)
{
    char line[256];
    va_list more;
    if (atomic_fetch_add(&host_failures, 1) >= 20)
        return;
    va_start(more, format);
    int size = vsnprintf(line, sizeof line - 1, format, more);
    va_end(more);
    if (size > (int)sizeof line - 2)
        size = (int)sizeof line - 2;
    line[size++] = '\n';
    if (write(1, "FAIL ", 5) < 0 || write(1, line, (size_t)size) < 0)
        _exit(3);
}

#define HOST_CHECK(condition, ...) \
    do { \
        if (!(condition)) \
            host_fail(__VA_ARGS__); \
    } while (0)

HOST_UNUSED static int host_wait(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
        ;
    return status;
}

HOST_UNUSED static void host_expect_exit(const char *what, pid_t pid, int code)
{
    int status = host_wait(pid);
    HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code, "%s: wait status 0x%x, wanted %d",
               what, (unsigned)status, code);
}

HOST_UNUSED static void host_expect_signal(const char *what, pid_t pid, int number)
{
    int status = host_wait(pid);
    HOST_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == number,
               "%s: wait status 0x%x, wanted signal %d", what, (unsigned)status, number);
}

/* Is this run under the profiler? Only for checks of what it leaves behind. */
HOST_UNUSED static bool host_is_profiled(void)
{
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, "liblapse.so");
}

HOST_UNUSED static const char *host_self(void)
{
    static char path[4096];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size <= 0)
        _exit(3);
    path[size] = '\0';
    return path;
}

HOST_UNUSED static int host_end(void)
{
    if (atomic_load(&host_failures))
        return 1;
    return write(1, "OK\n", 3) == 3 ? 0 : 3;
}

#endif
