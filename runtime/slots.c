/* SPDX-License-Identifier: MIT */
/* See slots.h. Context: host threads at their start and end, session, drain thread; lapse_slots_at,
 * _pcs and _stack_top in the handler are in handler_sig.c's half, slots_sig.c. */
#include "slots.h"

#include <string.h>

#include "sys.h"

#define LEAVE_NS UINT64_C(100000000) /* as long as a stop waits for handlers */

struct lapse_slots lapse_slots;

static uint64_t round_page(uint64_t size)
{
    return (size + 4095) & ~UINT64_C(4095);
}

void lapse_slots_init(uint32_t depth, uint32_t cookie)
{
    lapse_slots.cookie = cookie;
    memset((void *)&lapse_slots.gone, 0, sizeof lapse_slots.gone); /* counters are a session's */
    if (!lapse_slots.stride) {
        lapse_slots.depth = depth;
        lapse_slots.stride = round_page(LAPSE_SLOT_TRAIL_OFFSET(depth) + sizeof(struct lapse_trail) +
                                        LAPSE_SLOT_STACK);
    }
}

/* The block that holds slot `index`, mapped by whoever comes first. */
static bool ensure_block(uint32_t index)
{
    _Atomic(char *) *place = &lapse_slots.blocks[index / LAPSE_SLOTS_PER_BLOCK];
    /* acquire: pairs with the release below, else a zeroed page could be seen as it was before */
    if (atomic_load_explicit(place, memory_order_acquire))
        return true;
    uint64_t size = lapse_slots.stride * LAPSE_SLOTS_PER_BLOCK;
    char *memory = lapse_sys_map(size + 4096);
    if (!memory)
        return false;
    lapse_sys(SYS_mprotect, memory, 4096, PROT_NONE);
    char *expected = NULL;
    if (!atomic_compare_exchange_strong_explicit(place, &expected, memory + 4096,
                                                 memory_order_release, memory_order_acquire))
        lapse_sys(SYS_munmap, memory, size + 4096);
    return true;
}

static struct lapse_slot *pop_free(void)
{
    /* acquire: pairs with the release in lapse_slots_give: next_free of the slot on top */
    uint64_t top = atomic_load_explicit(&lapse_slots.free, memory_order_acquire);
    while ((uint32_t)top) {
        struct lapse_slot *slot = lapse_slots_at((uint32_t)top - 1);
        uint64_t next = atomic_load_explicit(&slot->next_free, memory_order_relaxed);
        /* The tag makes a top that was taken and given back in between another value. */
        if (atomic_compare_exchange_weak_explicit(&lapse_slots.free, &top,
                                                  ((top >> 32) + 1) << 32 | next,
                                                  memory_order_acquire, memory_order_acquire))
            return slot;
    }
    return NULL;
}

static struct lapse_slot *new_slot(void)
{
    uint32_t index = atomic_load_explicit(&lapse_slots.count, memory_order_relaxed);
    do {
        if (index >= LAPSE_SLOT_BLOCKS * LAPSE_SLOTS_PER_BLOCK || !ensure_block(index))
            return NULL;
    } while (!atomic_compare_exchange_weak_explicit(&lapse_slots.count, &index, index + 1,
                                                    memory_order_acq_rel, memory_order_relaxed));
    struct lapse_slot *slot = lapse_slots_at(index);
    slot->index = index;
    return slot;
}

struct lapse_slot *lapse_slots_take(void)
{
    struct lapse_slot *slot = pop_free();
    if (!slot)
        slot = new_slot();
    if (!slot)
        return NULL;
    /* relaxed: the slot is ours alone until its state says LIVE */
    atomic_store_explicit(&slot->tid, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->timer, -1, memory_order_relaxed);
    atomic_store_explicit(&slot->perf_fd, -1, memory_order_relaxed);
    atomic_store_explicit(&slot->costly, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->delivered, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->first_cost_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&slot->period_ns, 0, memory_order_relaxed);
    memset(&slot->stack, 0, sizeof slot->stack);
    memset((void *)&slot->counts, 0, sizeof slot->counts);
    slot->due_before = slot->first_ns = slot->start_ns = 0;
    slot->rounds = slot->scan_missed = 0;
    slot->scan_delivered = 0;
    slot->mask_wish = false;
    atomic_store_explicit(&slot->adopted, false, memory_order_relaxed);
    atomic_store_explicit(&slot->excluded, false, memory_order_relaxed);
    atomic_store_explicit(&slot->blocked, false, memory_order_relaxed);
    slot->thread = atomic_fetch_add_explicit(&lapse_slots.next_thread, 1, memory_order_relaxed) + 1;
    atomic_fetch_add_explicit(&lapse_slots.living, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->state, LAPSE_SLOT_TAKEN, memory_order_release);
    return slot;
}

