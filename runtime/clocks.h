/* SPDX-License-Identifier: MIT */
/* What makes a thread tick: a POSIX timer on the thread's own CPU clock, a perf task-clock event, or
 * a timer on the monotonic clock. Armed in the thread itself or by the drain thread's scan, always
 * outside the handler, by raw system calls. */
#ifndef LAPSE_RUNTIME_CLOCKS_H
#define LAPSE_RUNTIME_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "slots.h"

/* Kernel's number of a thread's CPU clock. */
static inline long lapse_clock_of_thread(int32_t tid)
{
    return (long)((~(uint32_t)tid << 3) | 6u);
}

/* Make the slot's timer and arm it (unless paused). slot->tid is set. `from_ns`: the thread's CPU
 * time from which it is counted (expiries due between then and now are late ticks); ~0: from now.
 * Returns 0 or a negative errno: -EAGAIN when the kernel has no room for another timer. */
int lapse_clock_create(struct lapse_slot *slot, uint64_t from_ns, bool armed);
void lapse_clock_delete(struct lapse_slot *slot);
/* First expiry at a random point of the period; or no expiry any more. Late ticks are kept. */
void lapse_clock_arm(struct lapse_slot *slot, uint64_t from_ns);
void lapse_clock_disarm(struct lapse_slot *slot);

/* Tick half as often from now on. */
void lapse_clock_lower_rate(struct lapse_slot *slot);

/* Expiries of this thread that were due by now and never delivered (CPU clock only; the others have
 * none). Exact when called by the thread itself with signals blocked. */
uint64_t lapse_clock_late(const struct lapse_slot *slot);

/* CPU time that no tick can stand for: the thread has no timer, or keeps the signal blocked. 0 for
 * others. Any thread. */
uint64_t lapse_clock_unsampled(const struct lapse_slot *slot);

/* The slot whose perf event has this descriptor, or NULL. Handler. */
#define LAPSE_CLOCK_FDS 65536u
extern _Atomic uint32_t lapse_clock_slot_by_fd[LAPSE_CLOCK_FDS]; /* slot number + 1, by low bits */
LAPSE_SIGSAFE struct lapse_slot *lapse_clock_slot_of_fd(int fd);

/* Uniform in [0, bound). Any thread outside the handler. */
uint64_t lapse_clock_random(uint64_t bound);

#endif
