/* SPDX-License-Identifier: MIT */
/* A SIGPROF of the program's own at the default action ends it, as always; an ignored one does not;
 * and one that is pending or blocked over fork and exec harms nobody. */
#include "host.h"

#include <sys/resource.h>
#include <sys/time.h>

static void *burn_on(void *unused)
{
    (void)unused;
    for (;;)
        host_burn_us(100000);
    return NULL;
}

static pid_t child(int how)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct itimerval timer = { { 0, 0 }, { 0, 20000 } };
    pthread_t thread;
    host_burn_us(10000);
    switch (how) {
    case 0:
        raise(SIGPROF);
        break;
    case 1:
        kill(getpid(), SIGPROF);
        break;
    case 2:
        setitimer(ITIMER_PROF, &timer, NULL);
        pthread_create(&thread, NULL, burn_on, NULL);
        burn_on(NULL);
        break;
    case 3:
        signal(SIGPROF, SIG_IGN);
        raise(SIGPROF);
        setitimer(ITIMER_PROF, &timer, NULL);
        host_burn_us(50000);
        _exit(5);
    }
    host_burn_us(10000);
    _exit(6);
}

int main(void)
{
    struct rlimit no_core = { 0, 0 };
    setrlimit(RLIMIT_CORE, &no_core);
    host_burn_us(20000);
    host_expect_signal("raise", child(0), SIGPROF);
    host_expect_signal("kill", child(1), SIGPROF);
    host_expect_signal("timer", child(2), SIGPROF);
    host_expect_exit("ignored", child(3), 5);
    return host_end();
}
