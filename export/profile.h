/* SPDX-License-Identifier: MIT */
/* A profile: what every report, picture and export is made from. All names are resolved, inlined
 * functions are frames of their own, several inputs (recordings, folded text) are one.
 *
 * A stack is a path of nodes, outermost first. Node = (parent, where in the parent, function).
 * A *leaf* is a distinct stack with its innermost position: (node, pc, line); every sample points to
 * one. Memory grows with distinct stacks; the samples themselves are streamed.
 * Offline only; one owner. All strings live in the profile. */
#ifndef LAPSE_EXPORT_PROFILE_H
#define LAPSE_EXPORT_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording.h"

enum { LAPSE_NONE = 0xffffffffu };

struct lapse_profile_module {
    const char *path;
    const char *build_id; /* lower-case hex, "" unknown */
    uint64_t start, end, bias, file_offset; /* as mapped in the first session that has it */
};

enum lapse_function_flags {
    LAPSE_FUNCTION_PSEUDO = 1,   /* [truncated], [unwind failed], [not sampled] */
    LAPSE_FUNCTION_CUT = 2,      /* pseudo, and stands for missing outer frames */
    LAPSE_FUNCTION_UNNAMED = 4,  /* module+0x... : no symbol was found */
    LAPSE_FUNCTION_JIT = 8,
};

struct lapse_profile_function {
    const char *name;        /* as to be shown; unescaped */
    const char *system_name; /* symbol as linked, NULL when the same or unknown */
    const char *file;        /* source, NULL unknown */
    uint32_t line;           /* first line of the function, 0 unknown */
    uint32_t module;         /* LAPSE_NONE for folded text and pseudo functions */
    uint32_t flags;
};

enum lapse_profile_node_flags {
    LAPSE_NODE_INLINED = 1, /* inlined into its parent: same pc, no call */
    LAPSE_NODE_GUESSED = 2,
};

struct lapse_profile_node {
    uint32_t parent; /* smaller than the own index; node 0 is the root of all and no frame */
    uint32_t depth;  /* node 0: 0 */
    uint32_t function;
    uint32_t flags;
    uint64_t call_pc;  /* return address in the parent's (not inlined) function, 0 unknown, inlined */
    uint32_t call_line; /* line in the parent's function, 0 unknown */
};

struct lapse_profile_leaf {
    uint32_t node;
    uint32_t line;   /* in the innermost function, 0 unknown */
    uint64_t pc;     /* 0 for folded text */
    uint64_t count;  /* samples (for folded text: the value) */
    uint64_t weight_ns; /* for folded text: the value, see lapse_profile.weight_unit */
    double squares;  /* sum of the squared weights of its samples */
};

struct lapse_profile_process {
    uint32_t pid;
    const char *program; /* path */
    const char *name;    /* last part of it */
    const char *command; /* arguments joined by spaces, quoted where needed */
    uint32_t session;    /* index over all inputs, in order */
    uint32_t run_index, variant;
    uint64_t start_ns, end_ns; /* monotonic */
    uint64_t start_realtime_ns;
    uint64_t cpu_ns; /* user + system by getrusage, 0 unknown */
    struct lapse_counters counters;
    enum lapse_recorded_clock clock;
    uint64_t period_ns;
    bool ended;
    enum lapse_end_reason end_reason;
    uint32_t end_signal;
    const char *host; /* "" unknown */
    uint32_t run; /* processes recorded together have the same, from 0 in order of first sight */
};

struct lapse_profile_thread {
    uint32_t process; /* index */
    uint32_t tid;
    const char *name; /* "" unknown */
    uint64_t start_ns, end_ns, cpu_ns;
    uint64_t count, weight_ns;
    bool unsampled;
};

struct lapse_profile_label { const char *key, *value; };
struct lapse_profile_label_set { const struct lapse_profile_label *labels; uint32_t count; };
struct lapse_profile_span { uint32_t thread; uint64_t start_ns, end_ns; const char *name; };

