/* SPDX-License-Identifier: MIT */
/* Workers that block every signal, a main thread that handles its own profiling timer: all ticks of
 * that timer are for the main thread, whoever burns the time. (That the workers are sampled all the
 * same is read from the folded text by the statistical tests.) */
#include "host.h"

#include <sys/time.h>

static atomic_int ticks, elsewhere, stop;
static pthread_t main_thread;

static void on_tick(int number)
{
    (void)number;
    atomic_fetch_add(pthread_equal(pthread_self(), main_thread) ? &ticks : &elsewhere, 1);
}

static void *worker(void *unused)
{
    sigset_t now;
    (void)unused;
    while (!atomic_load(&stop))
        host_burn_us(5000);
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    HOST_CHECK(sigismember(&now, SIGPROF) == 1 && sigismember(&now, SIGTERM) == 1, "worker's mask");
    return NULL;
}

int main(void)
{
    sigset_t all, before;
    pthread_t threads[2];
    struct itimerval timer = { { 0, 10000 }, { 0, 10000 } };
    struct sigaction action;
    main_thread = pthread_self();
    memset(&action, 0, sizeof action);
    action.sa_handler = on_tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGPROF, &action, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, worker, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    setitimer(ITIMER_PROF, &timer, NULL);
    host_burn_us(200000);
    int64_t end = host_clock_us(CLOCK_MONOTONIC) + 100000;
    while (host_clock_us(CLOCK_MONOTONIC) < end)
        usleep(5000);
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_PROF, &timer, NULL);
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    HOST_CHECK(elsewhere == 0, "%d ticks in threads that block them", elsewhere);
    HOST_CHECK(ticks >= 8, "%d ticks", ticks);
    return host_end();
}
