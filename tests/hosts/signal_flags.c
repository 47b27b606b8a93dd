/* SPDX-License-Identifier: MIT */
/* Flags of a SIGPROF handler mean what they always do: one-shot, nesting, masks while it runs, the
 * value that was queued with the signal, and leaving it by siglongjmp or with the thread's end; what it sees of
 * the interrupted functions. */
#include "host.h"

#include <execinfo.h>
#include <setjmp.h>

static atomic_int calls, depth, deepest;
static sigjmp_buf out;
static siginfo_t last;
static sigset_t seen;

static void install(void (*handler)(int, siginfo_t *, void *), int flags, int masked)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = handler;
    action.sa_flags = SA_SIGINFO | flags;
    if (masked)
        sigaddset(&action.sa_mask, masked);
    sigaction(SIGPROF, &action, NULL);
    atomic_store(&calls, 0);
}

static void on_count(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    last = *info;
    pthread_sigmask(SIG_BLOCK, NULL, &seen);
    atomic_fetch_add(&calls, 1);
}

static void on_nest(int number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    int here = atomic_fetch_add(&depth, 1) + 1;
    if (here > deepest)
        deepest = here;
    if (atomic_fetch_add(&calls, 1) < 2)
        raise(number);
    atomic_fetch_sub(&depth, 1);
}

static void on_leave(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
    atomic_fetch_add(&calls, 1);
    siglongjmp(out, 1);
}

static atomic_int seen_raiser, cleaned;

static void on_look(int number, siginfo_t *info, void *context)
{
    void *addresses[32];
    (void)number;
    (void)info;
    (void)context;
    int count = backtrace(addresses, 32);
    atomic_store(&seen_raiser, 0);
    for (int i = 0; i < count; i++)
        if ((char *)addresses[i] > (char *)(uintptr_t)raise && (char *)addresses[i] < (char *)(uintptr_t)raise + 64)
            atomic_store(&seen_raiser, i + 1);
    atomic_store(&deepest, count);
}

static void on_end_thread(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)info;
    (void)context;
    pthread_exit((void *)5);
}

static void clean_up(void *unused)
{
    (void)unused;
    atomic_fetch_add(&cleaned, 1);
}

static void *end_in_handler(void *unused)
{
    pthread_cleanup_push(clean_up, NULL);
    host_burn_us(2000);
    raise(SIGPROF);
    host_fail("the thread goes on");
    pthread_cleanup_pop(0);
    return unused;
}

static void see_and_end(void)
{
    install(on_look, 0, 0);
    raise(SIGPROF);
    HOST_CHECK(seen_raiser > 1 && deepest > seen_raiser, "backtrace: raise is %d of %d", seen_raiser, deepest);
    install(on_end_thread, 0, 0);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result = NULL;
        pthread_create(&thread, NULL, end_in_handler, NULL);
        pthread_join(thread, &result);
        HOST_CHECK(result == (void *)5, "pthread_exit in a handler");
    }
    HOST_CHECK(cleaned == 20, "cleaned up %d times", cleaned);
}

int main(void)
{
    struct sigaction now;
    sigset_t mask;
    host_burn_us(30000);

    install(on_count, SA_RESETHAND, SIGUSR1);
    raise(SIGPROF);
    sigaction(SIGPROF, NULL, &now);
    HOST_CHECK(calls == 1 && now.sa_handler == SIG_DFL, "one-shot: %d calls", calls);
    HOST_CHECK(last.si_code == SI_TKILL && last.si_pid == getpid(), "si_code %d", last.si_code);
    HOST_CHECK(sigismember(&seen, SIGPROF) == 1 && sigismember(&seen, SIGUSR1) == 1 &&
                   sigismember(&seen, SIGUSR2) == 0,
               "mask in the handler");
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    HOST_CHECK(sigismember(&mask, SIGPROF) == 0 && sigismember(&mask, SIGUSR1) == 0,
               "mask after the handler");

    install(on_count, SA_NODEFER, 0);
    HOST_CHECK(sigqueue(getpid(), SIGPROF, (union sigval){ .sival_int = 4711 }) == 0, "sigqueue");
    HOST_CHECK(calls == 1 && last.si_code == SI_QUEUE && last.si_value.sival_int == 4711,
               "queued value %d", last.si_value.sival_int);
    HOST_CHECK(sigismember(&seen, SIGPROF) == 0, "blocked in spite of SA_NODEFER");

    install(on_nest, SA_NODEFER, 0);
    raise(SIGPROF);
    HOST_CHECK(calls == 3 && deepest == 3, "nested: %d calls, %d deep", calls, deepest);
    deepest = 0;
    install(on_nest, 0, 0);
    raise(SIGPROF);
    HOST_CHECK(calls == 3 && deepest == 1, "not nested: %d calls, %d deep", calls, deepest);

    install(on_leave, 0, SIGUSR1);
    for (int i = 0; i < 200; i++) {
        if (sigsetjmp(out, 1) == 0) {
            raise(SIGPROF);
            host_fail("handler returned");
        }
        host_burn_us(200);
    }
    HOST_CHECK(calls == 200, "left %d times", calls);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    HOST_CHECK(sigismember(&mask, SIGPROF) == 0 && sigismember(&mask, SIGUSR1) == 0,
               "mask after siglongjmp");
    see_and_end();
    return host_end();
}
