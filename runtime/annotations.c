/* SPDX-License-Identifier: MIT */
/* The application's side of annotations.h: labels, spans, pauses and names of threads (lapse.h).
 * Context: host threads, also their own signal handlers; never our handler. A signal handler of the
 * host may push and pop between any two instructions here, as long as it pops what it pushed. */
#include "annotations.h"

#include <errno.h>
#include <time.h>

#include "clocks.h"
#include "drain.h"
#include "interpose_thread.h"
#include "lapse.h"
#include "news.h"
#include "ring_file.h"
#include "session.h"
#include "state.h"
#include "sys.h"

_Atomic uint64_t lapse_annotations_dropped;
_Atomic uint32_t lapse_annotations_inside;

/* Written by control operations, which exclude each other. */
static uint32_t sessions;

void lapse_annotations_new_session(void)
{
    sessions += sessions == UINT32_MAX ? 2 : 1;
    atomic_store_explicit(&lapse_annotations_dropped, 0, memory_order_relaxed);
}

void lapse_annotations_open(bool open)
{
    /* seq_cst: see send; for all others a number by which threads tell their own state */
    atomic_store_explicit(&lapse_annotations_session, open ? sessions : 0, memory_order_seq_cst);
}

static uint32_t open_session(void)
{
    return atomic_load_explicit(&lapse_annotations_session, memory_order_relaxed);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now); /* vDSO */
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The thread's first words in this session; those of an earlier one are void. A fork's child goes on
 * with the session number, and so with the labels, of its parent. */
static __attribute__((noinline, cold)) void attach(struct lapse_annotations *own, uint32_t session)
{
    own->tid = (int32_t)lapse_sys(SYS_gettid);
    if (own->session == session)
        return;
    atomic_store_explicit(&own->label_depth, 0, memory_order_relaxed);
    own->span_depth = own->paused = own->thread = 0;
    atomic_signal_fence(memory_order_release);
    own->session = session;
}

/* The thread's slot: from its key, else (a thread that the scan found) by its id. */
static struct lapse_slot *find_slot(int32_t tid)
{
    struct lapse_slot *slot = lapse_thread_self();
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_acquire);
    for (uint32_t i = 0; i < count && !slot; i++) {
        struct lapse_slot *other = lapse_slots_at(i);
        if (other && atomic_load_explicit(&other->state, memory_order_acquire) == LAPSE_SLOT_LIVE &&
            atomic_load_explicit(&other->tid, memory_order_relaxed) == tid)
            slot = other;
    }
    return slot;
}

/* The thread's number in the recording, 0 when it can have none. */
static uint32_t own_number(struct lapse_annotations *own)
{
    if (own->thread)
        return own->thread;
    struct lapse_slot *slot = find_slot(own->tid);
    if (!slot) {
        lapse_thread_adopt_self(lapse_thread_own_bounds(), ~UINT64_C(0));
        slot = lapse_thread_self();
    }
    return own->thread = slot ? slot->thread : 0;
}

/* A record that is no sample, from a host thread; thread 0: the calling one, asked for in here, where its slot
 * is not given to another. A ring that is full is the drain's to empty; we do not wait for it. */
static int send(struct lapse_record *record)
{
    int result = -EPERM;
    uint64_t mask = lapse_sys_block_signals();
    /* seq_cst: pairs with the stop, which closes the session and then looks at `inside` */
    atomic_fetch_add_explicit(&lapse_annotations_inside, 1, memory_order_seq_cst);
    uint32_t session = atomic_load_explicit(&lapse_annotations_session, memory_order_seq_cst);
    if (session && session == lapse_annotations.session) {
        if (!record->thread)
            record->thread = own_number(&lapse_annotations);
        result = record->thread ? lapse_ring_record(record) : -ENOMEM;
        lapse_drain_start_if_needed();
        lapse_news_look(record);
    }
    /* release: the record; pairs with the acquire of the stop */
    atomic_fetch_sub_explicit(&lapse_annotations_inside, 1, memory_order_release);
    lapse_sys_restore_signals(mask);
    return result;
}

static void send_name(const struct lapse_annotations *own, uint32_t thread)
{
    struct lapse_record record = {
        .kind = LAPSE_RECORD_THREAD_NAME, .thread = thread, .tid = (uint32_t)own->tid,
        .time_ns = lapse_sys_clock(CLOCK_MONOTONIC), .cut_cfa = (uint64_t)(uintptr_t)own->name,
    };
    send(&record); /* no room: the thread keeps the kernel's name */
}

static void leave_alone(struct lapse_slot *slot, bool excluded)
{
    /* relaxed: a timer that a resume arms at this very moment finds the flag of the thread itself */
    atomic_store_explicit(&slot->excluded, excluded, memory_order_relaxed);
    if (excluded)
        lapse_clock_disarm(slot);
    else if (lapse_session_state() == LAPSE_STATE_RUNNING)
        lapse_clock_arm(slot, ~UINT64_C(0));
}

