/* SPDX-License-Identifier: MIT */
/* A program with SIGPROF and ITIMER_PROF of its own: its handler gets its own ticks at its own rate,
 * none of the profiler's, and what it installed is what it reads back. */
#include "host.h"

#include <sys/time.h>

static atomic_int ticks, wrong;

static void on_tick(int number, siginfo_t *info, void *context)
{
    if (number != SIGPROF || !info || info->si_signo != SIGPROF || !context)
        atomic_fetch_add(&wrong, 1);
    atomic_fetch_add(&ticks, 1);
}

static void set_timer(long us)
{
    struct itimerval timer = { { 0, us }, { 0, us } };
    HOST_CHECK(setitimer(ITIMER_PROF, &timer, NULL) == 0, "setitimer: %d", errno);
}

static void burn_in_two(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, host_burn_thread, (void *)90000);
    host_burn_us(90000);
    pthread_join(thread, NULL);
}

int main(void)
{
    struct sigaction action, now;
    struct itimerval timer;
    signal(SIGPROF, SIG_DFL);
    burn_in_two();

    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_tick;
    action.sa_flags = SA_SIGINFO | SA_RESTART;
    sigaddset(&action.sa_mask, SIGUSR2);
    HOST_CHECK(sigaction(SIGPROF, &action, &now) == 0 && now.sa_handler == SIG_DFL, "first action");
    HOST_CHECK(sigaction(SIGPROF, NULL, &now) == 0 && now.sa_sigaction == on_tick &&
                   (now.sa_flags & (SA_SIGINFO | SA_RESTART | SA_ONSTACK | SA_NODEFER)) ==
                       (SA_SIGINFO | SA_RESTART) &&
                   sigismember(&now.sa_mask, SIGUSR2) == 1 && sigismember(&now.sa_mask, SIGUSR1) == 0,
               "action read back: flags 0x%x", (unsigned)now.sa_flags);
    burn_in_two();
    HOST_CHECK(ticks == 0, "%d ticks before a timer of ours ran", ticks);

    set_timer(10000);
    HOST_CHECK(getitimer(ITIMER_PROF, &timer) == 0 && timer.it_interval.tv_usec >= 9000 &&
                   timer.it_interval.tv_usec <= 13000,
               "interval %ld us", (long)timer.it_interval.tv_usec);
    host_burn_us(400000);
    HOST_CHECK(ticks >= 8 && ticks <= 60, "%d ticks of 10 ms in 400 ms", ticks);
    set_timer(0);
    host_burn_us(1000);
    atomic_store(&ticks, 0);
    burn_in_two();
    HOST_CHECK(ticks == 0, "%d ticks after our timer stopped", ticks);

    HOST_CHECK(signal(SIGPROF, SIG_IGN) == now.sa_handler, "handler from signal()");
    set_timer(5000);
    host_burn_us(60000);
    set_timer(0);
    HOST_CHECK(ticks == 0, "%d ticks though ignored", ticks);
    HOST_CHECK(signal(SIGPROF, SIG_DFL) == SIG_IGN, "ignored is not read back");
    burn_in_two();
    HOST_CHECK(wrong == 0, "%d calls with wrong arguments", wrong);
    return host_end();
}
