/* SPDX-License-Identifier: MIT */
/* Careless sleeps, thousands of them, with no loop around EINTR, beside a thread that burns: none is
 * cut short, none fails. */
#include "host.h"

#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <threads.h>

static atomic_int stop;

static void *burn(void *unused)
{
    while (!atomic_load(&stop))
        host_burn_us(2000);
    return unused;
}

static void check(const char *what, bool right, int error, int64_t began, int64_t least_us)
{
    int64_t took = host_clock_us(CLOCK_MONOTONIC) - began;
    HOST_CHECK(right, "%s failed: %d after %ld us", what, error, (long)took);
    HOST_CHECK(took + 200 >= least_us, "%s took %ld us, not %ld", what, (long)took, (long)least_us);
}

static struct timespec in_us(clockid_t clock, int64_t us)
{
    struct timespec at = { 0, 0 };
    if (clock >= 0)
        clock_gettime(clock, &at);
    int64_t ns = at.tv_nsec + us * 1000;
    at.tv_sec += ns / 1000000000;
    at.tv_nsec = ns % 1000000000;
    return at;
}

#define NOW() host_clock_us(CLOCK_MONOTONIC)
/* Runs `call`, which gives `right` after at least `us`. */
#define WAITS(what, us, call, right) \
    do { \
        int64_t began = NOW(); \
        long r = (call); \
        int error = errno; \
        check(what, right, error, began, us); \
        (void)r; \
    } while (0)

static void all_sleeps(int64_t us)
{
    struct timespec time = in_us(-1, us), at;
    struct timeval value = { 0, us };
    sigset_t usr1, mask;
    struct epoll_event event;
    sem_t semaphore;
    int poll_fd = epoll_create1(EPOLL_CLOEXEC), ends[2], ms = us < 1000 ? 1 : (int)(us / 1000);
    char byte;
    sem_init(&semaphore, 0, 0);
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    WAITS("nanosleep", us, nanosleep(&time, NULL), r == 0);
    WAITS("clock_nanosleep", us, clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL), r == 0);
    at = in_us(CLOCK_MONOTONIC, us);
    WAITS("clock_nanosleep, absolute", us,
          clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL), r == 0);
    WAITS("usleep", us, usleep((useconds_t)us), r == 0);
    WAITS("thrd_sleep", us, thrd_sleep(&time, NULL), r == 0);
    WAITS("poll", ms * 1000, poll(NULL, 0, ms), r == 0);
    WAITS("ppoll", us, ppoll(NULL, 0, &time, NULL), r == 0);
    WAITS("ppoll, mask", us, ppoll(NULL, 0, &time, &mask), r == 0);
    WAITS("select", us, select(0, NULL, NULL, NULL, &value), r == 0);
    WAITS("pselect", us, pselect(0, NULL, NULL, NULL, &time, &mask), r == 0);
    WAITS("epoll_wait", ms * 1000, epoll_wait(poll_fd, &event, 1, ms), r == 0);
    WAITS("epoll_pwait", ms * 1000, epoll_pwait(poll_fd, &event, 1, ms, &mask), r == 0);
    at = in_us(CLOCK_REALTIME, us);
    WAITS("sem_timedwait", us, sem_timedwait(&semaphore, &at), r == -1 && error == ETIMEDOUT);
    WAITS("sigtimedwait", us, sigtimedwait(&usr1, NULL, &time), r == -1 && error == EAGAIN);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0) {
        struct timeval limit = { 0, us };
        setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        WAITS("recv", 0, recv(ends[0], &byte, 1, 0),
              r == -1 && (error == EAGAIN || error == EWOULDBLOCK));
        close(ends[0]);
        close(ends[1]);
    }
    sem_destroy(&semaphore);
    close(poll_fd);
}

static void *sleep_on(void *unused)
{
    for (int i = 0; i < 4; i++)
        all_sleeps(7000);
    for (int i = 0; i < 40; i++)
        all_sleeps(150);
    return unused;
}

int main(void)
{
    pthread_t burner, sleeper;
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &usr1, NULL);
    pthread_create(&burner, NULL, burn, NULL);
    pthread_create(&sleeper, NULL, sleep_on, NULL);
    sleep_on(NULL);
    WAITS("sleep", 1000000, sleep(1), r == 0);
    pthread_join(sleeper, NULL);
    atomic_store(&stop, 1);
    pthread_join(burner, NULL);
    return host_end();
}
