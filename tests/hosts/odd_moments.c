/* SPDX-License-Identifier: MIT */
/* Forks, execs and ends at moments that few think of: fork inside of fork handlers and of exit, an image
 * started by another thread than the first, by two at once or while the process ends, and the end of a
 * process that another thread keeps forking. */
#include "host.h"

#include <dlfcn.h>

static int depth;

static void fork_once_more(int code)
{
    if (depth++ < 2) {
        pid_t pid = fork();
        if (pid == 0) {
            host_burn_us(2000);
            _exit(code);
        }
        host_expect_exit("fork in a fork handler", pid, code);
    }
    depth--;
}

static void before(void) { fork_once_more(21); }
static void in_child(void) { fork_once_more(22); }

static void *make_threads(void *unused)
{
    for (;;) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, host_burn_thread, (void *)2000) == 0)
            pthread_join(thread, NULL);
    }
    return unused;
}

static void *fork_on(void *unused)
{
    for (;;) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        if (pid > 0)
            host_wait(pid);
    }
    return unused;
}

static void *fail_to_become(void *us)
{
    for (int i = 0; i < 5; i++) {
        execl("/nowhere/program", "x", (char *)NULL);
        HOST_CHECK(errno == ENOENT, "exec of nothing: %d", errno);
        host_burn_us(1000);
    }
    return us;
}

static void *become(void *us)
{
    host_burn_us((int64_t)(intptr_t)us);
    execl(host_self(), host_self(), "--burn", (char *)NULL);
    return us;
}

static void *become_at_last(void *us)
{
    fail_to_become(us);
    return become(us);
}

static void at_exit(void)
{
    pthread_t thread;
    pid_t pid = fork();
    if (pid == 0) {
        host_burn_us(5000);
        _exit(23);
    }
    host_expect_exit("fork in exit", pid, 23);
    HOST_CHECK(pthread_create(&thread, NULL, host_burn_thread, (void *)5000) == 0, "thread in exit");
    pthread_join(thread, NULL);
    HOST_CHECK(dlopen("libm.so.6", RTLD_NOW), "library in exit");
    if (host_failures)
        _exit(1);
}

static void start(void *(*function)(void *), long argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, (void *)argument) != 0)
        _exit(91);
}

static void run(int how)
{
    switch (how) {
    case 0: /* another thread becomes another program */
        start(make_threads, 0);
        start(become_at_last, 6000);
        host_burn_us(5000000);
        _exit(90);
    case 1: /* two do, and the first ends the process */
        start(become, 3000);
        start(become, 3000);
        host_burn_us(3300);
        exit(24);
    case 2: /* the process ends while it forks and makes threads */
        start(fork_on, 0);
        start(make_threads, 0);
        host_burn_us(6000);
        exit(24);
    default:
        atexit(at_exit);
        host_burn_us(5000);
        exit(24);
    }
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "--burn") == 0) {
        host_burn_us(10000);
        return 24;
    }
    for (int i = 0; i < 16; i++) {
        pid_t pid = fork();
        if (pid == 0)
            run(i % 4);
        host_expect_exit("odd moment", pid, 24);
    }
    pthread_atfork(before, NULL, in_child);
    start(make_threads, 0);
    for (int i = 0; i < 3; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            host_burn_us(5000);
            _exit(24);
        }
        host_expect_exit("fork with handlers that fork", pid, 24);
    }
    return host_end();
}
