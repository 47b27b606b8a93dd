/* SPDX-License-Identifier: MIT */
/* Blocked SIGPROFs are kept and taken by sigtimedwait, sigwaitinfo, sigwait, sigsuspend, ppoll and
 * signalfd: the ones that the program raised, never a tick. */
#include "host.h"

#include <poll.h>
#include <sys/signalfd.h>

static atomic_int calls;
static void on_prof(int number) { (void)number; atomic_fetch_add(&calls, 1); }

static void *raise_later(void *thread)
{
    host_burn_us(20000);
    pthread_kill(*(pthread_t *)thread, SIGPROF);
    return NULL;
}

static void *send_later(void *unused)
{
    (void)unused;
    host_burn_us(20000);
    kill(getpid(), SIGPROF);
    return NULL;
}

int main(void)
{
    sigset_t prof, none, pending;
    siginfo_t info;
    struct timespec zero = { 0, 0 }, long_wait = { 3, 0 }, short_wait = { 0, 20000000 };
    pthread_t self = pthread_self(), helper;
    int number = 0;
    sigemptyset(&none);
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    signal(SIGPROF, on_prof);
    pthread_sigmask(SIG_BLOCK, &prof, NULL);

    for (int i = 0; i < 5; i++) {
        host_burn_us(10000);
        pthread_kill(self, SIGPROF);
        sigpending(&pending);
        HOST_CHECK(sigismember(&pending, SIGPROF) == 1, "not pending");
        HOST_CHECK(sigtimedwait(&prof, &info, &long_wait) == SIGPROF && info.si_pid == getpid() &&
                       (info.si_code == SI_TKILL || info.si_code == SI_USER),
                   "sigtimedwait: code %d", info.si_code);
        HOST_CHECK(sigtimedwait(&prof, &info, &zero) == -1 && errno == EAGAIN, "a second one");
        kill(getpid(), SIGPROF);
        HOST_CHECK(sigwaitinfo(&prof, &info) == SIGPROF && info.si_pid == getpid(), "sigwaitinfo");
    }
    int64_t start = host_clock_us(CLOCK_MONOTONIC);
    HOST_CHECK(sigtimedwait(&prof, NULL, &short_wait) == -1 && errno == EAGAIN, "timeout");
    HOST_CHECK(host_clock_us(CLOCK_MONOTONIC) - start >= 19000, "timeout too short");

    pthread_create(&helper, NULL, raise_later, &self);
    HOST_CHECK(sigwait(&prof, &number) == 0 && number == SIGPROF, "sigwait, sent to the thread");
    pthread_join(helper, NULL);
    pthread_create(&helper, NULL, send_later, NULL);
    HOST_CHECK(sigwait(&prof, &number) == 0 && number == SIGPROF, "sigwait, sent to the process");
    pthread_join(helper, NULL);
    HOST_CHECK(calls == 0, "handler ran %d times", calls);

    host_burn_us(10000);
    raise(SIGPROF);
    HOST_CHECK(calls == 0, "handler ran before sigsuspend");
    HOST_CHECK(sigsuspend(&none) == -1 && errno == EINTR && calls == 1, "sigsuspend: %d", calls);
    raise(SIGPROF);
    HOST_CHECK(ppoll(NULL, 0, &long_wait, &none) == -1 && errno == EINTR && calls == 2,
               "ppoll: %d", calls);
    host_burn_us(10000);
    int fd = signalfd(-1, &prof, SFD_NONBLOCK | SFD_CLOEXEC);
    struct signalfd_siginfo record;
    struct pollfd waits = { fd, POLLIN, 0 };
    HOST_CHECK(fd >= 0 && read(fd, &record, sizeof record) == -1 && errno == EAGAIN, "signalfd");
    raise(SIGPROF);
    HOST_CHECK(poll(&waits, 1, 3000) == 1, "signalfd is not readable");
    HOST_CHECK(read(fd, &record, sizeof record) == sizeof record && record.ssi_signo == SIGPROF,
               "signalfd record");
    close(fd);
    HOST_CHECK(calls == 2, "handler ran %d times, wanted 2", calls);
    raise(SIGPROF);
    pthread_sigmask(SIG_UNBLOCK, &prof, NULL);
    HOST_CHECK(calls == 3, "pending signal on unblock: %d", calls);
    return host_end();
}
