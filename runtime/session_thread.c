/* SPDX-License-Identifier: MIT */
/* The session at the two ends of a thread (session.h): its slot, and what is said of it at last.
 * Context: the thread itself, outside the handler. */
#include "annotations.h"
#include "clocks.h"
#include "drain.h"
#include "interpose_thread.h"
#include "ring_file.h"
#include "session.h"
#include "state.h"
#include "sys.h"

void lapse_session_thread_begin(uintptr_t stack_low, uintptr_t stack_high)
{
    if (!lapse_session_is_mine())
        return;
    struct lapse_stack_bounds bounds = { stack_low, stack_high };
    lapse_thread_adopt_self(stack_high ? bounds : lapse_thread_own_bounds(), 0);
}

bool lapse_session_settle(struct lapse_slot *slot, bool armed)
{
    for (;;) {
        /* seq_cst: pairs with the state that a transition sets before it goes through the slots:
         * either it sees this one, or we see its state */
        uint32_t state = atomic_load_explicit(&lapse_runtime.state, memory_order_seq_cst);
        if (state != LAPSE_STATE_RUNNING && state != LAPSE_STATE_PAUSED)
            return false;
        if ((state == LAPSE_STATE_RUNNING) == armed)
            return true;
        armed = !armed;
        if (armed)
            lapse_clock_arm(slot, ~UINT64_C(0));
        else
            lapse_clock_disarm(slot);
    }
}

/* The last words of a thread: what was due and never came, and its CPU time. */
static void record_end(struct lapse_slot *slot)
{
    uint64_t late = lapse_clock_late(slot);
    struct lapse_record record = {
        .kind = LAPSE_RECORD_NOT_SAMPLED, .thread = slot->thread,
        .tid = (uint32_t)atomic_load_explicit(&slot->tid, memory_order_relaxed),
        .time_ns = lapse_sys_clock(CLOCK_MONOTONIC),
        .weight_ns = late * atomic_load_explicit(&slot->period_ns, memory_order_relaxed),
        .cut_cfa = late,
    };
    uint64_t unsampled = lapse_clock_unsampled(slot);
    if (unsampled) {
        record.flags = LAPSE_RECORD_UNSAMPLED;
        record.weight_ns = unsampled;
        record.cut_cfa = late = unsampled / lapse_runtime.period_ns;
        atomic_fetch_add_explicit(&lapse_runtime.unsampled_ns, unsampled, memory_order_relaxed);
    }
    /* Late ticks reached no handler: ticks == recorded + dropped holds without them. */
    if (late)
        atomic_fetch_add_explicit(&lapse_slots.gone.late, late, memory_order_relaxed);
    if (late && lapse_ring_record(&record))
        atomic_fetch_add_explicit(&lapse_slots.gone.dropped_weight, record.weight_ns, memory_order_relaxed);
    else if (late)
        atomic_fetch_add_explicit(&lapse_slots.gone.weight, record.weight_ns, memory_order_relaxed);
    if (!late && !atomic_load_explicit(&slot->counts.ticks, memory_order_relaxed))
        return;
    record.kind = LAPSE_RECORD_THREAD_END;
    record.weight_ns = lapse_sys_clock(CLOCK_THREAD_CPUTIME_ID);
    record.cut_cfa = 0;
    record.flags = 0;
    lapse_ring_record(&record); /* a full ring costs only the end time */
    lapse_drain_start_if_needed();
}

void lapse_session_thread_end(void)
{
    struct lapse_slot *slot = lapse_thread_self();
    if (!slot)
        return;
    uint64_t mask = lapse_sys_block_signals();
    lapse_thread_forget_self();
    /* seq_cst: pairs with a stop, which sets the state and then waits for who is inside: either it
     * waits for our last words, or we see that the session is over */
    atomic_fetch_add_explicit(&lapse_annotations_inside, 1, memory_order_seq_cst);
    if (lapse_session_is_mine() && lapse_slots_claim(slot)) {
        lapse_scan_note_blocked(slot, mask);
        record_end(slot);
        lapse_clock_delete(slot);
        lapse_slots_give(slot);
    }
    atomic_fetch_sub_explicit(&lapse_annotations_inside, 1, memory_order_release);
    lapse_sys_restore_signals(mask);
}
