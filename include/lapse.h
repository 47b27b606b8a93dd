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

/* Control. One operation at a time: another thread's waits its turn (-EBUSY after 2 s).
 *
 * Signals: none of the control functions is async-signal-safe in the sense of the standard, yet a
 * signal handler may call them: they take no lock of the C library and allocate nothing. A handler
 * that interrupted a control function of its own thread is refused with -EDEADLK; nothing happens
 * then. Our own handler runs with every signal blocked and calls nothing of the application, so no
 * call can come from inside a tick; that is also why no hook for samples is offered.
 * fork: the child has a session of its own in the state of the parent's. atexit handlers may call
 * everything; the session ends after them. */

/* Start a session: sampling of every thread of the process begins.
 * `options` may be NULL (all defaults); it and its strings are copied.
 * Returns 0; -EALREADY when a session runs (also one started by LD_PRELOAD, or by another copy of
 * lapse in the process); -EINVAL for a bad option (one line on stderr unless quiet); -EPERM in a
 * process that may not be profiled (setuid) or whose session ended for good; -EBUSY (see above; also
 * while something of the last session is at work, since its stop gave up waiting); -EDEADLK (see
 * above); other negative errno when set-up failed: nothing then runs. */
LAPSE_API int lapse_start(const struct lapse_options *options);

/* Stop sampling, drain what is left, write the outputs.
 * Returns 0 (also when already stopped) or a negative errno: the first failure of the whole run;
 * -EDEADLK, -EBUSY (see above). */
LAPSE_API int lapse_stop(void);

/* Hold sampling of all threads, or let it go on, without ending the session; done twice is done
 * once. Returns 0; -EPERM when no session runs; -EBUSY while one is being stopped; -EDEADLK. */
LAPSE_API int lapse_pause(void);
LAPSE_API int lapse_resume(void);

/* Write to the spool file what was sampled: every sample that was taken before the call is in the file when
 * it returns 0, whoever else flushes or stops at the time. Returns 0 (also when no session runs), -ETIMEDOUT
 * after the exit budget, -EDEADLK in a handler that interrupted lapse_stop(), or another negative errno: the
 * first failed write of the session. */
LAPSE_API int lapse_flush(void);

/* Write what there is so far, names included, into a new recording at `path`, while sampling goes on.
 * Returns 0; -ENODATA when nothing was recorded yet (there is no file then); -EEXIST: a file is never
 * overwritten; -EPERM when no session runs; -ETIMEDOUT; -EDEADLK; another negative errno of writing. */
LAPSE_API int lapse_snapshot(const char *path);

struct lapse_status {
    int running, paused;
    uint64_t ticks, merged_ticks, recorded, dropped, truncated, unwind_failures, guessed_frames,
        unsampled_threads, late_ticks, write_errors;
    uint64_t threads;
    uint64_t weight_ns; /* CPU time that the recorded samples stand for */
};

/* Counters of the session so far, or of the last one (all zero when none was started). Any context. */
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* structure and function share their name, as with stat(2) */
#endif
LAPSE_API int lapse_status(struct lapse_status *status);
#ifdef __cplusplus
#pragma GCC diagnostic pop
#endif

/* Labels: what the calling thread is working on. Samples of the thread carry the pairs in force;
 * `lapse report --by=KEY` and `--label=KEY=VALUE`, folded text with `--label-root=KEY` and pprof show
 * them. Labels nest: a push inside another adds to it; with equal keys the inner one counts. Eight
 * levels are carried; deeper ones are counted, so that each push still has its pop.
 * Strings: `key` and `value` are kept as pointers and read later, by another thread: they must stay
 * as they are until lapse_stop() has returned, or the program ends. Literals do; for others take
 * lapse_intern(). (A string that is gone all the same costs a wrong label, not a crash.)
 * Cost: a few nanoseconds; without a session a load and a jump.
 * State: labels pushed while no session runs (or before it began) do not count, nor do their pops.
 * Pausing keeps them. A fork's child goes on with the labels of the forking thread.
 * Threads: each has its own. Signals: async-signal-safe; a handler must pop what it pushed. */
LAPSE_API void lapse_label_push(const char *key, const char *value);
LAPSE_API void lapse_label_pop(void);

/* A copy of `text` that stays for the life of the process, equal texts once; NULL when there is no
 * memory. Nothing is given back: not for values without number, like request ids.
 * Threads: any, lock-free. Signals: async-signal-safe. */
LAPSE_API const char *lapse_intern(const char *text);

/* Spans: exact intervals of the application (not sampled), shown on the timeline beside the samples.
 * They nest per thread, 16 deep; deeper ones are left out and counted as dropped. A span is recorded at its end;
 * one whose ring is full is lost and counted. `name` as with labels. Cost: two clock readings and a
 * system call or two. Threads: each has its own. Signals: async-signal-safe, if the handler ends what
 * it began. */
LAPSE_API void lapse_span_begin(const char *name);
LAPSE_API void lapse_span_end(void);

/* Name the calling thread in the recording (63 bytes; copied). Without it, it has the kernel's name.
 * Lasts as long as the thread, for later sessions too. Returns 0 or -ENOMEM. */
LAPSE_API int lapse_thread_name(const char *name);

/* The calling thread is not sampled, in this session and later ones, until lapse_thread_include(). It
 * has no timer then and is not interrupted. Threads need no registration to be sampled. Returns 0. */
LAPSE_API int lapse_thread_exclude(void);
LAPSE_API int lapse_thread_include(void);

/* Leave the calling thread out for a stretch: ticks are ignored, at the cost of a few nanoseconds a
 * call. Nests; ends with the session. Its CPU time in between appears nowhere.
 * Signals: async-signal-safe. */
LAPSE_API void lapse_thread_pause(void);
LAPSE_API void lapse_thread_resume(void);

/* "0.1.0". Any context. */
LAPSE_API const char *lapse_version(void);

#ifdef __cplusplus
}
#endif
#endif
