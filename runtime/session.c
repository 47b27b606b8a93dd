/* SPDX-License-Identifier: MIT */
/* The session: start, pause, resume, end, and what fork, exec and sandboxes do to it. The table of
 * transitions is in session.h. Context: host threads outside the handler (also their own signal
 * handlers), and the drain thread for lapse_session_expire.
 *
 * Ending never shares a lock with the handler: timers are disarmed first, then we wait until no
 * handler is inside (each slot says so), then the data is touched. */
#include "session.h"

#include <errno.h>
#include <string.h>

#include "annotations.h"
#include "clocks.h"
#include "control.h"
#include "drain.h"
#include "interpose.h"
#include "interpose_thread.h"
#include "memory.h"
#include "message.h"
#include "real.h"
#include "ring_file.h"
#include "signal_keeper.h"
#include "state.h"
#include "store.h"
#include "sys.h"

#define MS UINT64_C(1000000)
#define HANDLERS_NS (100 * MS) /* longest wait for handlers to leave: one may sit in a stopped thread */

struct lapse_runtime lapse_runtime = { .signal = 0 };

static bool is_this_process(void)
{
    return lapse_sys(SYS_getpid) == (long)lapse_runtime.pid;
}

enum lapse_state lapse_session_state(void)
{
    /* seq_cst: acquires what the transition wrote before; and for who counts itself in and then asks, see
     * lapse_session_thread_end */
    enum lapse_state state = (enum lapse_state)atomic_load_explicit(&lapse_runtime.state, memory_order_seq_cst);
    /* A copy made by a fork that was not seen, or a vfork's child: the session is the parent's. */
    return state == LAPSE_STATE_OFF || state == LAPSE_STATE_DISABLED || is_this_process() ? state : LAPSE_STATE_OFF;
}

static void set_state(enum lapse_state state)
{
    /* seq_cst: pairs with the handler, which sets `inside` and then reads the state */
    atomic_store_explicit(&lapse_runtime.state, state, memory_order_seq_cst);
    lapse_annotations_open(state == LAPSE_STATE_RUNNING || state == LAPSE_STATE_PAUSED);
}

static bool is_open(enum lapse_state state)
{
    return state == LAPSE_STATE_RUNNING || state == LAPSE_STATE_PAUSED;
}

bool lapse_session_is_mine(void)
{
    return is_open(lapse_session_state());
}

bool lapse_session_is_unfinished(void)
{
    enum lapse_state state = lapse_session_state();
    return is_open(state) || state == LAPSE_STATE_STOPPING;
}

bool lapse_session_was_mine(void)
{
    return lapse_runtime.pid && is_this_process();
}

int lapse_session_signal(void)
{
    return lapse_runtime.signal;
}

static void for_each_living(void (*act)(struct lapse_slot *, void *), void *context)
{
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_slot *slot = lapse_slots_at(i);
        if (slot && atomic_load_explicit(&slot->state, memory_order_acquire) == LAPSE_SLOT_LIVE)
            act(slot, context);
    }
}

static void disarm(struct lapse_slot *slot, void *context)
{
    (void)context;
    lapse_clock_disarm(slot);
}

static void arm(struct lapse_slot *slot, void *context)
{
    (void)context;
    lapse_clock_arm(slot, ~UINT64_C(0));
}

static void add_late(struct lapse_slot *slot, void *context)
{
    uint64_t unsampled = lapse_clock_unsampled(slot);
    *(uint64_t *)context += unsampled ? unsampled / lapse_runtime.period_ns : lapse_clock_late(slot);
}

static void drop_slot(struct lapse_slot *slot, void *context)
{
    (void)context;
    lapse_clock_delete(slot);
    if (lapse_slots_claim(slot))
        lapse_slots_give_when_left(slot);
}

/* Until every handler (and whoever writes other records) that saw the old state has left, or for a
 * bounded time: false then. */