bool lapse_slots_claim(struct lapse_slot *slot)
{
    uint32_t live = LAPSE_SLOT_LIVE;
    /* acquire: what the thread wrote before it was LIVE; release: pairs with the scan's acquire */
    return atomic_compare_exchange_strong_explicit(&slot->state, &live, LAPSE_SLOT_ENDING,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

#define COUNTS(X)                                                                                  \
    X(ticks) X(merged) X(recorded) X(dropped_full) X(dropped_gate) X(truncated) X(failures)        \
    X(guessed) X(handler_ns) X(dropped_weight) X(weight) X(late)

void lapse_slots_give(struct lapse_slot *slot)
{
#define KEEP(name)                                                                                 \
    atomic_fetch_add_explicit(&lapse_slots.gone.name,                                              \
                              atomic_load_explicit(&slot->counts.name, memory_order_relaxed),      \
                              memory_order_relaxed);
    COUNTS(KEEP)
    memset((void *)&slot->counts, 0, sizeof slot->counts);
    if (atomic_exchange_explicit(&slot->adopted, false, memory_order_relaxed))
        atomic_fetch_sub_explicit(&lapse_slots.adopted, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->state, LAPSE_SLOT_FREE, memory_order_relaxed);
    atomic_fetch_sub_explicit(&lapse_slots.living, 1, memory_order_relaxed);
    uint64_t top = atomic_load_explicit(&lapse_slots.free, memory_order_relaxed);
    do
        atomic_store_explicit(&slot->next_free, (uint32_t)top, memory_order_relaxed);
    /* release: next_free and the cleared slot; pairs with the acquire in pop_free */
    while (!atomic_compare_exchange_weak_explicit(&lapse_slots.free, &top,
                                                  ((top >> 32) + 1) << 32 | (slot->index + 1),
                                                  memory_order_release, memory_order_relaxed));
}

void lapse_slots_give_when_left(struct lapse_slot *slot)
{
    uint64_t deadline = lapse_sys_clock(CLOCK_MONOTONIC) + LEAVE_NS;
    /* seq_cst: see tick_is_current */
    while (atomic_load_explicit(&slot->inside, memory_order_seq_cst)) {
        if (lapse_sys_clock(CLOCK_MONOTONIC) > deadline)
            return;
        lapse_sys(SYS_sched_yield);
    }
    lapse_slots_give(slot);
}

void lapse_slots_reset(uint32_t cookie)
{
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_relaxed);
    lapse_slots.cookie = cookie;
    memset((void *)&lapse_slots.gone, 0, sizeof lapse_slots.gone);
    atomic_store_explicit(&lapse_slots.free, 0, memory_order_relaxed);
    atomic_store_explicit(&lapse_slots.living, 0, memory_order_relaxed);
    atomic_store_explicit(&lapse_slots.adopted, 0, memory_order_relaxed);
    atomic_store_explicit(&lapse_slots.next_thread, 0, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_slot *slot = lapse_slots_at(i);
        if (!slot)
            continue;
        slot->index = i;
        atomic_store_explicit(&slot->inside, 0, memory_order_relaxed); /* those threads are not here */
        memset((void *)&slot->counts, 0, sizeof slot->counts);
        atomic_store_explicit(&slot->adopted, false, memory_order_relaxed);
        atomic_fetch_add_explicit(&lapse_slots.living, 1, memory_order_relaxed);
        lapse_slots_give(slot);
    }
}

void lapse_slots_totals(struct lapse_slot_totals *totals)
{
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_acquire);
    memset(totals, 0, sizeof *totals);
#define ADD_GONE(name) totals->name = atomic_load_explicit(&lapse_slots.gone.name, memory_order_relaxed);
    COUNTS(ADD_GONE)
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_slot *slot = lapse_slots_at(i);
        if (!slot)
            continue;
#define ADD(name) totals->name += atomic_load_explicit(&slot->counts.name, memory_order_relaxed);
        COUNTS(ADD)
    }
}
