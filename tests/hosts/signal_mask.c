/* SPDX-License-Identifier: MIT */
/* Masks: what a thread set is what it reads back, by every call that there is, in new threads, in
 * forked children and in new images. */
#include "host.h"

#include <spawn.h>

extern char **environ;

static void expect_mask(const char *where, const sigset_t *want)
{
    sigset_t now;
    HOST_CHECK(pthread_sigmask(SIG_SETMASK, NULL, &now) == 0, "%s: no mask", where);
    for (int number = 1; number < 32; number++)
        if (number != SIGKILL && number != SIGSTOP &&
            sigismember(&now, number) != sigismember(want, number))
            host_fail("%s: signal %d is %d", where, number, sigismember(&now, number));
}

static void *in_thread(void *want)
{
    expect_mask("new thread", want);
    host_burn_us(30000);
    expect_mask("new thread, later", want);
    return NULL;
}

static void start(const pthread_attr_t *attributes, sigset_t *want)
{
    pthread_t thread;
    HOST_CHECK(pthread_create(&thread, attributes, in_thread, want) == 0, "pthread_create");
    pthread_join(thread, NULL);
}

/* New image: 1 when SIGPROF is blocked, plus 2 when ignored. */
static int report(void)
{
    sigset_t now;
    struct sigaction action;
    host_burn_us(20000);
    sigprocmask(SIG_BLOCK, NULL, &now);
    sigaction(SIGPROF, NULL, &action);
    return 10 + (sigismember(&now, SIGPROF) == 1) + 2 * (action.sa_handler == SIG_IGN);
}

static pid_t spawn_report(bool by_fork)
{
    char *arguments[] = { (char *)host_self(), "--report", NULL };
    pid_t pid = -1;
    if (!by_fork)
        return posix_spawn(&pid, host_self(), NULL, NULL, arguments, environ) == 0 ? pid : -1;
    if ((pid = fork()) == 0) {
        execv(arguments[0], arguments);
        _exit(9);
    }
    return pid;
}

int main(int count, char **arguments)
{
    sigset_t none, all, one, before, back;
    pthread_attr_t attributes;
    if (count == 2 && strcmp(arguments[1], "--report") == 0)
        return report();
    sigemptyset(&none);
    sigfillset(&all);
    sigemptyset(&one);
    sigaddset(&one, SIGPROF);
    sigaddset(&one, SIGUSR1);

    pthread_sigmask(SIG_SETMASK, &none, &before);
    start(NULL, &none);
    pthread_sigmask(SIG_SETMASK, &all, &back);
    HOST_CHECK(sigismember(&back, SIGPROF) == 0, "old mask");
    expect_mask("all", &all);
    start(NULL, &all);
    pthread_attr_init(&attributes);
    pthread_attr_setsigmask_np(&attributes, &none);
    start(&attributes, &none);
    host_burn_us(30000);
    HOST_CHECK(sigprocmask(SIG_UNBLOCK, &all, &back) == 0 && sigismember(&back, SIGPROF) == 1,
               "old mask, all");
    expect_mask("unblocked", &none);
    sigprocmask(SIG_BLOCK, &one, NULL);
    expect_mask("one", &one);
    pthread_attr_setsigmask_np(&attributes, &all);
    start(&attributes, &all);
    pid_t pid = fork();
    if (pid == 0) {
        host_burn_us(10000);
        expect_mask("child", &one);
        _exit(host_failures ? 1 : 8);
    }
    host_expect_exit("child", pid, 8);
    host_expect_exit("blocked over exec", spawn_report(true), 11);
    host_expect_exit("blocked over spawn", spawn_report(false), 11);
    expect_mask("after exec", &one);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPROF, SIG_IGN);
    host_expect_exit("ignored over exec", spawn_report(true), 12);
    signal(SIGPROF, SIG_DFL);
    host_expect_exit("default over exec", spawn_report(true), 10);

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    sighold(SIGPROF);
    sigprocmask(SIG_BLOCK, NULL, &back);
    HOST_CHECK(sigismember(&back, SIGPROF) == 1, "sighold");
    HOST_CHECK(sigset(SIGPROF, SIG_IGN) == SIG_HOLD, "sigset of a held signal");
    HOST_CHECK(sigset(SIGPROF, SIG_DFL) == SIG_IGN, "sigset");
    HOST_CHECK(sigset(SIGPROF, SIG_HOLD) == SIG_DFL, "sigset, hold");
    sigrelse(SIGPROF);
    expect_mask("end", &none);
    sigprocmask(SIG_SETMASK, &before, NULL);
    return host_end();
}
