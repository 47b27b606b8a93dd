/* SPDX-License-Identifier: MIT */
/* System calls without the C library: no errno, no cancellation point, no interposed function of the
 * host in between. Called by the whole runtime, in the drain thread (which has no thread descriptor
 * of the C library) and, on cold paths only, in the handler. Results are 0 or more, or -errno. */
#ifndef LAPSE_RUNTIME_SYS_H
#define LAPSE_RUNTIME_SYS_H

#include <fcntl.h>
#include <linux/futex.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

static inline long lapse_sys6(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

#define LAPSE_SYS_PICK(_1, _2, _3, _4, _5, _6, _7, name, ...) name
#define lapse_sys(...)                                                                             \
    LAPSE_SYS_PICK(__VA_ARGS__, LAPSE_SYS_6, LAPSE_SYS_5, LAPSE_SYS_4, LAPSE_SYS_3, LAPSE_SYS_2,    \
                   LAPSE_SYS_1, LAPSE_SYS_0, )(__VA_ARGS__)
#define LAPSE_SYS_0(n) lapse_sys6(n, 0, 0, 0, 0, 0, 0)
#define LAPSE_SYS_1(n, a) lapse_sys6(n, (long)(a), 0, 0, 0, 0, 0)
#define LAPSE_SYS_2(n, a, b) lapse_sys6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define LAPSE_SYS_3(n, a, b, c) lapse_sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define LAPSE_SYS_4(n, a, b, c, d) lapse_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define LAPSE_SYS_5(n, a, b, c, d, e)                                                              \
    lapse_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define LAPSE_SYS_6(n, a, b, c, d, e, f)                                                           \
    lapse_sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* Fresh zeroed pages, or NULL. */
static inline void *lapse_sys_map(size_t size)
{
    long at = lapse_sys(SYS_mmap, 0, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}

static inline uint64_t lapse_sys_clock(long clock)
{
    struct timespec now = { 0, 0 };
    lapse_sys(SYS_clock_gettime, clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline void lapse_sys_wake(void *word)
{
    lapse_sys(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX);
}

/* Sleep while *word holds `value`, at most timeout_ns. */
static inline void lapse_sys_wait(void *word, uint32_t value, uint64_t timeout_ns)
{
    struct timespec timeout = { (time_t)(timeout_ns / UINT64_C(1000000000)),
                                (long)(timeout_ns % UINT64_C(1000000000)) };
    lapse_sys(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, &timeout);
}

/* Move a descriptor of ours away from the numbers that the host counts on getting next. */
static inline long lapse_sys_move_high(long fd)
{
    struct rlimit limit = { 1024, 1024 };
    lapse_sys(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
    long least = limit.rlim_cur > 1100 ? 1000 : (long)limit.rlim_cur / 2;
    long moved = lapse_sys(SYS_fcntl, fd, F_DUPFD_CLOEXEC, least);
    if (moved < 0)
        return fd;
    lapse_sys(SYS_close, fd);
    return moved;
}

/* Block every signal of the calling thread (also the C library's own), or put the mask back. */
static inline uint64_t lapse_sys_block_signals(void)
{
    uint64_t all = ~UINT64_C(0), before = 0;
    lapse_sys(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &before, sizeof all);
    return before;
}

static inline void lapse_sys_restore_signals(uint64_t mask)
{
    lapse_sys(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &mask, 0, sizeof mask);
}

#endif
