/* SPDX-License-Identifier: MIT */
/* Slots: what lapse knows of each living thread. A table of blocks of 64 slots, mapped as needed and
 * never unmapped, so that a tick that arrives late finds a slot that is merely not its own any more.
 * The handler reaches its slot by the number in siginfo, not through thread-local storage.
 *
 *   state    who makes it                         who leaves it
 *   FREE     slots_give                           slots_take (lock-free list with a tag, newest first)
 *   TAKEN    slots_take                           the thread itself, or the scan: timer armed
 *   LIVE     as above                             whoever ends it claims it by compare-and-swap
 *   ENDING   the thread's end, or the scan        slots_give
 *
 * One slot in memory: the structure, the captured pcs, the trail, then the handler's stack, which grows down
 * towards them; a guard page lies below each block. No guard page per slot: with 5,000 threads that
 * would be 10,000 more mappings in a host that may have 65,530. */
#ifndef LAPSE_RUNTIME_SLOTS_H
#define LAPSE_RUNTIME_SLOTS_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trail.h"

#define LAPSE_SLOTS_PER_BLOCK 64u
#define LAPSE_SLOT_BLOCKS 2048u /* 131,072 living threads */
#define LAPSE_SLOT_PCS_OFFSET 512u
#define LAPSE_SLOT_STACK 28672u
#define LAPSE_SLOT_TRAIL_OFFSET(depth) (LAPSE_SLOT_PCS_OFFSET + (depth) * sizeof(uint64_t))

enum lapse_slot_state { LAPSE_SLOT_FREE, LAPSE_SLOT_TAKEN, LAPSE_SLOT_LIVE, LAPSE_SLOT_ENDING };

/* Counters, one writer each: the handler of the slot's thread. Read by anyone as statistics. */
struct lapse_slot_counts {
    _Atomic uint64_t ticks, merged, recorded, dropped_full, dropped_gate, truncated, failures,
        guessed, handler_ns, dropped_weight, weight, late;
};

struct lapse_slot {
    /* Written when the slot changes hands; read by the handler and the scan. */
    alignas(64) _Atomic uint32_t state;
    _Atomic uint32_t next_free; /* index + 1 */
    uint32_t index;
    _Atomic uint32_t thread;    /* number in the recording; a thread that the scan found looks for its own */
    _Atomic int32_t tid;
    _Atomic int32_t timer;      /* kernel's timer id, -1: none */
    _Atomic int32_t perf_fd;    /* -1: none */
    uint32_t scan_missed;       /* the scan's: looks without finding the thread */
    uint64_t scan_delivered;    /* the scan's: what had been delivered at the last look */
    struct lapse_stack_bounds stack;
    uint64_t start_ns;
    uint64_t first_ns;          /* the thread's CPU time at the first expiry since it was armed */
    _Atomic uint64_t period_ns; /* changed by the drain thread when handlers cost too much */
    uint64_t due_before;        /* expiries that were due before the timer was armed anew */
    void *(*start)(void *);     /* the host's function and argument, from parent to new thread */
    void *argument;
    uint32_t rounds;            /* of key destructors at the thread's end */
    _Atomic bool adopted;       /* made by the scan for a thread that had none */
    _Atomic bool excluded;      /* the thread asked not to be sampled: never armed */
    _Atomic bool blocked;       /* by a raw system call: its ticks do not come */
    bool mask_wish;             /* the host's mask, from parent to new thread */

    /* Written by the handler. */
    alignas(64) _Atomic uint32_t inside; /* handlers that run or decide whether to: 1; 2 beside a late tick */
    _Atomic uint32_t costly;             /* ticks in a row whose handler took more than its share */
    _Atomic uint64_t delivered;          /* expiries since the timer was armed, overruns included */
    _Atomic uint64_t first_cost_ns;      /* CPU time that the first tick took, where that is measured */
    struct lapse_slot_counts counts;
};
_Static_assert(sizeof(struct lapse_slot) <= LAPSE_SLOT_PCS_OFFSET, "pcs start behind the slot");

struct lapse_slots {
    /* Set before the first slot is taken, constant after. */
    uint64_t stride;
    uint32_t depth;
    _Atomic uint32_t cookie;       /* another one for each session */
    /* Any thread. */
    _Atomic uint64_t free;         /* tag << 32 | index + 1 of the newest free slot */
    _Atomic uint32_t count;        /* slots that were ever taken; all below exist or are being made */
    _Atomic uint32_t next_thread;  /* number for the next thread of the recording */
    _Atomic uint32_t living;
    _Atomic uint32_t adopted;      /* of the living ones, those that the scan made */
    _Atomic(char *) blocks[LAPSE_SLOT_BLOCKS];
    struct lapse_slot_counts gone; /* sums of slots given back */
};

extern struct lapse_slots lapse_slots;

/* Before any other call; a second one keeps the geometry of the first (depth is then its maximum). */
void lapse_slots_init(uint32_t depth, uint32_t cookie);

/* A slot in state TAKEN with a new thread number, or NULL (no memory, table full). Lock-free. */
struct lapse_slot *lapse_slots_take(void);
/* Hand a slot back that the caller has claimed (TAKEN, or ENDING by lapse_slots_claim). */
void lapse_slots_give(struct lapse_slot *slot);
/* The same for another thread's slot, whose timer is gone: a tick that was on its way may be on the slot's
 * stack still. A thread that is stopped there keeps the slot for good. */
void lapse_slots_give_when_left(struct lapse_slot *slot);
/* LIVE -> ENDING; false when someone else did. */
bool lapse_slots_claim(struct lapse_slot *slot);

/* The slot with this number, NULL when there is none. Any context. */
LAPSE_SIGSAFE struct lapse_slot *lapse_slots_at(uint32_t index);
LAPSE_SIGSAFE uint64_t *lapse_slot_pcs(struct lapse_slot *slot);
LAPSE_SIGSAFE struct lapse_trail *lapse_slot_trail(struct lapse_slot *slot);
LAPSE_SIGSAFE uintptr_t lapse_slot_stack_top(struct lapse_slot *slot);
LAPSE_SIGSAFE struct lapse_slot *lapse_slot_of_stack(uintptr_t top);

/* After fork, in the child: every slot is free again. */
void lapse_slots_reset(uint32_t cookie);

/* Sums over all slots, alive and gone. */
struct lapse_slot_totals {
    uint64_t ticks, merged, recorded, dropped_full, dropped_gate, truncated, failures, guessed,
        handler_ns, dropped_weight, weight, late;
};
void lapse_slots_totals(struct lapse_slot_totals *totals);

#endif
