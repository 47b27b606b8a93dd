/* SPDX-License-Identifier: MIT */
/* The tick handler.
 * Context: any thread of the host, anywhere, every signal masked (the C library's own too), so
 * nothing interrupts it and it never nests. It takes no lock, allocates nothing, and once the rules
 * of the interrupted code are cached makes no system call (the clock is read through the vDSO).
 * Entered through handler_entry.S: lapse_handler_enter on the host's stack, lapse_handler_tick on the
 * slot's. errno is the host's: saved and restored around everything. */
#include <errno.h>
#include <signal.h>
#include <time.h>

#include "annotations.h"
#include "clocks.h"
#include "drain.h"
#include "interpose.h"
#include "news.h"
#include "ring_file.h"
#include "session.h"
#include "state.h"
#include "sys.h"
#include "walk.h"

/* Every so many ticks the handler's own time is taken. */
#define COST_EVERY 8
/* A handler may take 1/5 of what its ticks stand for. */
#define COST_SHARE 5

LAPSE_SIGSAFE uintptr_t lapse_handler_enter(int signal, siginfo_t *info, void *context,
                                            uintptr_t return_address);
LAPSE_SIGSAFE void lapse_handler_tick(int signal, siginfo_t *info, ucontext_t *context, uintptr_t stack);

/* The slot whose tick this is, NULL when it is none of ours. Nothing in siginfo is trusted: the
 * number is checked against the cookie and the table, then the timer against the slot's. */
static LAPSE_SIGSAFE struct lapse_slot *slot_of_tick(int signal, const siginfo_t *info)
{
    if (signal != lapse_runtime.signal)
        return NULL;
    if (info->si_code == SI_TIMER) {
        uint64_t value = (uint64_t)(uintptr_t)info->si_value.sival_ptr;
        if (value >> 32 != lapse_slots.cookie)
            return NULL;
        return lapse_slots_at((uint32_t)value);
    }
    if (info->si_code > 0 && info->si_code <= POLL_HUP && lapse_runtime.clock == LAPSE_CLOCK_PERF)
        return lapse_clock_slot_of_fd(info->si_fd);
    return NULL;
}

/* A slot may have changed hands since the tick was sent. seq_cst: who takes a slot away takes its timer
 * first and then looks at `inside`; we count ourselves in first and then look at the timer. */
static LAPSE_SIGSAFE bool tick_is_current(const struct lapse_slot *slot, const siginfo_t *info)
{
    if (info->si_code == SI_TIMER)
        return atomic_load_explicit(&slot->timer, memory_order_seq_cst) == info->si_timerid;
    return atomic_load_explicit(&slot->perf_fd, memory_order_seq_cst) == info->si_fd;
}

static LAPSE_SIGSAFE void leave(struct lapse_slot *slot)
{
    /* release: everything before; pairs with the acquire of who waits until we are outside */
    atomic_fetch_sub_explicit(&slot->inside, 1, memory_order_release);
}

bool lapse_session_owns_tick(int signal, const void *siginfo)
{
    return slot_of_tick(signal, siginfo) != NULL;
}

/* Context: the host's stack. Returns the stack to go on with, 0 when the tick needs nothing more. A
 * host that took the signal past us and calls what it found there may have other signals let through:
 * its ticks are not sampled, and the signal is soon ours again. */
LAPSE_SIGSAFE uintptr_t lapse_handler_enter(int signal, siginfo_t *info, void *context,
                                            uintptr_t return_address)
{
    struct lapse_slot *slot = slot_of_tick(signal, info);
    if (!slot) {
        /* errno is the host handler's affair */
        lapse_interpose_foreign(signal, info, context, return_address);
        return 0;
    }
    /* From here on the slot stays this thread's, and no session ends and begins: its stack is ours. */
    atomic_fetch_add_explicit(&slot->inside, 1, memory_order_seq_cst);
    if (tick_is_current(slot, info) && lapse_interpose_from_kernel(return_address))
        return lapse_slot_stack_top(slot);
    leave(slot);
    return 0;
}

