/* SPDX-License-Identifier: MIT */
/* See control.h. */
#include "control.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "sys.h"

#define MS UINT64_C(1000000)
#define LONGEST_NS (2000 * MS)
#define LOOK_AFTER_NS (20 * MS) /* a turn that takes so long may be that of a thread that is gone */

static _Atomic int32_t owner; /* thread id; 0: nobody */

/* acquire: what the last owner did; pairs with the release in lapse_control_end */
static bool take(int32_t from, int32_t self)
{
    return atomic_compare_exchange_strong_explicit(&owner, &from, self, memory_order_acquire,
                                                   memory_order_relaxed);
}

int lapse_control_begin(void)
{
    int32_t self = (int32_t)lapse_sys(SYS_gettid);
    uint64_t start = lapse_sys_clock(CLOCK_MONOTONIC);
    while (!take(0, self)) {
        int32_t other = atomic_load_explicit(&owner, memory_order_relaxed);
        if (other == self)
            return -EDEADLK;
        uint64_t waited = lapse_sys_clock(CLOCK_MONOTONIC) - start;
        if (waited > LONGEST_NS)
            return -EBUSY;
        /* Forked by a raw call while another thread held it: that thread takes nothing back. */
        if (other && waited > LOOK_AFTER_NS &&
            lapse_sys(SYS_tgkill, lapse_sys(SYS_getpid), other, 0) == -ESRCH && take(other, self))
            return 0;
        lapse_sys(SYS_sched_yield);
    }
    return 0;
}

void lapse_control_end(void)
{
    atomic_store_explicit(&owner, 0, memory_order_release);
}

bool lapse_control_is_mine(void)
{
    return atomic_load_explicit(&owner, memory_order_relaxed) == (int32_t)lapse_sys(SYS_gettid);
}

void lapse_control_forget(void)
{
    /* relaxed: this is the only thread */
    atomic_store_explicit(&owner, 0, memory_order_relaxed);
}
