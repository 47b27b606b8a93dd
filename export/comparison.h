/* SPDX-License-Identifier: MIT */
/* Two profiles compared: per function and per call path, time per run, with intervals and p-values.
 *
 * Each side is one or more *runs*. Two sources of error are kept apart: sampling (the weights of a
 * run's samples) and run-to-run (between the runs of a side). With a single run, equal slices of its
 * CPU time (blocks) stand in for runs; that sees no run-to-run noise, and `blocks` says so.
 * Derivations and sources: docs/STATISTICS.md. Offline; one owner. */
#ifndef LAPSE_EXPORT_COMPARISON_H
#define LAPSE_EXPORT_COMPARISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile.h"
#include "statistics.h"

#define LAPSE_ANY_VARIANT 0xffffffffu

/* One input of a side: the runs of this profile, all of them or those of one variant. */
struct lapse_comparison_input {
    struct lapse_profile *profile;
    uint32_t variant;
};

enum lapse_change_kind {
    LAPSE_CHANGE_TOTAL,      /* CPU time of the whole run */
    LAPSE_CHANGE_SELF,       /* time in a function itself */
    LAPSE_CHANGE_CUMULATIVE, /* time in a function and what it calls, each sample once */
    LAPSE_CHANGE_PATH,       /* self time of one stack */
};

/* Mean time per run of one thing on one side. */
struct lapse_estimate {
    double mean_ns;
    double share;              /* of the side's time */
    double run_variance;       /* between runs (or blocks), ns^2, as observed */
    double sampling_variance;  /* mean within a run, ns^2 */
    double standard_error_ns;  /* of the mean, both sources */
    double degrees;            /* of freedom */
    uint64_t samples;
    double share_error, share_degrees; /* of the share */
};

enum lapse_verdict {
    LAPSE_SAME,       /* no change shown */
    LAPSE_SLOWER, LAPSE_FASTER,
    LAPSE_APPEARED, LAPSE_VANISHED, /* slower, faster; and not there at all on the other side */
    LAPSE_SHARE_ONLY, /* its share moved because others did; its own time did not */
    LAPSE_TOO_FEW,    /* not enough samples to say anything */
};

struct lapse_change {
    enum lapse_change_kind kind;
    const char *name; /* function; a path as names joined by `;`; "total" */
    uint32_t node;    /* of the comparison's tree, for paths */
    struct lapse_estimate base, new;
    double difference_ns;
    struct lapse_range difference_interval;
    double relative; /* new / base - 1; infinite when base is 0 */
    struct lapse_range relative_interval; /* Fieller's; may be unbounded */
    double p, adjusted_p; /* two-sided; adjusted within its kind */
    double share_p;       /* the same of the share, adjusted */
    enum lapse_verdict verdict;
};

/* The merged call tree of both sides. */
struct lapse_comparison_node {
    uint32_t parent; /* smaller than the own index; node 0 is the root of all */
    const char *name;
    double base_ns, new_ns; /* per run, total */
    uint32_t change; /* its LAPSE_CHANGE_PATH, LAPSE_NONE when nothing was sampled right there */
};

struct lapse_comparison {
    uint32_t base_runs, new_runs;
    bool base_blocks, new_blocks; /* slices of a single run stand in for runs */
    bool exact_totals; /* totals are the processes' CPU time, not sums of samples */
    bool counts;       /* folded text: values are counts, not ns */
    double level;      /* of intervals, 0.95 */
    struct lapse_change total;
    struct lapse_change *changes; /* by kind, then by size of the difference */
    uint32_t change_count;
    struct lapse_comparison_node *nodes;
    uint32_t node_count;
    struct lapse_change *calls; /* by node: that call path with what is called from it; adjusted by themselves */
    struct lapse_comparison_tables *tables; /* the builder's own */
};

struct lapse_comparison_options {
    double level;        /* 0: 0.95 */
    uint32_t blocks;     /* of a single run; 0: 20 */
    uint64_t min_samples; /* a thing with fewer, both sides together, is too few; 0: 10 */
};

/* Compare. Profiles must outlive the comparison. Returns 0 or a negative errno with a line in `error`. */
int lapse_comparison_create(struct lapse_comparison **comparison,
                            const struct lapse_comparison_input *base, uint32_t base_count,
                            const struct lapse_comparison_input *new, uint32_t new_count,
                            const struct lapse_comparison_options *options, char *error, size_t size);
void lapse_comparison_destroy(struct lapse_comparison *comparison);

/* One-sided p-value of "new is more than (1 + by) times base, and more than by_ns above it". */
double lapse_change_exceeds_p(const struct lapse_change *change, double by, double by_ns);

/* Runs a side that would show a change of `by` in `estimate` with the given power, at the level of a
 * 95 % interval. 0 when one run a side was all there is to judge by. */
uint32_t lapse_runs_needed(const struct lapse_estimate *estimate, uint32_t runs, double by, double power);

#endif