static LAPSE_SIGSAFE void count(_Atomic uint64_t *counter, uint64_t by)
{
    /* relaxed, no read-modify-write: this handler is the only writer */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

static LAPSE_SIGSAFE uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* vDSO */
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static LAPSE_SIGSAFE void capture(struct lapse_slot *slot, const ucontext_t *context,
                                  struct lapse_record *record)
{
    struct lapse_walk walk = { .pcs = lapse_slot_pcs(slot), .max = lapse_runtime.depth,
                               .stack = slot->stack, .trail = lapse_slot_trail(slot) };
    lapse_walk(&walk, context); /* reads cannot fault: also in a fault handler, on a broken stack */
    record->pcs = walk.pcs;
    record->depth = walk.depth;
    record->cut_cfa = walk.cut_cfa;
    if (walk.flags & LAPSE_WALK_TRUNCATED) {
        record->flags = LAPSE_RECORD_TRUNCATED;
        count(&slot->counts.truncated, 1);
    } else if (walk.flags & (LAPSE_WALK_FAILED | LAPSE_WALK_GATE_CLOSED)) {
        record->flags = LAPSE_RECORD_FAILED;
        count(walk.flags & LAPSE_WALK_FAILED ? &slot->counts.failures : &slot->counts.dropped_gate, 1);
    }
    if (walk.flags & LAPSE_WALK_GUESSED)
        for (uint32_t i = 0; i < walk.depth; i++)
            count(&slot->counts.guessed, walk.pcs[i] >> 63);
}

static LAPSE_SIGSAFE void record_tick(struct lapse_slot *slot, const ucontext_t *context,
                                      uint64_t time, uint64_t weight)
{
    uint64_t labels[2 * LAPSE_LABELS_MAX];
    int32_t tid = atomic_load_explicit(&slot->tid, memory_order_relaxed);
    struct lapse_record record = {
        .kind = LAPSE_RECORD_SAMPLE, .thread = slot->thread, .tid = (uint32_t)tid,
        .time_ns = time, .weight_ns = weight, .labels = labels,
    };
    capture(slot, context, &record);
    record.label_count = lapse_annotations_labels(tid, labels);
    if (lapse_ring_record(&record)) {
        count(&slot->counts.dropped_full, 1);
        count(&slot->counts.dropped_weight, weight);
    } else {
        count(&slot->counts.recorded, 1);
        count(&slot->counts.weight, weight);
    }
    lapse_drain_start_if_needed();
    lapse_news_look(&record);
}

/* The handler's own time: a share of the ticks is measured and stands for the others. */
static LAPSE_SIGSAFE void note_cost(struct lapse_slot *slot, uint64_t ticks, uint64_t time,
                                    uint64_t weight)
{
    bool suspicious = atomic_load_explicit(&slot->costly, memory_order_relaxed) != 0;
    if (ticks % COST_EVERY && !suspicious)
        return;
    uint64_t cost = now_ns() - time;
    if (!(ticks % COST_EVERY))
        count(&slot->counts.handler_ns, cost * COST_EVERY);
    /* relaxed: read by the drain thread as a hint */
    uint32_t costly = atomic_load_explicit(&slot->costly, memory_order_relaxed);
    atomic_store_explicit(&slot->costly, cost > weight / COST_SHARE ? costly + 1 : 0,
                          memory_order_relaxed);
}

/* Context: the slot's own stack, whose top tells the slot. */
LAPSE_SIGSAFE void lapse_handler_tick(int signal, siginfo_t *info, ucontext_t *context, uintptr_t stack)
{
    int saved = errno;
    struct lapse_slot *slot = lapse_slot_of_stack(stack);
    (void)signal;
    uint64_t expiries = 1;
    if (info->si_code == SI_TIMER && info->si_overrun > 0)
        expiries += (uint64_t)info->si_overrun;
    /* seq_cst: pairs with the stop, which stores the state and then looks at `inside`: one sees the other */
    if (atomic_load_explicit(&lapse_runtime.state, memory_order_seq_cst) == LAPSE_STATE_RUNNING) {
        uint64_t time = now_ns();
        uint64_t weight = expiries * atomic_load_explicit(&slot->period_ns, memory_order_relaxed);
        bool is_first = lapse_runtime.may_wait && !atomic_load_explicit(&slot->delivered, memory_order_relaxed);
        uint64_t before = is_first ? lapse_sys_clock(CLOCK_THREAD_CPUTIME_ID) : 0;
        count(&slot->delivered, expiries);
        bool paused = lapse_annotations_paused(atomic_load_explicit(&slot->tid, memory_order_relaxed));
        if (time >= lapse_runtime.begin_ns && time < lapse_runtime.end_ns && !paused) {
            count(&slot->counts.ticks, 1);
            count(&slot->counts.merged, expiries - 1);
            record_tick(slot, context, time, weight);
            note_cost(slot, atomic_load_explicit(&slot->counts.ticks, memory_order_relaxed), time,
                      weight);
        } else if (time >= lapse_runtime.end_ns) {
            lapse_drain_start_if_needed();
        }
        if (is_first)
            atomic_store_explicit(&slot->first_cost_ns, lapse_sys_clock(CLOCK_THREAD_CPUTIME_ID) - before,
                                  memory_order_relaxed);
    }
    leave(slot);
    errno = saved;
}
