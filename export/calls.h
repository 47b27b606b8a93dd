/* SPDX-License-Identifier: MIT */
/* Calls over time: the samples of a profile through the prefix-diff engine, its edges with names in
 * reach. What chrome, perfetto and speedscope draw their time lines from.
 * Offline only. Memory: open frames of each thread, and what the profile holds. */
#ifndef LAPSE_EXPORT_CALLS_H
#define LAPSE_EXPORT_CALLS_H

#include "format.h"

struct lapse_call_edge {
    uint64_t time_ns;  /* monotonic */
    uint32_t thread;   /* index */
    uint32_t function; /* index */
    uint32_t depth;    /* 0 is the outermost */
    bool start, inferred, ambiguous; /* ambiguous ones are inferred too */
};

/* Called in order of time per thread: ends innermost first, then starts outermost first. Every start
 * has its end on the same depth: viewers draw what does not end to the end of all, so LAPSE_CLOSE_OPEN
 * is taken as LAPSE_CLOSE_NEXT. Non-zero ends the run. */
typedef int lapse_each_call_edge(void *context, const struct lapse_call_edge *edge);

struct lapse_calls_options {
    lapse_each_call_edge *edge;
    lapse_each_profile_sample *sample; /* may be NULL: called before the edges of a sample */
    void *context;
    const struct lapse_export_options *export_options;
    /* For text that is read back: close and gap exactly as the options say, no other rule. */
    bool as_asked;
    /* May be NULL (as may `edge`): calls as they complete; `function` is an index plus one. */
    void (*interval)(void *context, const struct lapse_interval *interval);
};

/* The silence after which a thread counts as off the CPU: the options' or one made from the period. */
uint64_t lapse_calls_gap(const struct lapse_profile *profile,
                         const struct lapse_export_options *options);

/* Returns 0, what a callback returned, or a negative errno; -ENOTSUP when there are no times. */
int lapse_calls(struct lapse_profile *profile, const struct lapse_calls_options *options);

#endif
