/* SPDX-License-Identifier: MIT */
/* What the session asks of the drain thread (session.h, state.h): flush, snapshot, a name for samples
 * before their module goes, a moment without the thread, and the ids of the host. Context: host threads
 * outside the handler. */
#include "session.h"

#include <errno.h>
#include <string.h>

#include "annotations.h"
#include "control.h"
#include "drain.h"
#include "state.h"
#include "store.h"
#include "sys.h"

#define MS UINT64_C(1000000)
#define UNLOAD_WAIT (50 * MS) /* a host that unloads waits so long for the drain thread at most */

#define HOLD_WAIT (100 * MS)  /* until a drain thread that starts or ends has done so */

static _Atomic uint32_t quiesced;

void lapse_session_quiesce_forget(void)
{
    atomic_store_explicit(&quiesced, 0, memory_order_relaxed); /* relaxed: this is the only thread */
}

/* Who comes while a session ends has its samples written by that. */
static int flush_by_other_stop(void)
{
    if (lapse_control_is_mine()) /* a handler inside our own stop */
        return -EDEADLK;
    lapse_session_wait_for_stop();
    return lapse_session_state() == LAPSE_STATE_STOPPING
               ? -ETIMEDOUT : atomic_load_explicit(&lapse_drain.error, memory_order_relaxed);
}

/* A drain thread, where samples wait and there is none (none could be had when they came). -EPERM when the
 * session is over: one that was started then would be there when the next begins. */
static int ensure_drain(void)
{
    uint64_t mask = lapse_sys_block_signals();
    /* seq_cst: pairs with the stop, which sets the state and then looks at `inside` */
    atomic_fetch_add_explicit(&lapse_annotations_inside, 1, memory_order_seq_cst);
    int result = lapse_session_is_mine() ? 0 : -EPERM;
    while (atomic_load_explicit(&lapse_runtime.drain, memory_order_acquire) == LAPSE_DRAIN_NONE && !result)
        result = lapse_drain_start();
    atomic_fetch_sub_explicit(&lapse_annotations_inside, 1, memory_order_release);
    lapse_sys_restore_signals(mask);
    return result;
}

/* Several may ask at once and share an answer, and a turn that began before we asked may end after it.
 * So the answer is not enough: the ring must be handed back up to where it was when we came. A record
 * that another thread has reserved and not written yet holds up ours behind it: then we ask again. */
int lapse_session_flush(void)
{
    if (lapse_session_state() == LAPSE_STATE_STOPPING)
        return flush_by_other_stop();
    if (!lapse_session_is_mine())
        return 0;
    /* acquire: the end of a session that we see counted is not the one that we wait for */
    uint32_t ended = atomic_load_explicit(&lapse_drain.ended, memory_order_acquire);
    uint64_t target = lapse_ring_head(&lapse_runtime.ring);
    uint64_t budget = lapse_runtime.budget_ns;
    uint64_t deadline = lapse_sys_clock(CLOCK_MONOTONIC) + budget;
    if (atomic_load_explicit(&lapse_runtime.drain, memory_order_acquire) == LAPSE_DRAIN_NONE &&
        !lapse_ring_used(&lapse_runtime.ring))
        return atomic_load_explicit(&lapse_drain.error, memory_order_relaxed);
    for (uint64_t now; (now = lapse_sys_clock(CLOCK_MONOTONIC)) < deadline;) {
        struct timespec pause = { 0, (long)MS };
        int result = ensure_drain();
        bool answered = !result && lapse_drain_ask(LAPSE_DRAIN_FLUSH, deadline - now);
        if (result == -EPERM)
            lapse_session_wait_for_stop();
        if (result == -EPERM || atomic_load_explicit(&lapse_drain.ended, memory_order_acquire) != ended)
            break; /* the session is over: everything is written */
        if (answered && lapse_ring_is_past(&lapse_runtime.ring, target))
            break;
        if (result && result != -EAGAIN)
            return result;
        lapse_sys(SYS_nanosleep, &pause, 0);
    }
    return lapse_sys_clock(CLOCK_MONOTONIC) < deadline
               ? atomic_load_explicit(&lapse_drain.error, memory_order_relaxed) : -ETIMEDOUT;
}

int lapse_session_snapshot(const char *path)
{
    size_t size = strlen(path) + 1;
    int result = size > sizeof lapse_drain.snapshot_path ? -ENAMETOOLONG : lapse_control_begin();
    if (result)
        return result;
    if (!lapse_session_is_mine())
        result = -EPERM;
    else if (atomic_load_explicit(&lapse_runtime.drain, memory_order_acquire) == LAPSE_DRAIN_NONE)
        result = -ENODATA;
    if (!result) {
        memcpy(lapse_drain.snapshot_path, path, size);
        result = lapse_drain_ask(LAPSE_DRAIN_SNAPSHOT, lapse_runtime.budget_ns)
                     ? atomic_load_explicit(&lapse_drain.snapshot_result, memory_order_relaxed) : -ETIMEDOUT;
    }
    lapse_control_end();
    return result;
}

/* How many of those that unload are this thread: calls inside of calls, by destructors. */
static _Thread_local uint32_t unloading __attribute__((tls_model("initial-exec")));

void lapse_session_unload_forget(void)
{
    atomic_store_explicit(&lapse_store_unloading, unloading, memory_order_relaxed); /* relaxed: the only thread */
}