static bool wait_for_handlers(void)
{
    uint64_t deadline = lapse_sys_clock(CLOCK_MONOTONIC) + HANDLERS_NS;
    /* seq_cst: pairs with the thread that counts itself in and then looks at the session */
    while (atomic_load_explicit(&lapse_annotations_inside, memory_order_seq_cst) &&
           lapse_sys_clock(CLOCK_MONOTONIC) < deadline)
        lapse_sys(SYS_sched_yield);
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_slot *slot = lapse_slots_at(i);
        /* seq_cst: see set_state; also acquires what the handler wrote */
        while (slot && atomic_load_explicit(&slot->inside, memory_order_seq_cst)) {
            if (lapse_sys_clock(CLOCK_MONOTONIC) > deadline)
                return false;
            lapse_sys(SYS_sched_yield);
        }
    }
    return !atomic_load_explicit(&lapse_annotations_inside, memory_order_seq_cst);
}

/* Waits in an end are bounded: a handler in a stopped thread, or a drain thread on a slow disk, may
 * still be at work on what a new session is about to renew. */
static bool last_session_has_left(void)
{
    return wait_for_handlers() && lapse_drain_wait_gone(HANDLERS_NS) &&
           !atomic_load_explicit(&lapse_drain.alive, memory_order_acquire);
}

/* Ring, drain thread's stack: mapped once, used by every session of the process. */
static int map_memory(void)
{
    if (lapse_drain.memory)
        return 0;
    char *memory = lapse_sys_map(LAPSE_RING_SIZE + LAPSE_DRAIN_MEMORY);
    if (!memory)
        return -ENOMEM;
    lapse_drain.memory = memory + LAPSE_RING_SIZE;
    return lapse_ring_init(&lapse_runtime.ring, memory, LAPSE_RING_WORDS, 0);
}

static uint32_t random_cookie(void)
{
    return (uint32_t)lapse_clock_random(UINT32_MAX) + 1;
}

static void random_id(uint8_t id[16])
{
    for (int i = 0; i < 2; i++) {
        uint64_t random = lapse_clock_random(UINT64_MAX);
        memcpy(id + 8 * i, &random, sizeof random);
    }
}

static int expand_path(void)
{
    struct lapse_path_values values = {
        lapse_runtime.pid, lapse_runtime.program, lapse_runtime.start_realtime_ns / UINT64_C(1000000000),
        lapse_runtime.cwd,
    };
    return lapse_path_expand(lapse_store.spool.base, lapse_runtime.settings.out, &values);
}

/* What every new session has of its own: at start and in a fork's child. */
static int new_identity(bool open)
{
    const struct lapse_settings *settings = &lapse_runtime.settings;
    lapse_runtime.pid = (uint32_t)lapse_sys(SYS_getpid);
    lapse_runtime.start_ns = lapse_sys_clock(CLOCK_MONOTONIC);
    lapse_runtime.start_realtime_ns = lapse_sys_clock(CLOCK_REALTIME);
    lapse_runtime.begin_ns = lapse_runtime.start_ns + settings->delay_ns;
    lapse_runtime.end_ns = settings->duration_ns ? lapse_runtime.begin_ns + settings->duration_ns
                                                 : UINT64_MAX;
    random_id(lapse_runtime.session_id);
    lapse_runtime.has_forked = false;
    lapse_runtime.before_ns = 0;
    /* relaxed: no other thread is in the runtime yet */
    atomic_store_explicit(&lapse_runtime.unsampled_threads, 0, memory_order_relaxed);
    atomic_store_explicit(&lapse_runtime.unsampled_ns, 0, memory_order_relaxed);
    atomic_store_explicit(&lapse_runtime.rate_lowered, 0, memory_order_relaxed);
    lapse_signal_keeper_reset();
    lapse_drain_reset();
    int result = lapse_ring_renew(open);
    return result ? result : expand_path();
}

static void take_place(void)
{
    if (lapse_sys(SYS_getcwd, lapse_runtime.cwd, sizeof lapse_runtime.cwd) < 0 ||
        lapse_runtime.cwd[0] != '/') /* removed, or outside of the root: opening says which */
        memcpy(lapse_runtime.cwd, "/proc/self/cwd", sizeof "/proc/self/cwd");
    if (!lapse_runtime.cwd[1])
        lapse_runtime.cwd[0] = 0; /* the root: "" + "/" + name */
    struct lapse_text program = { lapse_runtime.program, 0, sizeof lapse_runtime.program };
    lapse_runtime.program[0] = 0;
    lapse_text_string(&program, program_invocation_short_name);
}

