/* SPDX-License-Identifier: MIT */
/* The session around fork and exec (session.h). Context: the forking or executing host thread.
 *
 * The child of a fork is another process: timers are not inherited, the drain thread does not exist
 * in it, and its ring and its collected data are the parent's. It gets a session of its own. */
#include <errno.h>

#include "arena.h"
#include "clocks.h"
#include "control.h"
#include "drain.h"
#include "interpose_thread.h"
#include "session.h"
#include "state.h"
#include "store.h"
#include "sys.h"

#define HOLD_TRIES 1000

/* By the forking thread between prepare and parent/child; forks of several threads at once are held
 * one after the other. */
static _Atomic int32_t forking; /* the thread's id; 0: none */
static uint32_t nested;         /* forks in signal handlers that interrupted one of the same thread */
static uint64_t mask_before;
static bool is_held;
static struct lapse_stack_bounds bounds_before; /* of the forking thread's stack */

void lapse_session_fork_prepare(void)
{
    int32_t none = 0, self = (int32_t)lapse_sys(SYS_gettid);
    if (!lapse_session_was_mine())
        return;
    while (!atomic_compare_exchange_strong_explicit(&forking, &none, self, memory_order_acquire,
                                                    memory_order_relaxed)) {
        if (none == self) {
            nested++;
            return;
        }
        none = 0;
        lapse_sys(SYS_sched_yield);
    }
    struct lapse_slot *slot = lapse_thread_self();
    bounds_before = slot ? slot->stack : (struct lapse_stack_bounds){ 0, 0 };
    uint64_t ours = UINT64_C(1) << (lapse_runtime.signal - 1);
    lapse_sys(SYS_rt_sigprocmask, SIG_BLOCK, &ours, &mask_before, sizeof ours);
    is_held = false;
    for (int i = 0; i < HOLD_TRIES && !is_held; i++) {
        is_held = lapse_unwind_hold() == 0;
        if (!is_held)
            lapse_sys(SYS_sched_yield);
    }
}

static void let_go(void)
{
    if (nested) {
        nested--;
        return;
    }
    if (is_held)
        lapse_unwind_release();
    is_held = false;
    uint64_t mask = mask_before;
    atomic_store_explicit(&forking, 0, memory_order_release);
    lapse_sys_restore_signals(mask);
}

void lapse_session_fork_parent(void)
{
    lapse_runtime.has_forked = true;
    if (atomic_load_explicit(&forking, memory_order_relaxed))
        let_go();
}

static void close_inherited_events(void)
{
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_slot *slot = lapse_slots_at(i);
        int fd = slot ? atomic_exchange_explicit(&slot->perf_fd, -1, memory_order_relaxed) : -1;
        if (fd >= 0)
            lapse_sys(SYS_close, fd);
    }
}

void lapse_session_inherit(enum lapse_state state)
{
    lapse_arena_fork_child();
    close_inherited_events();
    lapse_session_new_process(state);
}

static enum lapse_state state_of_child(void)
{
    /* relaxed: this is the only thread */
    enum lapse_state state = (enum lapse_state)atomic_load_explicit(&lapse_runtime.state, memory_order_relaxed);
    bool is_open = state == LAPSE_STATE_RUNNING || state == LAPSE_STATE_PAUSED;
    return state == LAPSE_STATE_DISABLED || (is_open && lapse_runtime.settings.follow) ? state : LAPSE_STATE_OFF;
}

void lapse_session_fork_child(void)
{
    bool prepared = atomic_load_explicit(&forking, memory_order_relaxed) != 0;
    enum lapse_state state = state_of_child();
    struct lapse_stack_bounds bounds = prepared ? bounds_before : (struct lapse_stack_bounds){ 0, 0 };
    lapse_control_forget();
    lapse_session_inherit(state);
    if (lapse_session_is_mine())
        lapse_thread_adopt_self(bounds, 0);
    nested = 0;
    if (prepared)
        let_go();
}

/* A new image starts a session of its own (preload.c), and an exec that fails leaves a host that goes
 * on: it gets a new session with the same settings. */
static bool restart_after_exec;

void lapse_session_exec_prepare(void)
{
    /* Where another thread is at it, for its own exec, that one sees to a new session. */
    if (lapse_session_is_mine())
        restart_after_exec = true;
    lapse_session_finish(LAPSE_FINISH_EXEC, 0);
}

void lapse_session_exec_failed(void)
{
    char why[128];
    struct lapse_text error = { why, 0, sizeof why };
    if (!restart_after_exec)
        return;
    restart_after_exec = false;
    if (lapse_control_begin())
        return;
    static struct lapse_settings settings;
    settings = lapse_runtime.settings;
    lapse_session_start(&settings, ~UINT64_C(0), &error);
    lapse_control_end();
}
