/* SPDX-License-Identifier: MIT */
/* Raw system calls for unwind/: no errno, no libc, so they serve the signal handler and threads
 * without thread-local storage of their own alike. Return the result or a negative errno. */
#ifndef LAPSE_UNWIND_SYSTEM_CALL_H
#define LAPSE_UNWIND_SYSTEM_CALL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

static inline long lapse_system_call6(long number, long a, long b, long c, long d, long e, long f)
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

static inline long lapse_system_call3(long number, long a, long b, long c)
{
    return lapse_system_call6(number, a, b, c, 0, 0, 0);
}

#endif