static int set_up(const struct lapse_settings *settings, struct lapse_text *error)
{
    char why[256] = "";
    lapse_interpose_refuse_pipes(true);
    int result = lapse_unwind_init(why, sizeof why);
    lapse_interpose_refuse_pipes(false);
    if (!result)
        result = map_memory();
    if (!result)
        result = lapse_threads_init();
    if (result) {
        lapse_text_string(error, why[0] ? why : lapse_error_text(result));
        return result;
    }
    lapse_runtime.settings = *settings;
    lapse_runtime.budget_ns = settings->exit_budget_ms * MS;
    lapse_runtime.signal = settings->signal;
    lapse_runtime.clock = settings->clock;
    lapse_runtime.period_ns = settings->period_ns;
    take_place();
    lapse_slots_init(settings->depth, random_cookie());
    lapse_runtime.depth = settings->depth < lapse_slots.depth ? settings->depth : lapse_slots.depth;
    /* Left by a thread that was stopped for longer than the last stop waited for it. */
    result = lapse_drain_is_there() && !lapse_drain_ask(LAPSE_DRAIN_LEAVE, lapse_runtime.budget_ns)
                 ? -EBUSY : new_identity(true);
    if (result)
        lapse_text_string(error, result == -ENAMETOOLONG ? "LAPSE_OUT: name too long"
                                                         : lapse_error_text(result));
    return result;
}

/* The process has a second copy of lapse (one preloaded, one linked), and that one has a session: two
 * would each take the other's ticks for the host's. The handler of the signal tells. */
static bool another_copy_runs(int signal)
{
    struct { uint64_t handler, flags, restorer, mask; } action = { 0, 0, 0, 0 };
    struct { uint64_t mark; int32_t spare, state; } head;
    uint32_t state = LAPSE_STATE_OFF;
    if (lapse_sys(SYS_rt_sigaction, signal, 0, &action, sizeof action.mask) < 0 ||
        action.handler < sizeof head || action.handler == (uint64_t)(uintptr_t)lapse_handler_entry ||
        lapse_memory_read(&head, (uintptr_t)action.handler - sizeof head, sizeof head) != sizeof head ||
        head.mark != LAPSE_HANDLER_MARK)
        return false;
    uintptr_t place = (uintptr_t)((int64_t)action.handler + head.state);
    return lapse_memory_read(&state, place, sizeof state) == sizeof state &&
           state != LAPSE_STATE_OFF && state != LAPSE_STATE_DISABLED;
}

static int install_handler(void)
{
    const struct lapse_interpose_options options = {
        .signal = lapse_runtime.signal,
        .entry = lapse_handler_entry,
        .respect_mask = lapse_runtime.settings.respect_mask,
        .no_follow = !lapse_runtime.settings.follow,
        .wakes_sleepers = lapse_runtime.clock == LAPSE_CLOCK_WALL,
    };
    return lapse_interpose_begin(&options);
}

/* The signal that pauses and resumes. Async-signal-safe: control operations are raw system calls,
 * and one that is interrupted by us refuses instead of waiting for itself. */
static void toggle(int signal)
{
    int saved = errno;
    (void)signal;
    lapse_session_pause(lapse_session_state() == LAPSE_STATE_RUNNING);
    errno = saved;
}

static int install_toggle(void)
{
    struct sigaction action = { .sa_handler = toggle, .sa_flags = SA_RESTART | SA_ONSTACK };
    if (!lapse_runtime.settings.toggle_signal)
        return 0;
    return LAPSE_REAL(sigaction)(lapse_runtime.settings.toggle_signal, &action, NULL) ? -EINVAL : 0;
}

/* CPU time of the process so far, up to LAPSE_INHERITED_CPU_NS, is start-up: loader and libraries.
 * More than that was mostly used by the image before an exec, which has counted it: noted, in no sample. */
static uint64_t count_from(const struct lapse_settings *settings, uint64_t from_ns)
{
    return settings->delay_ns || lapse_sys_clock(CLOCK_THREAD_CPUTIME_ID) > LAPSE_INHERITED_CPU_NS
               ? ~UINT64_C(0) : from_ns;
}

