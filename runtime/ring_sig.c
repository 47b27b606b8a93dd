/* SPDX-License-Identifier: MIT */
/* The producers' half of the ring (ring.h has the specification, ring.c the consumer's half).
 * Context: the handler of any thread, every signal masked; also host threads outside of it. Touches
 * the ring only; uses a few words of stack. */
#include "ring.h"

#include <errno.h>

#define TRIES 64 /* each failed one means that another producer went ahead */

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "positions must be lock-free in a handler");

LAPSE_SIGSAFE bool lapse_ring_reserve(struct lapse_ring *ring, uint64_t words, uint64_t *position)
{
    struct lapse_ring_control *control = ring->control;
    /* relaxed: the compare-and-swap below checks it */
    uint64_t head = atomic_load_explicit(&control->head, memory_order_relaxed);
    for (int i = 0; i < TRIES; i++) {
        /* acquire: pairs with the release of tail in lapse_ring_hand_back, else our words could be
         * cleared by a consumer that is still busy with them */
        uint64_t tail = atomic_load_explicit(&control->tail, memory_order_acquire);
        if (head - tail > ring->mask + 1) /* stale head: the consumer is past it already */
            head = atomic_load_explicit(&control->head, memory_order_relaxed);
        /* acquire: pairs with the release in lapse_ring_record, else the memory is not there yet */
        else if (head + words - tail > ring->mask + 1 ||
                 head + words > atomic_load_explicit(&ring->limit, memory_order_acquire))
            return false;
        /* relaxed: nothing is published by head; the header word does that */
        else if (atomic_compare_exchange_weak_explicit(&control->head, &head, head + words,
                                                       memory_order_relaxed, memory_order_relaxed)) {
            *position = head;
            return true;
        }
    }
    return false;
}

static void put(struct lapse_ring *ring, uint64_t position, uint64_t value)
{
    /* relaxed: published by the header */
    atomic_store_explicit(&ring->words[position & ring->mask], value, memory_order_relaxed);
}

static uint64_t words_of(const struct lapse_record *record)
{
    return LAPSE_RECORD_FIXED + record->depth + 2 * (uint64_t)record->label_count;
}

LAPSE_SIGSAFE void lapse_ring_commit(struct lapse_ring *ring, uint64_t position,
                                     const struct lapse_record *record)
{
    put(ring, position + 1, record->time_ns);
    put(ring, position + 2, record->thread | (uint64_t)record->tid << 32);
    put(ring, position + 3, record->weight_ns);
    put(ring, position + 4, record->label_count);
    put(ring, position + 5, record->cut_cfa);
    for (uint32_t i = 0; i < record->depth; i++)
        put(ring, position + LAPSE_RECORD_FIXED + i, record->pcs[i]);
    for (uint32_t i = 0; i < 2 * record->label_count; i++)
        put(ring, position + LAPSE_RECORD_FIXED + record->depth + i, record->labels[i]);
    uint64_t header = lapse_ring_header(position, words_of(record), record->kind, record->flags);
    /* release: the words above; pairs with the acquire in lapse_ring_peek, else the consumer reads
     * half a stack */
    atomic_store_explicit(&ring->words[position & ring->mask], header, memory_order_release);
}

LAPSE_SIGSAFE int lapse_ring_push(struct lapse_ring *ring, const struct lapse_record *record)
{
    uint64_t position;
    if (!lapse_ring_reserve(ring, words_of(record), &position))
        return -ENOBUFS;
    lapse_ring_commit(ring, position, record);
    /* relaxed: a statistic, for who reads the ring of a process that died */
    if (record->kind == LAPSE_RECORD_SAMPLE)
        atomic_fetch_add_explicit(&ring->control->recorded, 1, memory_order_relaxed);
    return 0;
}
