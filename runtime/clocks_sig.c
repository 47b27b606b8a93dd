/* SPDX-License-Identifier: MIT */
/* From the descriptor of a perf event to its slot (clocks.h). Context: the handler. */
#include "clocks.h"

_Atomic uint32_t lapse_clock_slot_by_fd[LAPSE_CLOCK_FDS];

LAPSE_SIGSAFE struct lapse_slot *lapse_clock_slot_of_fd(int fd)
{
    if (fd < 0)
        return NULL;
    /* relaxed: the slot's own perf_fd decides below */
    uint32_t index = atomic_load_explicit(&lapse_clock_slot_by_fd[(uint32_t)fd % LAPSE_CLOCK_FDS],
                                          memory_order_relaxed);
    struct lapse_slot *slot = index ? lapse_slots_at(index - 1) : NULL;
    return slot && atomic_load_explicit(&slot->perf_fd, memory_order_relaxed) == fd ? slot : NULL;
}