int lapse_session_start(const struct lapse_settings *settings, uint64_t from_ns, struct lapse_text *error)
{
    int result = 0;
    enum lapse_state state = lapse_session_state();
    if (lapse_runtime.pid && !is_this_process())
        lapse_session_inherit(state);
    if (state != LAPSE_STATE_OFF)
        result = is_open(state) ? -EALREADY : state == LAPSE_STATE_STOPPING ? -EBUSY : -EPERM;
    else if (another_copy_runs(settings->signal))
        result = -EALREADY;
    else if (!last_session_has_left())
        result = -EBUSY;
    else if (!(result = set_up(settings, error)) && !(result = install_handler()) &&
             !(result = install_toggle())) {
        lapse_annotations_new_session();
        set_state(settings->start_paused ? LAPSE_STATE_PAUSED : LAPSE_STATE_RUNNING);
        from_ns = count_from(settings, from_ns);
        lapse_runtime.before_ns = from_ns ? lapse_sys_clock(CLOCK_PROCESS_CPUTIME_ID) : 0;
        lapse_thread_adopt_self(lapse_thread_own_bounds(), from_ns);
        if (!lapse_runtime.preloaded)
            lapse_scan_threads();
    }
    return result;
}

void lapse_session_new_process(enum lapse_state state)
{
    /* relaxed: this is the only thread */
    lapse_session_quiesce_forget();
    lapse_session_unload_forget();
    lapse_scan_forget();
    atomic_store_explicit(&lapse_runtime.drain, LAPSE_DRAIN_NONE, memory_order_relaxed);
    atomic_store_explicit(&lapse_drain.alive, 0, memory_order_relaxed);
    atomic_store_explicit(&lapse_annotations_inside, 0, memory_order_relaxed);
    lapse_thread_forget_self();
    if (lapse_drain.memory) {
        lapse_slots_reset(random_cookie());
        lapse_ring_file_forget();
        if (new_identity(is_open(state)))
            state = LAPSE_STATE_DISABLED;
    }
    set_state(state);
}

int lapse_session_pause(bool pause)
{
    int result = lapse_control_begin();
    if (result)
        return result;
    uint32_t from = pause ? LAPSE_STATE_RUNNING : LAPSE_STATE_PAUSED;
    uint32_t to = pause ? LAPSE_STATE_PAUSED : LAPSE_STATE_RUNNING;
    enum lapse_state state = lapse_session_state();
    if (state == LAPSE_STATE_OFF) { /* also where the memory says otherwise, being a copy */
        lapse_control_end();
        return -EPERM;
    }
    if (pause && state == LAPSE_STATE_RUNNING) {
        for_each_living(disarm, NULL);
        wait_for_handlers();
    }
    /* Compare: the drain thread may end a session whose duration is over meanwhile. */
    if (atomic_compare_exchange_strong_explicit(&lapse_runtime.state, &from, to, memory_order_seq_cst,
                                                memory_order_acquire)) {
        /* Again for those that began meanwhile. */
        for_each_living(pause ? disarm : arm, NULL);
    } else if (!is_open((enum lapse_state)from)) {
        result = from == LAPSE_STATE_STOPPING ? -EBUSY : -EPERM;
    }
    lapse_control_end();
    return result;
}

/* Open -> STOPPING by exactly one thread. */
static bool begin_stop(void)
{
    uint32_t state = (uint32_t)lapse_session_state();
    while (is_open((enum lapse_state)state))
        if (atomic_compare_exchange_weak_explicit(&lapse_runtime.state, &state, LAPSE_STATE_STOPPING,
                                                  memory_order_seq_cst, memory_order_acquire)) {
            lapse_annotations_open(false);
            return true;
        }
    return false;
}

void lapse_session_wait_for_stop(void)
{
    uint64_t budget = lapse_runtime.budget_ns;
    uint64_t deadline = lapse_sys_clock(CLOCK_MONOTONIC) + budget;
    while (lapse_session_state() == LAPSE_STATE_STOPPING && lapse_sys_clock(CLOCK_MONOTONIC) < deadline) {
        struct timespec step = { 0, (long)MS };
        lapse_sys(SYS_nanosleep, &step, 0);
    }
}

static void forgive_late(struct lapse_slot *slot, void *context)
{
    (void)context;
    slot->due_before = 0;
}