void lapse_annotations_begin(struct lapse_slot *slot)
{
    struct lapse_annotations *own = &lapse_annotations;
    attach(own, sessions);
    own->thread = slot->thread;
    if (own->excluded)
        leave_alone(slot, true);
    if (own->name)
        send_name(own, slot->thread);
}

static __attribute__((noinline, cold)) void attach_and_push(const char *key, const char *value,
                                                            uint32_t session)
{
    attach(&lapse_annotations, session);
    lapse_label_push(key, value);
}

/* Counted in instructions (bench/labels): the rare way out is a tail call, so that nothing is saved. */
LAPSE_API void lapse_label_push(const char *key, const char *value)
{
    struct lapse_annotations *own = &lapse_annotations;
    uint32_t session = open_session();
    if (!session)
        return;
    if (__builtin_expect(own->session != session, 0)) {
        attach_and_push(key, value, session);
        return;
    }
    uint32_t depth = atomic_load_explicit(&own->label_depth, memory_order_relaxed);
    if (depth < LAPSE_LABELS_MAX) {
        own->labels[depth].key = key;
        own->labels[depth].value = value;
    }
    /* The compiler's fence: the handler that sees the depth sees the pair. */
    atomic_signal_fence(memory_order_release);
    atomic_store_explicit(&own->label_depth, depth + 1, memory_order_relaxed);
}

LAPSE_API void lapse_label_pop(void)
{
    struct lapse_annotations *own = &lapse_annotations;
    uint32_t depth = atomic_load_explicit(&own->label_depth, memory_order_relaxed);
    /* A label that was pushed before the session began is not there. Whoever has a depth has had a
     * session, so that its number is not the 0 of none. */
    if (own->session == open_session() && depth)
        atomic_store_explicit(&own->label_depth, depth - 1, memory_order_relaxed);
}

LAPSE_API void lapse_span_begin(const char *name)
{
    struct lapse_annotations *own = &lapse_annotations;
    uint32_t session = open_session();
    if (!session)
        return;
    if (own->session != session)
        attach(own, session);
    if (own->span_depth < LAPSE_SPANS_MAX) {
        own->spans[own->span_depth].name = name;
        own->spans[own->span_depth].start_ns = now_ns();
    }
    own->span_depth++;
}

LAPSE_API void lapse_span_end(void)
{
    struct lapse_annotations *own = &lapse_annotations;
    uint32_t session = open_session();
    if (!session || own->session != session || !own->span_depth)
        return;
    if (--own->span_depth >= LAPSE_SPANS_MAX) {
        atomic_fetch_add_explicit(&lapse_annotations_dropped, 1, memory_order_relaxed);
        return;
    }
    struct lapse_record record = {
        .kind = LAPSE_RECORD_SPAN, .tid = (uint32_t)own->tid,
        .time_ns = now_ns(),
        .weight_ns = own->spans[own->span_depth].start_ns,
        .cut_cfa = (uint64_t)(uintptr_t)own->spans[own->span_depth].name,
    };
    if (send(&record))
        atomic_fetch_add_explicit(&lapse_annotations_dropped, 1, memory_order_relaxed);
}

LAPSE_API void lapse_thread_pause(void)
{
    struct lapse_annotations *own = &lapse_annotations;
    uint32_t session = open_session();
    if (!session)
        return;
    if (own->session != session)
        attach(own, session);
    own->paused++;
    atomic_signal_fence(memory_order_seq_cst);
}

LAPSE_API void lapse_thread_resume(void)
{
    struct lapse_annotations *own = &lapse_annotations;
    uint32_t session = open_session();
    atomic_signal_fence(memory_order_seq_cst);
    if (session && own->session == session && own->paused)
        own->paused--;
}

/* The flag holds back what is on its way; without the timer the thread is not even interrupted. */
static int exclude(bool excluded)
{
    struct lapse_annotations *own = &lapse_annotations;
    if (excluded == (own->excluded != 0))
        return 0;
    uint64_t mask = lapse_sys_block_signals();
    own->tid = (int32_t)lapse_sys(SYS_gettid);
    own->excluded = excluded;
    struct lapse_slot *slot = lapse_session_is_mine() ? find_slot(own->tid) : NULL;
    if (slot)
        leave_alone(slot, excluded);
    lapse_sys_restore_signals(mask);
    return 0;
}

LAPSE_API int lapse_thread_exclude(void)
{
    return exclude(true);
}

LAPSE_API int lapse_thread_include(void)
{
    return exclude(false);
}

LAPSE_API int lapse_thread_name(const char *name)
{
    struct lapse_annotations *own = &lapse_annotations;
    const char *kept = lapse_intern(name);
    if (!kept)
        return -ENOMEM;
    uint64_t mask = lapse_sys_block_signals();
    own->name = kept;
    if (lapse_session_is_mine()) {
        attach(own, sessions);
        send_name(own, 0);
    }
    lapse_sys_restore_signals(mask);
    return 0;
}
