/* SPDX-License-Identifier: MIT */
/* Every cell of the table of session states in runtime/session.h, in real sessions. Each test is a
 * process of its own. STOPPING is seen by putting the state there, as the thread inside stop does. */
#include "session.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "annotations.h"
#include "clocks.h"
#include "drain.h"
#include "state.h"
#include "store.h"

static char out[] = "/tmp/lapse-session-XXXXXX";

/* Bring a new process into this state. */
static void enter(enum lapse_state state)
{
    static char path[128];
    cr_assert(mkdtemp(out));
    snprintf(path, sizeof path, "%s/out", out);
    const struct lapse_options options = { .out = path, .hz = 1, .exports = LAPSE_EXPORT_NONE,
        .exit_budget_ms = 200, .start_paused = state == LAPSE_STATE_PAUSED };
    if (state != LAPSE_STATE_OFF)
        cr_assert_eq(lapse_start(&options), 0);
    if (state == LAPSE_STATE_STOPPING || state == LAPSE_STATE_DISABLED)
        lapse_runtime.state = state;
    cr_assert_eq(lapse_session_state(), state);
}

/* The state of a forked child, by way of the calls that the interposed fork makes. */
static enum lapse_state state_in_child(void)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit((int)lapse_session_state() + 10);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    return (enum lapse_state)(WEXITSTATUS(status) - 10);
}

