/* SPDX-License-Identifier: MIT */
/* Waiting for signals: sigwait and its family take the host's instances of the signal that lapse
 * ticks with, never a tick of ours; sigsuspend waits with the host's mask.
 *
 * signalfd needs nothing: the kernel gets the host's set as it is, and a signal of the host's own
 * that reaches a thread which wishes it blocked becomes really pending (lapse_mask_defers), where a
 * signalfd sees it. Called by the host. All are cancellation points, which the real functions keep. */
#include "interpose.h"

#include <errno.h>
#include <time.h>

#include "interpose_state.h"
#include "real.h"
#include "session.h"

/* *left = end - now, never negative. */
static void time_left(const struct timespec *end, struct timespec *left)
{
    struct timespec now = { 0, 0 };
    lapse_sys(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    left->tv_sec = end->tv_sec - now.tv_sec;
    left->tv_nsec = end->tv_nsec - now.tv_nsec;
    if (left->tv_nsec < 0) {
        left->tv_nsec += 1000000000;
        left->tv_sec--;
    }
    if (left->tv_sec < 0)
        *left = (struct timespec){ 0, 0 };
}

/* Wait with the signal really blocked; ticks of ours are passed over with the time left. */
static int wait_for(int number, const sigset_t *set, siginfo_t *info,
                    const struct timespec *timeout)
{
    struct timespec end, left;
    siginfo_t mine;
    if (timeout) {
        lapse_sys(SYS_clock_gettime, CLOCK_MONOTONIC, &end);
        end.tv_sec += timeout->tv_sec;
        end.tv_nsec += timeout->tv_nsec;
        if (end.tv_nsec >= 1000000000) {
            end.tv_nsec -= 1000000000;
            end.tv_sec++;
        }
        left = *timeout;
    }
    for (;;) {
        int result = LAPSE_REAL(sigtimedwait)(set, &mine, timeout ? &left : NULL);
        if (result == number && lapse_session_owns_tick(number, &mine)) {
            if (timeout)
                time_left(&end, &left);
            continue;
        }
        if (result > 0 && info)
            *info = mine;
        return result;
    }
}

/* Is the taken signal among those waited for, in a process whose ticks are ours? */
static bool waits_for_taken(const sigset_t *set)
{
    int number = lapse_taken_signal();
    return number && sigismember(set, number) == 1 && lapse_taken_is_mine();
}

static int guarded_wait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
    struct lapse_block block;
    lapse_mask_waits();
    lapse_block_begin(&block);
    int result = wait_for(lapse_taken_signal(), set, info, timeout);
    lapse_block_end(&block);
    return result;
}

LAPSE_INTERPOSE int sigtimedwait(const sigset_t *set, siginfo_t *info,
                                 const struct timespec *timeout)
{
    bool valid = !timeout || (timeout->tv_sec >= 0 && timeout->tv_nsec >= 0 &&
                              timeout->tv_nsec < 1000000000);
    if (valid && waits_for_taken(set))
        return guarded_wait(set, info, timeout);
    bool hush = atomic_load_explicit(&lapse_taken.wakes_sleepers, memory_order_relaxed) &&
                lapse_hush_begin();
    int result = LAPSE_REAL(sigtimedwait)(set, info, timeout);
    if (hush)
        lapse_hush_end();
    return result;
}

LAPSE_INTERPOSE int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
    if (waits_for_taken(set))
        return guarded_wait(set, info, NULL);
    bool hush = atomic_load_explicit(&lapse_taken.wakes_sleepers, memory_order_relaxed) &&
                lapse_hush_begin();
    int result = LAPSE_REAL(sigwaitinfo)(set, info);
    if (hush)
        lapse_hush_end();
    return result;
}

LAPSE_INTERPOSE int sigwait(const sigset_t *set, int *number)
{
    if (!waits_for_taken(set))
        return LAPSE_REAL(sigwait)(set, number);
    int before = errno, result;
    do
        result = guarded_wait(set, NULL, NULL);
    while (result < 0 && errno == EINTR); /* sigwait has no such error */
    if (result < 0) {
        result = errno;
        errno = before;
        return result;
    }
    *number = result;
    errno = before;
    return 0;
}

LAPSE_INTERPOSE int sigsuspend(const sigset_t *set)
{
    struct lapse_wait_mask wait;
    if (!lapse_taken_signal())
        return LAPSE_REAL(sigsuspend)(set);
    lapse_wait_mask_begin(&wait, &set);
    int result = LAPSE_REAL(sigsuspend)(set);
    lapse_wait_mask_end(&wait);
    return result;
}

/* Deprecated forms; the C library's would reach its own sigsuspend. */
static int suspend_without(int number)
{
    sigset_t set;
    if (pthread_sigmask(SIG_BLOCK, NULL, &set) != 0 || sigdelset(&set, number) != 0)
        return -1;
    return sigsuspend(&set);
}

int __xpg_sigpause(int number);
LAPSE_INTERPOSE int __xpg_sigpause(int number)
{
    return suspend_without(number);
}

int __sigpause(int number_or_mask, int is_number);
LAPSE_INTERPOSE int __sigpause(int number_or_mask, int is_number)
{
    if (is_number)
        return suspend_without(number_or_mask);
    sigset_t set;
    sigemptyset(&set);
    for (int number = 1; number <= 32; number++)
        if ((unsigned)number_or_mask & (1u << (number - 1)))
            sigaddset(&set, number);
    return sigsuspend(&set);
}
