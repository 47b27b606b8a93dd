/* SPDX-License-Identifier: MIT */
/* The state that the parts of the runtime share: one session at a time, one structure. The control
 * side (session.c) writes it while no handler is inside; handlers and the drain thread read it. */
#ifndef LAPSE_RUNTIME_STATE_H
#define LAPSE_RUNTIME_STATE_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "ring.h"
#include "session.h"
#include "slots.h"

/* A process that has used less CPU time than this when a session starts has used it for starting up
 * (and, if a profiled shell forked it, for what lies between fork and exec). */
#define LAPSE_INHERITED_CPU_NS UINT64_C(20000000)

enum lapse_drain_state {
    LAPSE_DRAIN_NONE,     /* the next tick starts it */
    LAPSE_DRAIN_STARTING,
    LAPSE_DRAIN_RUNNING,
    LAPSE_DRAIN_HELD,     /* the host must be single-threaded for a moment: nobody starts it */
    LAPSE_DRAIN_REPLACED, /* none could be had: the thread that ends the session writes in its place */
};

struct lapse_runtime {
    /* Transitions in session.c only; read by the handler once per tick. First: another copy of lapse
     * in the process looks for it here. */
    _Atomic uint32_t state; /* enum lapse_state */
    /* Set by start and fork, constant in a session. Those that are asked for between sessions too, while
     * another thread may start one, are atomic; nothing else is inferred from them. */
    _Atomic uint32_t pid;
    _Atomic int signal;
    _Atomic uint64_t budget_ns; /* longest time for the outputs at the end */
    enum lapse_clock clock; /* the one in use, after fall-backs */
    uint64_t period_ns;
    uint32_t depth;
    uint64_t begin_ns;      /* monotonic: samples before are ignored (delay) */
    uint64_t end_ns;        /* samples after are ignored (duration); ~0: none */
    uint64_t start_ns, start_realtime_ns;
    uint8_t session_id[16];
    bool preloaded;
    bool may_wait;          /* the ring outlives the process, and its profile has a place in a shared spool */
    uint64_t before_ns;     /* CPU time of the process that was used before and is in no sample */
    uint64_t loaded_realtime_ns; /* preloaded: when this program's image began; else 0 */
    _Atomic bool has_forked; /* in this session; written by forking threads, read at the end */
    struct lapse_ring ring;
    struct lapse_settings settings;
    char cwd[LAPSE_PATH_MAX];
    char program[256];
    /* Any thread. */
    _Atomic uint64_t unsampled_threads, unsampled_ns, rate_lowered;
    _Atomic uint64_t signal_taken; /* times that the host's own handler stood where ours should */
    /* The drain thread; see drain.h. */
    _Atomic uint32_t drain;
};

extern struct lapse_runtime lapse_runtime;

/* handler_entry.S and handler_sig.c */
#define LAPSE_HANDLER_MARK UINT64_C(0x314f4c4c45485041)
void lapse_handler_entry(int signal, siginfo_t *info, void *context);

/* The control side behind the public API and the preload entry. Start is for the owner of control.h; the
 * others take it themselves, where they need it. `from_ns`: CPU time of the calling
 * thread from which on it counts; ~0: from now. One line of `error` when it fails. */
int lapse_session_start(const struct lapse_settings *settings, uint64_t from_ns,
                        struct lapse_text *error);
int lapse_session_pause(bool pause);
/* Every sample whose handler has returned by now is in the spool afterwards, or the result is below 0. */
int lapse_session_flush(void);
/* The public stop: excludes the other control operations, refuses inside one of its own thread. */
int lapse_session_stop(void);
/* What there is so far, as a recording of its own. */
int lapse_session_snapshot(const char *path);
void lapse_session_disable(void);
/* Until the thread that is inside stop has ended it, at most the exit budget. */
void lapse_session_wait_for_stop(void);
/* Child of a fork: nobody is inside lapse_session_quiesce. */
void lapse_session_quiesce_forget(void);
/* And of those that were unloading something, this thread at most. */
void lapse_session_unload_forget(void);
/* Child of a fork: everything anew, in this state. */
void lapse_session_new_process(enum lapse_state state);
/* The same, and the parent's memory and descriptors given up. */
void lapse_session_inherit(enum lapse_state state);

/* After a slot has become LIVE, by whoever made it so with its timer `armed` or not: arms it or not as
 * the session runs or is paused by now. False when the session is over: the caller takes it back. */
bool lapse_session_settle(struct lapse_slot *slot, bool armed);

/* The drain thread found that the session's duration is over: end it from there. False when another
 * thread is at it already. */
bool lapse_session_expire(void);

#endif