#define CELL(state, event) Test(session, state##_##event, .timeout = 20)
#define EXPECT(result, wanted, after)                                                              \
    do {                                                                                           \
        cr_expect_eq((result), (wanted));                                                          \
        cr_expect_eq(lapse_session_state(), LAPSE_STATE_##after);                                  \
    } while (0)

CELL(off, start) { enter(LAPSE_STATE_OFF); EXPECT(lapse_start(&(struct lapse_options){ .out = "/tmp/lapse-session", .hz = 1 }), 0, RUNNING); }
CELL(off, pause) { enter(LAPSE_STATE_OFF); EXPECT(lapse_pause(), -EPERM, OFF); }
CELL(off, resume) { enter(LAPSE_STATE_OFF); EXPECT(lapse_resume(), -EPERM, OFF); }
CELL(off, stop) { enter(LAPSE_STATE_OFF); EXPECT(lapse_stop(), 0, OFF); }
CELL(off, fork) { enter(LAPSE_STATE_OFF); EXPECT(state_in_child(), LAPSE_STATE_OFF, OFF); }

CELL(running, start) { enter(LAPSE_STATE_RUNNING); EXPECT(lapse_start(NULL), -EALREADY, RUNNING); }
CELL(running, pause) { enter(LAPSE_STATE_RUNNING); EXPECT(lapse_pause(), 0, PAUSED); }
CELL(running, resume) { enter(LAPSE_STATE_RUNNING); EXPECT(lapse_resume(), 0, RUNNING); }
CELL(running, stop) { enter(LAPSE_STATE_RUNNING); EXPECT(lapse_stop(), 0, OFF); }
CELL(running, fork) { enter(LAPSE_STATE_RUNNING); EXPECT(state_in_child(), LAPSE_STATE_RUNNING, RUNNING); }
CELL(running, sandbox) { enter(LAPSE_STATE_RUNNING); lapse_session_sandbox(); EXPECT(lapse_start(NULL), -EPERM, DISABLED); }

CELL(paused, start) { enter(LAPSE_STATE_PAUSED); EXPECT(lapse_start(NULL), -EALREADY, PAUSED); }
CELL(paused, pause) { enter(LAPSE_STATE_PAUSED); EXPECT(lapse_pause(), 0, PAUSED); }
CELL(paused, resume) { enter(LAPSE_STATE_PAUSED); EXPECT(lapse_resume(), 0, RUNNING); }
CELL(paused, stop) { enter(LAPSE_STATE_PAUSED); EXPECT(lapse_stop(), 0, OFF); }
CELL(paused, fork) { enter(LAPSE_STATE_PAUSED); EXPECT(state_in_child(), LAPSE_STATE_PAUSED, PAUSED); }
CELL(paused, sandbox) { enter(LAPSE_STATE_PAUSED); lapse_session_sandbox(); EXPECT(0, 0, DISABLED); }

CELL(stopping, start) { enter(LAPSE_STATE_STOPPING); EXPECT(lapse_start(NULL), -EBUSY, STOPPING); }
CELL(stopping, pause) { enter(LAPSE_STATE_STOPPING); EXPECT(lapse_pause(), -EBUSY, STOPPING); }
CELL(stopping, resume) { enter(LAPSE_STATE_STOPPING); EXPECT(lapse_resume(), -EBUSY, STOPPING); }
CELL(stopping, fork) { enter(LAPSE_STATE_STOPPING); EXPECT(state_in_child(), LAPSE_STATE_OFF, STOPPING); }
CELL(stopping, stop_waits_within_the_budget)
{
    enter(LAPSE_STATE_STOPPING);
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    lapse_stop();
    clock_gettime(CLOCK_MONOTONIC, &after);
    long ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    cr_expect_geq(ms, 200);
    cr_expect_lt(ms, 2000);
}

CELL(disabled, start) { enter(LAPSE_STATE_DISABLED); EXPECT(lapse_start(NULL), -EPERM, DISABLED); }
CELL(disabled, pause) { enter(LAPSE_STATE_DISABLED); EXPECT(lapse_pause(), -EPERM, DISABLED); }
CELL(disabled, resume) { enter(LAPSE_STATE_DISABLED); EXPECT(lapse_resume(), -EPERM, DISABLED); }
CELL(disabled, stop) { enter(LAPSE_STATE_DISABLED); EXPECT(lapse_stop(), 0, DISABLED); }
CELL(disabled, fork) { enter(LAPSE_STATE_DISABLED); EXPECT(state_in_child(), LAPSE_STATE_DISABLED, DISABLED); }
CELL(disabled, sandbox) { enter(LAPSE_STATE_DISABLED); lapse_session_sandbox(); EXPECT(0, 0, DISABLED); }

/* A session can follow a session; each has files of its own. */
CELL(off, start_again)
{
    enter(LAPSE_STATE_RUNNING);
    EXPECT(lapse_stop(), 0, OFF);
    EXPECT(lapse_start(&(struct lapse_options){ .out = "/tmp/lapse-session", .hz = 1 }), 0, RUNNING);
    EXPECT(lapse_stop(), 0, OFF);
}

/* A record of another thread that is reserved and not written yet holds up all behind it: a flush does not
 * say that they are in the file before they are. */
CELL(running, flush_waits_for_what_was_there)
{
    enter(LAPSE_STATE_RUNNING);
    uint64_t position;
    cr_assert(lapse_ring_reserve(&lapse_runtime.ring, LAPSE_RECORD_FIXED, &position));
    EXPECT(lapse_flush(), -ETIMEDOUT, RUNNING);
    struct lapse_record record = { .kind = LAPSE_RECORD_THREAD_END, .thread = 1, .tid = 1 };
    lapse_ring_commit(&lapse_runtime.ring, position, &record);
    EXPECT(lapse_flush(), 0, RUNNING);
    cr_expect_eq(lapse_ring_used(&lapse_runtime.ring), 0);
}

/* A copy of the process that was made behind our back has no session, and may begin one. */
CELL(running, unseen_fork)
{
    int status;
    enter(LAPSE_STATE_RUNNING);
    register long child __asm__("rax") = SYS_fork;
    __asm__ volatile("syscall" : "+r"(child) : : "rcx", "r11", "memory");
    if (child == 0) {
        const struct lapse_options options = { .out = "/tmp/lapse-session", .hz = 1, .exports = LAPSE_EXPORT_NONE };
        _exit(!(lapse_session_state() == LAPSE_STATE_OFF && lapse_pause() == -EPERM && lapse_flush() == 0 &&
                lapse_start(&options) == 0 && lapse_session_is_mine() && lapse_flush() == 0 && lapse_stop() == 0));
    }
    cr_assert_eq(waitpid((pid_t)child, &status, 0), (pid_t)child);
    EXPECT(status, 0, RUNNING);
}

/* What a stop gave up waiting for may still be at work on what a start renews: the start is refused. */
static int start_again(void)
{
    return lapse_start(&(struct lapse_options){ .out = "/tmp/lapse-session", .hz = 1 });
}

CELL(off, start_while_a_handler_is_inside)
{
    enter(LAPSE_STATE_RUNNING);
    EXPECT(lapse_stop(), 0, OFF);
    lapse_slots_at(0)->inside = 1;
    EXPECT(start_again(), -EBUSY, OFF);
    lapse_slots_at(0)->inside = 0;
    lapse_annotations_inside = 1;
    EXPECT(start_again(), -EBUSY, OFF);
    lapse_annotations_inside = 0;
    EXPECT(start_again(), 0, RUNNING);
}

CELL(off, start_while_the_drain_thread_is_there)
{
    enter(LAPSE_STATE_RUNNING);
    EXPECT(lapse_stop(), 0, OFF);
    lapse_drain.alive = (uint32_t)getpid();
    EXPECT(start_again(), -EBUSY, OFF);
    lapse_drain.alive = 0;
    EXPECT(start_again(), 0, RUNNING);
}

/* A pause or a resume that falls between the two looks of a thread that begins. */
CELL(running, slot_made_meanwhile)
{
    enter(LAPSE_STATE_RUNNING);
    struct lapse_slot *slot = lapse_slots_at(0);
    cr_expect_neq(slot->first_ns, 0);
    lapse_clock_disarm(slot);
    cr_expect(lapse_session_settle(slot, false));
    cr_expect_neq(slot->first_ns, 0, "not armed though the session runs");
    EXPECT(lapse_pause(), 0, PAUSED);
    lapse_clock_arm(slot, ~UINT64_C(0));
    cr_expect(lapse_session_settle(slot, true));
    cr_expect_eq(slot->first_ns, 0, "armed though the session is paused");
    EXPECT(lapse_stop(), 0, OFF);
    cr_expect_not(lapse_session_settle(slot, false));
}

/* Who was in a handler, or writing a record, is not in the child: nothing there waits for it. */
CELL(running, fork_while_others_are_inside)
{
    enter(LAPSE_STATE_RUNNING);
    struct lapse_slot *other = lapse_slots_take();
    cr_assert(other);
    other->inside = 1;
    lapse_annotations_inside = 1;
    int status;
    pid_t child = fork();
    if (child == 0) {
        bool left = other->inside || lapse_annotations_inside;
        _exit(left || lapse_stop());
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect_eq(status, 0);
    other->inside = 0;
    lapse_annotations_inside = 0;
}

/* A handler of another thread is about to start the drain thread: it is neither told nor overwritten. */
CELL(running, quiesce_while_a_drain_thread_starts)
{
    enter(LAPSE_STATE_RUNNING);
    lapse_runtime.drain = LAPSE_DRAIN_STARTING;
    lapse_session_quiesce();
    cr_expect_eq(lapse_runtime.drain, LAPSE_DRAIN_STARTING);
    lapse_session_unquiesce();
    cr_expect_eq(lapse_runtime.drain, LAPSE_DRAIN_STARTING);
    lapse_runtime.drain = LAPSE_DRAIN_NONE;
    lapse_session_quiesce();
    cr_expect_eq(lapse_runtime.drain, LAPSE_DRAIN_HELD);
    lapse_session_unquiesce();
    cr_expect_eq(lapse_runtime.drain, LAPSE_DRAIN_NONE);
}

/* Held, and the thread that was to leave is still there: the end of the session waits for it instead
 * of writing beside it. */
CELL(running, stop_while_the_drain_thread_leaves)
{
    enter(LAPSE_STATE_RUNNING);
    lapse_runtime.drain = LAPSE_DRAIN_HELD;
    lapse_drain.alive = (uint32_t)getpid();
    lapse_store.samples = 1;
    EXPECT(lapse_stop(), 0, OFF);
    cr_expect_eq(lapse_drain.finished, 0);
    lapse_drain.alive = 0;
    lapse_store.samples = 0;
}

static void *unload_for_ever(void *begun)
{
    lapse_session_unload_begin();
    atomic_store((_Atomic int *)begun, 1);
    pause();
    return NULL;
}

static int unloading_in_child(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit((int)atomic_load(&lapse_store_unloading));
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* A fork's child has none of the threads that were inside dlclose, but for the one that forked, out of a
 * destructor. */
Test(session, fork_while_others_unload, .timeout = 20)
{
    _Atomic int begun = 0;
    pthread_t thread;
    enter(LAPSE_STATE_RUNNING);
    cr_assert_eq(pthread_create(&thread, NULL, unload_for_ever, (void *)&begun), 0);
    while (!atomic_load(&begun))
        usleep(1000);
    cr_expect_eq(unloading_in_child(), 0);
    lapse_session_unload_begin();
    cr_expect_eq(unloading_in_child(), 1);
    lapse_session_unload_end();
    cr_expect_eq(unloading_in_child(), 0);
    cr_expect_eq(atomic_load(&lapse_store_unloading), 1);
}