enum lapse_weight_unit { LAPSE_WEIGHT_NS, LAPSE_WEIGHT_COUNT };

struct lapse_profile {
    struct lapse_profile_module *modules;
    uint32_t module_count;
    struct lapse_profile_function *functions;
    uint32_t function_count;
    struct lapse_profile_node *nodes;
    uint32_t node_count;
    struct lapse_profile_leaf *leaves;
    uint32_t leaf_count;
    struct lapse_profile_process *processes;
    uint32_t process_count;
    struct lapse_profile_thread *threads;
    uint32_t thread_count;
    struct lapse_profile_label_set *label_sets; /* index 0 is the empty set */
    uint32_t label_set_count;
    struct lapse_profile_span *spans;
    uint32_t span_count;
    const char **notes; /* losses and remarks, one line each, ready to print */
    uint32_t note_count;

    enum lapse_weight_unit weight_unit;
    uint64_t period_ns;   /* of the first session; 0 for folded text */
    uint64_t count, weight_ns; /* totals over leaves */
    uint64_t first_ns, last_ns; /* samples' times; 0 and 0 without times */
    bool has_times;       /* samples can be streamed in order of time */
    struct lapse_counters counters; /* summed over processes */
    struct lapse_damage damage;
    struct lapse_profile_source *source; /* the builder's own */
};

struct lapse_profile_sample {
    uint64_t time_ns; /* monotonic */
    uint64_t weight_ns;
    uint32_t thread;  /* index */
    uint32_t leaf;    /* index */
    uint32_t labels;  /* index of a label set */
    uint64_t cut_cfa; /* 0 unless the stack is cut and the place is known */
};

/* Names and lines for addresses beyond what the recording itself holds. Implemented by
 * unwind/offline (libdw); NULL: the recording's own symbols only. */
struct lapse_symbolizer {
    /* Frames at `pc` of a session, outermost (the real function) first, into frames[0..max).
     * The address to look up is pc - 1 when is_return. Strings live as long as the symbolizer.
     * Returns their number, 0 when nothing is known. */
    uint32_t (*frames)(void *context, const struct lapse_session *session, uint64_t pc,
                       bool is_return, uint64_t time_ns, struct lapse_inline_frame *frames,
                       uint32_t max);
    void *context;
    /* How a linked name is to be shown, so that the names that a recording holds look like those
     * from here; lives as long as the symbolizer. NULL: as the recording has it. */
    const char *(*show)(void *context, const char *system_name);
};

struct lapse_profile_options {
    const struct lapse_symbolizer *symbolizer;
    bool lines;            /* keep leaf pcs and call sites apart by line and pc (pprof, --lines) */
    bool no_inlines;
    /* Called now and then with the bytes read so far and in all (0 unknown). May be NULL. */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *progress_context;
};

/* Read recordings and folded text (told apart by their first bytes; "-" is standard input).
 * Returns 0 or a negative errno, with one line in `error` that names the file and the cause. */
int lapse_profile_open(struct lapse_profile **profile, const char *const *paths, uint32_t count,
                       const struct lapse_profile_options *options, char *error, size_t error_size);
void lapse_profile_close(struct lapse_profile *profile);

/* Stream all samples; per thread in order of time. -ENOTSUP when the input has no times. */
typedef int lapse_each_profile_sample(void *context, const struct lapse_profile_sample *sample);
int lapse_profile_each_sample(struct lapse_profile *profile, lapse_each_profile_sample *each,
                              void *context);

/* The same, several at a time: who looks things up for a sample can begin on all of them before it
 * waits for the first. */
typedef int lapse_each_profile_samples(void *context, const struct lapse_profile_sample *samples,
                                       uint32_t count);
int lapse_profile_each_samples(struct lapse_profile *profile, lapse_each_profile_samples *each,
                               void *context);

#endif