/* The thread that ends the process, if it ticks: see take_end_cost in drain.c. */
static void note_ending(enum lapse_finish_reason reason)
{
    const struct lapse_slot *slot = reason == LAPSE_FINISH_EXIT ? lapse_thread_self() : NULL;
    bool ticks = slot && slot->first_ns && lapse_runtime.clock == LAPSE_CLOCK_CPU;
    lapse_drain.ending = ticks ? slot->thread : 0;
    lapse_drain.ending_tid = ticks ? (uint32_t)slot->tid : 0;
    lapse_drain.ending_ns = ticks ? lapse_sys_clock(CLOCK_THREAD_CPUTIME_ID) : 0;
    lapse_drain.first_tick_ns = ticks && lapse_drain.ending_ns < lapse_runtime.period_ns ? slot->first_cost_ns : 0;
}

static void quiet_timers(enum lapse_finish_reason reason, uint64_t *late)
{
    note_ending(reason);
    for_each_living(disarm, NULL);
    wait_for_handlers();
    /* A shell's child between fork and exec: the new image counts this time as its start-up. */
    if (reason == LAPSE_FINISH_EXEC && lapse_sys_clock(CLOCK_PROCESS_CPUTIME_ID) <= LAPSE_INHERITED_CPU_NS)
        for_each_living(forgive_late, NULL);
    *late = 0;
    for_each_living(add_late, late);
    lapse_signal_keeper_end(*late);
}

/* No drain thread can be had, and none is there or about to be: we write. */
static void write_in_its_place(void)
{
    if (!lapse_drain_becomes(LAPSE_DRAIN_REPLACED, LAPSE_DRAIN_NONE))
        return;
    if (!atomic_load_explicit(&lapse_drain.alive, memory_order_acquire)) {
        lapse_drain.before_ns = lapse_sys_clock(CLOCK_THREAD_CPUTIME_ID);
        /* The host's own may be small. */
        lapse_drain_call(lapse_drain_finish, lapse_drain.memory + LAPSE_DRAIN_STACK);
    }
    lapse_drain_becomes(LAPSE_DRAIN_NONE, LAPSE_DRAIN_REPLACED);
}

/* A process that is at its end needs no thread for what it has to write. Its own table of descriptors serves,
 * if it has room: for a spool and a file of /proc, each once more while it gets its high number. */
static bool writes_itself(void)
{
    long tried[3];
    if (lapse_drain.reason != LAPSE_FINISH_EXIT)
        return false;
    for (int i = 0; i < 3; i++)
        tried[i] = lapse_sys(SYS_open, "/", O_PATH | O_CLOEXEC);
    for (int i = 0; i < 3; i++)
        if (tried[i] >= 0)
            lapse_sys(SYS_close, tried[i]);
    return tried[2] >= 0;
}

/* The drain thread writes, or we. One that was told to leave may still be at it, or leave before it hears us:
 * only when it is gone comes the next. */
static bool write_within(uint64_t budget_ns)
{
    uint64_t deadline = lapse_sys_clock(CLOCK_MONOTONIC) + budget_ns, now;
    while (!atomic_load_explicit(&lapse_drain.finished, memory_order_acquire)) {
        if (!atomic_load_explicit(&lapse_drain.alive, memory_order_acquire)) {
            lapse_drain_becomes(LAPSE_DRAIN_NONE, LAPSE_DRAIN_HELD);
            if (writes_itself() || lapse_drain_start()) {
                write_in_its_place();
                continue;
            }
        }
        if ((now = lapse_sys_clock(CLOCK_MONOTONIC)) >= deadline)
            return false;
        if (!lapse_drain_ask(LAPSE_DRAIN_FINISH, deadline - now))
            lapse_sys(SYS_sched_yield);
    }
    return true;
}

static void write_everything(uint64_t late)
{
    uint64_t budget = lapse_runtime.budget_ns;
    lapse_drain_becomes(LAPSE_DRAIN_NONE, LAPSE_DRAIN_HELD);
    if (atomic_load_explicit(&lapse_runtime.drain, memory_order_acquire) == LAPSE_DRAIN_NONE && !late &&
        !lapse_ring_used(&lapse_runtime.ring) && !lapse_store.samples) {
        lapse_ring_file_retire();
        return;
    }
    if (write_within(budget + budget / 4))
        lapse_drain_wait_gone(100 * MS);
    else
        lapse_message(LAPSE_MESSAGE_BUDGET, "the outputs took longer than LAPSE_EXIT_BUDGET_MS",
                      NULL, NULL, NULL);
}

