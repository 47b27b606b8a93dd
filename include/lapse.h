/* SPDX-License-Identifier: MIT */
/* lapse.h: control of the profiler from inside an application. The comments are the manual.
 *
 * A program needs none of this to be profiled: LD_PRELOAD=liblapse.so does it, with the LAPSE_*
 * variables listed below. An application that links lapse (-llapse) and calls nothing is not
 * profiled and costs nothing: no timer, thread, descriptor or handler before lapse_start(). */
#ifndef LAPSE_H
#define LAPSE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LAPSE_VERSION_MAJOR 0
#define LAPSE_VERSION_MINOR 1
#define LAPSE_VERSION_PATCH 0

#ifndef LAPSE_API
#define LAPSE_API __attribute__((visibility("default")))
#endif

enum lapse_clock { LAPSE_CLOCK_CPU, LAPSE_CLOCK_PERF, LAPSE_CLOCK_WALL };

enum lapse_export {
    LAPSE_EXPORT_DEFAULT = 0, /* folded and events */
    LAPSE_EXPORT_NONE = 1,    /* the spool only */
    LAPSE_EXPORT_FOLDED = 2,
    LAPSE_EXPORT_EVENTS = 4,
};

/* Options. Zero (and NULL) means the default of the variable of the same name. */
struct lapse_options {
    const char *out;         /* LAPSE_OUT: path prefix of the outputs; %p pid, %e program, %t start
                                time, %% percent. Default lapse-%e-%p */
    uint32_t hz;             /* LAPSE_HZ: samples per second of CPU time, 1 to 10000. Default 199 */
    enum lapse_clock clock;  /* LAPSE_CLOCK: cpu, perf, wall. Default cpu */
    uint32_t depth;          /* LAPSE_DEPTH: deepest stack kept, 8 to 4096. Default 1024 */
    uint32_t exports;        /* LAPSE_EXPORT: folded, events, both by comma, none (enum lapse_export) */
    uint32_t min_samples;    /* LAPSE_MIN_SAMPLES: engine option for the events. Default 1 */
    const char *close;       /* LAPSE_CLOSE: last, next, open. Default last */
    uint64_t gap_ns;         /* LAPSE_GAP (in the variable: milliseconds). Default off */
    int start_paused;        /* LAPSE_START: now, paused. Default now */
    int toggle_signal;       /* LAPSE_TOGGLE_SIGNAL: number of a signal that pauses and resumes */
    double duration_s;       /* LAPSE_DURATION: stop after so many seconds */
    double delay_s;          /* LAPSE_DELAY: start after so many seconds */
    int no_follow;           /* LAPSE_FOLLOW=0: leave children alone */
    int signal;              /* LAPSE_SIGNAL: another signal than SIGPROF */
    int respect_mask;        /* LAPSE_RESPECT_MASK=1: leave threads alone that block the signal */
    int quiet;               /* LAPSE_QUIET=1: no message at all, not even when output is lost */
    int verbose;             /* LAPSE_VERBOSE=1: say what is done */
    uint32_t exit_budget_ms; /* LAPSE_EXIT_BUDGET_MS: longest time for names at exit. Default 2000 */
    int use_environment;     /* set LAPSE_* variables override the fields above */
};

/* Start a session: sampling of every thread of the process begins.
 * `options` may be NULL (all defaults); it and its strings are copied.
 * Returns 0; -EALREADY when a session runs (also one started by LD_PRELOAD); -EINVAL for a bad option
 * (one line on stderr unless quiet); -EPERM in a process that may not be profiled (setuid) or whose
 * session ended for good; -EDEADLK from a signal handler of a running session's tick; other negative
 * errno when set-up failed: nothing then runs.
 * Threads: any, serialised inside. Signals: not async-signal-safe. */
LAPSE_API int lapse_start(const struct lapse_options *options);

/* Stop sampling, drain what is left, write the outputs.
 * Returns 0 (also when already stopped) or a negative errno: the first failure of the whole run.
 * Threads: any, serialised inside. Signals: not async-signal-safe. */
LAPSE_API int lapse_stop(void);

/* Hold sampling, or let it go on, without ending the session. Returns 0, -EPERM when none runs.
 * Threads: any. Signals: not async-signal-safe. */
LAPSE_API int lapse_pause(void);
LAPSE_API int lapse_resume(void);

/* Write every sample taken so far to the spool file. Returns 0 or a negative errno.
 * Threads: any. Signals: not async-signal-safe. */
LAPSE_API int lapse_flush(void);

struct lapse_status {
    int running, paused;
    uint64_t ticks, merged_ticks, recorded, dropped, truncated, unwind_failures, guessed_frames,
        unsampled_threads, late_ticks, write_errors;
    uint64_t threads;
    uint64_t weight_ns; /* CPU time that the recorded samples stand for */
};

/* Counters of the session so far (all zero when none was started). Threads: any. */
LAPSE_API int lapse_status(struct lapse_status *status);

/* "0.1.0". Any context. */
LAPSE_API const char *lapse_version(void);

#ifdef __cplusplus
}
#endif
#endif
