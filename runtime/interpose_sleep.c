/* SPDX-License-Identifier: MIT */
/* Calls that sleep and that a signal would cut short (EINTR whatever SA_RESTART says).
 *
 * The default clock ticks in running threads only, and the kernel notices such ticks on the way back
 * to user code, so it disturbs no sleep: here the calls cost one test and a jump. The wall clock
 * ticks in sleepers. Its signal is then really blocked for the time of the call: no sleep is cut, no
 * time left has to be computed, a host's own signal still interrupts; and the tick that is pending
 * at the end carries the overruns of the whole sleep, so its weight lands on this very call.
 *
 * Called by the host. Cancellation points stay what they are: the real function is the one that
 * waits. Calls that are restarted by the kernel (read, write, wait, futex without a timeout) are
 * left alone. */
#include "interpose.h"

#include <sys/msg.h>
#include <sys/sem.h>

#include "interpose_state.h"
#include "real.h"

static inline bool wakes_sleepers(void)
{
    return __builtin_expect(
        atomic_load_explicit(&lapse_taken.wakes_sleepers, memory_order_relaxed), 0);
}

#define SLEEPER(result, name, parameters, arguments) \
    LAPSE_INTERPOSE result name parameters \
    { \
        if (!wakes_sleepers() || !lapse_hush_begin()) \
            return LAPSE_REAL(name) arguments; \
        result value = LAPSE_REAL(name) arguments; \
        lapse_hush_end(); \
        return value; \
    }

SLEEPER(int, nanosleep, (const struct timespec *time, struct timespec *left), (time, left))
SLEEPER(int, clock_nanosleep,
        (clockid_t clock, int flags, const struct timespec *time, struct timespec *left),
        (clock, flags, time, left))
SLEEPER(int, usleep, (useconds_t time), (time))
SLEEPER(unsigned int, sleep, (unsigned int seconds), (seconds))
SLEEPER(int, thrd_sleep, (const struct timespec *time, struct timespec *left), (time, left))
SLEEPER(int, pause, (void), ())
SLEEPER(int, poll, (struct pollfd *fds, nfds_t count, int timeout), (fds, count, timeout))
SLEEPER(int, select,
        (int count, fd_set *in, fd_set *out, fd_set *bad, struct timeval *timeout),
        (count, in, out, bad, timeout))
SLEEPER(int, epoll_wait, (int fd, struct epoll_event *events, int count, int timeout),
        (fd, events, count, timeout))
SLEEPER(int, sem_wait, (sem_t *sem), (sem))
SLEEPER(int, sem_timedwait, (sem_t *sem, const struct timespec *end), (sem, end))
SLEEPER(int, sem_clockwait, (sem_t *sem, clockid_t clock, const struct timespec *end),
        (sem, clock, end))
SLEEPER(int, msgsnd, (int queue, const void *message, size_t size, int flags),
        (queue, message, size, flags))
SLEEPER(ssize_t, msgrcv, (int queue, void *message, size_t size, long type, int flags),
        (queue, message, size, type, flags))
SLEEPER(int, semop, (int set, struct sembuf *ops, size_t count), (set, ops, count))
SLEEPER(int, semtimedop,
        (int set, struct sembuf *ops, size_t count, const struct timespec *timeout),
        (set, ops, count, timeout))

/* Sockets with SO_RCVTIMEO or SO_SNDTIMEO are not restarted. */
SLEEPER(ssize_t, recv, (int fd, void *to, size_t size, int flags), (fd, to, size, flags))
SLEEPER(ssize_t, recvfrom,
        (int fd, void *restrict to, size_t size, int flags, struct sockaddr *restrict from,
         socklen_t *restrict length),
        (fd, to, size, flags, from, length))
SLEEPER(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
SLEEPER(int, recvmmsg,
        (int fd, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout),
        (fd, messages, count, flags, timeout))
SLEEPER(ssize_t, send, (int fd, const void *from, size_t size, int flags),
        (fd, from, size, flags))
SLEEPER(ssize_t, sendto,
        (int fd, const void *from, size_t size, int flags, const struct sockaddr *to,
         socklen_t length),
        (fd, from, size, flags, to, length))
SLEEPER(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),
        (fd, message, flags))
SLEEPER(int, accept, (int fd, struct sockaddr *restrict peer, socklen_t *restrict length),
        (fd, peer, length))
SLEEPER(int, accept4,
        (int fd, struct sockaddr *restrict peer, socklen_t *restrict length, int flags),
        (fd, peer, length, flags))
SLEEPER(int, connect, (int fd, const struct sockaddr *to, socklen_t length), (fd, to, length))

/* The forms that fortified hosts call; the C library's own names. */
int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size);
SLEEPER(int, __poll_chk, (struct pollfd *fds, nfds_t count, int timeout, size_t size),
        (fds, count, timeout, size))

/* Calls that bring a mask of their own. Without one they are like those above; with one, the mask
 * in force during the wait is the host's, with our signal added where it must not end the wait. */
#define MASKED_SLEEPER(name, parameters, arguments) \
    LAPSE_INTERPOSE int name parameters \
    { \
        struct lapse_wait_mask wait; \
        if (!mask ? !wakes_sleepers() || !lapse_hush_begin() : !lapse_taken_signal()) \
            return LAPSE_REAL(name) arguments; \
        bool hush = !mask; \
        lapse_wait_mask_begin(&wait, &mask); \
        int value = LAPSE_REAL(name) arguments; \
        lapse_wait_mask_end(&wait); \
        if (hush) \
            lapse_hush_end(); \
        return value; \
    }

MASKED_SLEEPER(ppoll,
               (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                const sigset_t *mask),
               (fds, count, timeout, mask))
int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                const sigset_t *mask, size_t size);
MASKED_SLEEPER(__ppoll_chk,
               (struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                const sigset_t *mask, size_t size),
               (fds, count, timeout, mask, size))
MASKED_SLEEPER(pselect,
               (int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict bad,
                const struct timespec *restrict timeout, const sigset_t *mask),
               (count, in, out, bad, timeout, mask))
MASKED_SLEEPER(epoll_pwait,
               (int fd, struct epoll_event *events, int count, int timeout, const sigset_t *mask),
               (fd, events, count, timeout, mask))
MASKED_SLEEPER(epoll_pwait2,
               (int fd, struct epoll_event *events, int count, const struct timespec *timeout,
                const sigset_t *mask),
               (fd, events, count, timeout, mask))