/* Ticks already sent to this thread: nothing may be pending when exec resets the handler. */
static void swallow_pending_ticks(void)
{
    uint64_t set = UINT64_C(1) << (lapse_runtime.signal - 1);
    struct timespec none = { 0, 0 };
    siginfo_t info;
    while (lapse_sys(SYS_rt_sigtimedwait, &set, &info, &none, sizeof set) > 0)
        if (!lapse_session_owns_tick(lapse_runtime.signal, &info)) {
            lapse_sys(SYS_rt_tgsigqueueinfo, lapse_runtime.pid, lapse_sys(SYS_gettid), lapse_runtime.signal, &info);
            break;
        }
}

int lapse_session_stop(void)
{
    int result = lapse_control_begin();
    if (result)
        return result;
    lapse_session_finish(LAPSE_FINISH_STOP, 0);
    lapse_control_end();
    return atomic_load_explicit(&lapse_drain.error, memory_order_relaxed);
}

void lapse_session_finish(enum lapse_finish_reason reason, int signal)
{
    if (!is_this_process())
        return;
    /* First: a handler of the host that came between the two would wait for the end of what it has
     * interrupted. */
    uint64_t late, mask = lapse_sys_block_signals();
    if (!begin_stop()) {
        lapse_sys_restore_signals(mask);
        lapse_session_wait_for_stop();
        return;
    }
    lapse_drain.reason = reason;
    lapse_drain.signal = (uint32_t)signal;
    quiet_timers(reason, &late);
    write_everything(late);
    for_each_living(drop_slot, NULL);
    lapse_thread_forget_self();
    swallow_pending_ticks();
    set_state(reason == LAPSE_FINISH_SANDBOX ? LAPSE_STATE_DISABLED : LAPSE_STATE_OFF);
    lapse_sys_restore_signals(mask);
}

bool lapse_session_expire(void)
{
    uint64_t late;
    if (!begin_stop())
        return false;
    lapse_drain.reason = LAPSE_FINISH_STOP;
    lapse_drain.signal = 0;
    quiet_timers(LAPSE_FINISH_STOP, &late);
    lapse_drain_finish();
    for_each_living(drop_slot, NULL);
    set_state(LAPSE_STATE_OFF);
    return true;
}

void lapse_session_sandbox(void)
{
    if (lapse_session_is_mine()) {
        lapse_session_finish(LAPSE_FINISH_SANDBOX, 0);
        lapse_message(LAPSE_MESSAGE_INFO, "the program enters a sandbox; its profile ends here", NULL,
                      NULL, NULL);
    }
    if (lapse_session_state() == LAPSE_STATE_OFF && is_this_process())
        set_state(LAPSE_STATE_DISABLED);
}

void lapse_session_disable(void)
{
    set_state(LAPSE_STATE_DISABLED);
}

/* Our descriptors: the spool's, and one per thread with the perf clock. */
static bool slot_owns(uint32_t index, int fd)
{
    struct lapse_slot *slot = lapse_slots_at(index);
    return slot && atomic_load_explicit(&slot->perf_fd, memory_order_relaxed) == fd;
}

/* The spool's descriptor, if it is among the host's. */
static int shared_spool(void)
{
    return atomic_load_explicit(&lapse_drain.private_files, memory_order_relaxed)
        ? -1 : atomic_load_explicit(&lapse_store.spool.fd, memory_order_relaxed);
}

bool lapse_session_owns_descriptor(int fd)
{
    if (fd < 0)
        return false;
    if (shared_spool() == fd)
        return true;
    uint32_t index = atomic_load_explicit(&lapse_clock_slot_by_fd[(uint32_t)fd % LAPSE_CLOCK_FDS],
                                          memory_order_relaxed);
    return index && slot_owns(index - 1, fd);
}

int lapse_session_next_descriptor(int from)
{
    int next = -1, spool = shared_spool();
    if (spool >= from)
        next = spool;
    if (lapse_runtime.clock != LAPSE_CLOCK_PERF)
        return next;
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_slot *slot = lapse_slots_at(i);
        int fd = slot ? atomic_load_explicit(&slot->perf_fd, memory_order_relaxed) : -1;
        if (fd >= from && fd >= 0 && (next < 0 || fd < next))
            next = fd;
    }
    return next;
}

/* Return from main and exit: after the host's own destructors. */
__attribute__((destructor)) static void at_exit_of_process(void)
{
    lapse_session_finish(LAPSE_FINISH_EXIT, 0);
}
