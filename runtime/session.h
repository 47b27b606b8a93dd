/* SPDX-License-Identifier: MIT */
/* The session: the one state machine of the guest. Interposed calls (interpose_*.c), the preload
 * entry and the public API speak to the rest of the runtime through this header only. */
#ifndef LAPSE_RUNTIME_SESSION_H
#define LAPSE_RUNTIME_SESSION_H

#include <stdbool.h>
#include <stdint.h>

#include "lapse.h"

/* In order of life.
 *
 *   state      start      pause    resume   stop/finish   fork, child side        sandbox
 *   OFF        RUNNING    -EPERM   -EPERM   0             OFF                     OFF
 *   RUNNING    -EALREADY  PAUSED   0        OFF           RUNNING (fresh session) DISABLED
 *   PAUSED     -EALREADY  0        RUNNING  OFF           PAUSED (fresh session)  DISABLED
 *   STOPPING   -EBUSY     -EBUSY   -EBUSY   waits, same   OFF                     waits
 *   DISABLED   -EPERM     -EPERM   -EPERM   0             DISABLED                DISABLED
 *
 * A start from OFF is -EBUSY as well while something of the last session is still at work, since its stop
 * gave up waiting. The handler reads the state once per tick. */
enum lapse_state {
    LAPSE_STATE_OFF,      /* nothing runs; no timer, thread, descriptor */
    LAPSE_STATE_RUNNING,  /* timers armed (or waiting for the delay) */
    LAPSE_STATE_PAUSED,   /* timers disarmed, session open */
    LAPSE_STATE_STOPPING, /* one thread is inside stop */
    LAPSE_STATE_DISABLED, /* for good: sandbox, setuid, failed set-up */
};

enum lapse_state lapse_session_state(void);

/* True when this very process (not a vfork child that shares our memory) has a session. Cheap. */
bool lapse_session_is_mine(void);
/* Is it, or is another thread just ending it? lapse_session_finish waits for that: asked before the process
 * ends or becomes another, which would cut off what is being written. */
bool lapse_session_is_unfinished(void);
/* True when it has or had one: a fork takes a copy of what is left of it, or of what another thread is
 * just beginning or ending. */
bool lapse_session_was_mine(void);

/* The process ends (exit, _exit, quick_exit, abort, fatal signal): drain, write all outputs. `reason`
 * and `signal` go into the end mark. Waits for the drain thread, bounded by the exit budget.
 * Callable from any context that is not our own handler; takes no lock of the host. Idempotent. */
enum lapse_finish_reason {
    LAPSE_FINISH_EXIT = 1, LAPSE_FINISH_STOP, LAPSE_FINISH_EXEC, LAPSE_FINISH_SIGNAL,
    LAPSE_FINISH_SANDBOX,
};
void lapse_session_finish(enum lapse_finish_reason reason, int signal);

/* Around fork (clone without CLONE_VM): ticks are held back in the calling thread, since a clone that
 * takes longer than the period would restart for ever. The child gets a session of its own. */
void lapse_session_fork_prepare(void);
void lapse_session_fork_parent(void);
void lapse_session_fork_child(void);

/* Before exec: everything written, timers gone, no tick pending. When exec fails, go on. */
void lapse_session_exec_prepare(void);
void lapse_session_exec_failed(void);

/* Be single-threaded and silent for a moment (unshare, setns, setuid, setrlimit...): stops the drain
 * thread, holds ticks. Nests. */
void lapse_session_quiesce(void);
void lapse_session_unquiesce(void);

/* No drain thread for a quarter of a second; samples wait in the ring. For hosts that are about to lock
 * themselves up and insist on having one thread. */
void lapse_session_stay_single(void);

/* Around a change of user or groups: the drain thread, which the C library does not know, takes on
 * the ids of the caller before `end` returns. `end` gets what `begin` returned. */
bool lapse_session_ids_begin(void);
void lapse_session_ids_end(bool held);

/* A sandbox is about to forbid system calls: finish cleanly, say so when verbose, stay off. */
void lapse_session_sandbox(void);

/* Around an unloading of modules: samples in them are named before, and the moment is noted. */
void lapse_session_unload_begin(void);
void lapse_session_unload_end(void);

/* Our descriptors: the host must neither see them closed nor close them. */
bool lapse_session_owns_descriptor(int fd);
/* The smallest descriptor of ours that is at least `from`, or -1: lets a range be closed around ours. */
int lapse_session_next_descriptor(int from);

/* The signal that ticks (SIGPROF unless set), 0 when no session was ever started. */
int lapse_session_signal(void);
/* Does this siginfo come from one of our timers? Async-signal-safe. */
bool lapse_session_owns_tick(int signal, const void *siginfo);

/* Threads. `begin` in the new thread before the host's function; `end` when the thread is done, with
 * its own stack still there. Both are free when no session runs. stack_size 0: default. */
struct lapse_thread;
void lapse_session_thread_begin(uintptr_t stack_low, uintptr_t stack_high);
void lapse_session_thread_end(void);

#endif
