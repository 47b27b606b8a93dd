/* SPDX-License-Identifier: MIT */
/* The consumer's half of the ring (ring.h has the specification, ring_sig.c the producers' half).
 * Context: the drain thread; lapse_ring_init before the first tick. */
#include "ring.h"

#include <errno.h>

int lapse_ring_init(struct lapse_ring *ring, void *memory, uint64_t words, uint64_t start)
{
    if (words < 8 || (words & (words - 1)))
        return -EINVAL;
    if (ring->control != memory || ring->mask != words - 1) { /* a renewed one may be looked at meanwhile */
        ring->control = memory;
        ring->words = (_Atomic uint64_t *)((char *)memory + LAPSE_RING_CONTROL_SIZE);
        ring->mask = words - 1;
    }
    ring->control->words = words;
    atomic_store_explicit(&ring->limit, LAPSE_RING_NO_LIMIT, memory_order_relaxed);
    /* relaxed: no handler and no drain thread yet */
    atomic_store_explicit(&ring->control->head, start, memory_order_relaxed);
    atomic_store_explicit(&ring->control->tail, start, memory_order_relaxed);
    ring->control->magic = LAPSE_RING_MAGIC;
    return 0;
}

uint64_t lapse_ring_used(const struct lapse_ring *ring)
{
    /* relaxed: a statistic. tail first, so that the difference is never negative. */
    uint64_t tail = atomic_load_explicit(&ring->control->tail, memory_order_relaxed);
    return atomic_load_explicit(&ring->control->head, memory_order_relaxed) - tail;
}

uint64_t lapse_ring_head(const struct lapse_ring *ring)
{
    /* relaxed: what the calling thread pushed itself is in it; of others it need not know */
    return atomic_load_explicit(&ring->control->head, memory_order_relaxed);
}

bool lapse_ring_is_past(const struct lapse_ring *ring, uint64_t position)
{
    /* acquire: pairs with the release in lapse_ring_hand_back */
    return atomic_load_explicit(&ring->control->tail, memory_order_acquire) - position <= UINT64_MAX / 2;
}

void lapse_ring_hand_back(struct lapse_ring *ring, uint64_t position)
{
    /* relaxed: only the consumer writes tail */
    uint64_t tail = atomic_load_explicit(&ring->control->tail, memory_order_relaxed);
    uint64_t end = position - tail > ring->mask + 1 ? tail + ring->mask + 1 : position;
    if (position == tail)
        return;
    for (uint64_t p = tail; p != end; p++)
        atomic_store_explicit(&ring->words[p & ring->mask], 0, memory_order_relaxed);
    /* release: our reads and the zeros before tail; pairs with the acquire in lapse_ring_reserve,
     * else a producer writes words that are still being read, or finds them cleared afterwards */
    atomic_store_explicit(&ring->control->tail, position, memory_order_release);
}

static uint64_t get(struct lapse_ring *ring, uint64_t position)
{
    /* relaxed: ordered by the acquire of the record's header */
    return atomic_load_explicit(&ring->words[position & ring->mask], memory_order_relaxed);
}

int lapse_ring_peek(struct lapse_ring *ring, uint64_t *position, struct lapse_record *record,
                    uint64_t *scratch, uint32_t scratch_words)
{
    /* relaxed: only the consumer writes tail; head only bounds what may be looked at */
    uint64_t at = *position, tail = atomic_load_explicit(&ring->control->tail, memory_order_relaxed);
    uint64_t used = atomic_load_explicit(&ring->control->head, memory_order_relaxed) - tail;
    if (at - tail >= used || at - tail > ring->mask) /* behind a full ring lies its oldest record */
        return 0;
    /* acquire: pairs with the release in lapse_ring_commit */
    uint64_t header = atomic_load_explicit(&ring->words[at & ring->mask], memory_order_acquire);
    if (!header)
        return 0;
    uint64_t words = header & 0xffff;
    record->kind = (uint8_t)(header >> 16);
    record->flags = (uint8_t)(header >> 24);
    if (words < LAPSE_RECORD_FIXED || words - LAPSE_RECORD_FIXED > scratch_words ||
        header != lapse_ring_header(at, words, record->kind, record->flags) ||
        words > used - (at - tail)) {
        *position = tail + used;
        return -EBADMSG;
    }
    uint64_t thread = get(ring, at + 2);
    record->time_ns = get(ring, at + 1);
    record->thread = (uint32_t)thread;
    record->tid = (uint32_t)(thread >> 32);
    record->weight_ns = get(ring, at + 3);
    uint64_t pairs = get(ring, at + 4), rest = words - LAPSE_RECORD_FIXED;
    record->cut_cfa = get(ring, at + 5);
    record->label_count = pairs <= rest / 2 ? (uint32_t)pairs : 0;
    record->depth = (uint32_t)(rest - 2 * record->label_count);
    for (uint32_t i = 0; i < rest; i++)
        scratch[i] = get(ring, at + LAPSE_RECORD_FIXED + i);
    record->pcs = scratch;
    record->labels = scratch + record->depth;
    *position = at + words;
    return 1;
}

int lapse_ring_pop(struct lapse_ring *ring, struct lapse_record *record, uint64_t *scratch,
                   uint32_t scratch_words)
{
    uint64_t position = atomic_load_explicit(&ring->control->tail, memory_order_relaxed);
    int result = lapse_ring_peek(ring, &position, record, scratch, scratch_words);
    lapse_ring_hand_back(ring, position);
    return result;
}

bool lapse_ring_is_valid(const struct lapse_ring *ring)
{
    uint64_t head = atomic_load_explicit(&ring->control->head, memory_order_relaxed);
    uint64_t tail = atomic_load_explicit(&ring->control->tail, memory_order_relaxed);
    uint64_t size = ring->mask + 1;
    if (head - tail > size)
        return false;
    for (uint64_t p = head; p != tail + size; p++)
        if (atomic_load_explicit(&ring->words[p & ring->mask], memory_order_relaxed))
            return false;
    return true;
}