void lapse_session_unload_begin(void)
{
    unloading++;
    atomic_fetch_add_explicit(&lapse_store_unloading, 1, memory_order_relaxed);
    /* Samples that wait are named while what they ran in is still there. Where the drain thread does not
     * answer they are named later, by what is there then. */
    if (lapse_session_is_mine() && lapse_session_state() == LAPSE_STATE_RUNNING &&
        atomic_load_explicit(&lapse_runtime.drain, memory_order_acquire) == LAPSE_DRAIN_RUNNING &&
        lapse_ring_used(&lapse_runtime.ring))
        lapse_drain_ask(LAPSE_DRAIN_FLUSH, UNLOAD_WAIT);
}

void lapse_session_unload_end(void)
{
    uint64_t none = 0;
    lapse_unwind_forget();
    /* The first of several changes stays: none of them was looked at yet. Release: the list is read
     * after it; pairs with the acquire in lapse_store_intern. */
    atomic_compare_exchange_strong_explicit(&lapse_store_modules_changed_ns, &none,
                                            lapse_sys_clock(CLOCK_MONOTONIC), memory_order_release,
                                            memory_order_relaxed);
    atomic_fetch_sub_explicit(&lapse_store_unloading, 1, memory_order_relaxed);
    unloading--;
}

/* True when there is a drain thread that has to be told. While another thread's handler is about to
 * start one, it can neither be told nor be prevented: that takes some instructions. */
static bool hold_drain(void)
{
    uint64_t deadline = lapse_sys_clock(CLOCK_MONOTONIC) + HOLD_WAIT;
    while (!lapse_drain_becomes(LAPSE_DRAIN_HELD, LAPSE_DRAIN_NONE)) {
        if (lapse_drain_becomes(LAPSE_DRAIN_HELD, LAPSE_DRAIN_RUNNING))
            return true;
        if (atomic_load_explicit(&lapse_runtime.drain, memory_order_relaxed) == LAPSE_DRAIN_HELD ||
            lapse_sys_clock(CLOCK_MONOTONIC) > deadline)
            return false;
        lapse_sys(SYS_sched_yield);
    }
    return false;
}

void lapse_session_quiesce(void)
{
    if (!lapse_session_is_mine() || atomic_fetch_add_explicit(&quiesced, 1, memory_order_acq_rel))
        return;
    if (hold_drain())
        lapse_drain_ask(LAPSE_DRAIN_LEAVE, lapse_runtime.budget_ns);
    else
        lapse_drain_wait_gone(HOLD_WAIT); /* one may be on its last instructions */
}

void lapse_session_unquiesce(void)
{
    if (atomic_load_explicit(&quiesced, memory_order_acquire) &&
        atomic_fetch_sub_explicit(&quiesced, 1, memory_order_acq_rel) == 1)
        lapse_drain_becomes(LAPSE_DRAIN_NONE, LAPSE_DRAIN_HELD);
}

void lapse_session_stay_single(void)
{
    if (!lapse_session_is_mine())
        return;
    lapse_drain.wary = true;
    lapse_session_quiesce();
    atomic_store_explicit(&lapse_drain.not_before_cpu_ns,
                          lapse_sys_clock(CLOCK_PROCESS_CPUTIME_ID) + LAPSE_DRAIN_SINGLE,
                          memory_order_relaxed);
    lapse_session_unquiesce();
}

bool lapse_session_ids_begin(void)
{
    return lapse_session_is_mine() && lapse_drain_becomes(LAPSE_DRAIN_HELD, LAPSE_DRAIN_NONE);
}

/* Supplementary groups of the calling thread; `ids->more` is mapped, or NULL when there are none. */
static size_t read_ids(struct lapse_drain_ids *ids)
{
    uint32_t *users = ids->users, *groups = ids->groups;
    lapse_sys(SYS_getresuid, &users[0], &users[1], &users[2]);
    lapse_sys(SYS_getresgid, &groups[0], &groups[1], &groups[2]);
    long count = lapse_sys(SYS_getgroups, 0, 0);
    size_t size = count > 0 ? (size_t)count * sizeof *ids->more : 0;
    void *more = size ? lapse_sys_map(size) : NULL;
    count = more ? lapse_sys(SYS_getgroups, count, more) : 0;
    ids->more = more;
    ids->more_count = count > 0 ? (uint32_t)count : 0;
    return more ? size : 0;
}

void lapse_session_ids_end(bool held)
{
    struct lapse_drain_ids ids;
    if (held)
        lapse_drain_becomes(LAPSE_DRAIN_NONE, LAPSE_DRAIN_HELD);
    if (held || !lapse_session_is_mine() ||
        atomic_load_explicit(&lapse_runtime.drain, memory_order_acquire) == LAPSE_DRAIN_NONE)
        return;
    size_t mapped = read_ids(&ids);
    lapse_drain.ids = &ids;
    /* Not bounded by the exit budget: until it is done, a thread of the process has rights that the
     * host has given up. It ends when the drain does. */
    while (!lapse_drain_ask(LAPSE_DRAIN_IDS, 100 * MS))
        if (!atomic_load_explicit(&lapse_drain.alive, memory_order_acquire))
            break;
    if (mapped)
        lapse_sys(SYS_munmap, ids.more, mapped);
}
