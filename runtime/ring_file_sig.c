/* SPDX-License-Identifier: MIT */
/* Recording into the session's ring, and reserving the rest of its file's room (ring_file.h says why so
 * late). Context: the handler of any thread, every signal masked; also host threads outside of it. */
#include <errno.h>

#include "ring_file.h"
#include "state.h"
#include "sys.h"

/* Once a session, by whoever comes first; what does not fit meanwhile is dropped. The rest is private memory
 * where the file has no room. The first limit is even, an odd one says that somebody is at it. */
static LAPSE_SIGSAFE void reserve_rest(struct lapse_ring *ring, uint64_t limit)
{
    char *rest = (char *)ring->control + LAPSE_RING_FIRST;
    size_t size = LAPSE_RING_SIZE - LAPSE_RING_FIRST;
    /* Relaxed: the winner alone goes on, and what it maps is published by the release below. */
    if (!atomic_compare_exchange_strong_explicit(&ring->limit, &limit, limit - 1, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    long result = lapse_sys(SYS_madvise, rest, size, MADV_POPULATE_WRITE);
    if (result)
        result = lapse_sys(SYS_mmap, rest, size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    /* release: the memory is there; pairs with the acquire in lapse_ring_reserve */
    if (result >= 0 || result < -4095)
        atomic_store_explicit(&ring->limit, LAPSE_RING_NO_LIMIT, memory_order_release);
}

LAPSE_SIGSAFE int lapse_ring_record(const struct lapse_record *record)
{
    struct lapse_ring *ring = &lapse_runtime.ring;
    int result = lapse_ring_push(ring, record);
    uint64_t limit = atomic_load_explicit(&ring->limit, memory_order_relaxed);
    if (!result || limit & 1) /* no limit is odd, too */
        return result;
    reserve_rest(ring, limit);
    return lapse_ring_push(ring, record);
}
