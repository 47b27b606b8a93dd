/* SPDX-License-Identifier: MIT */
/* Sampled time of one side of a comparison, by run and by place in the call tree. comparison.c makes
 * two of these; estimate.c turns their columns into means and errors. */
#ifndef LAPSE_EXPORT_RUN_SUMS_H
#define LAPSE_EXPORT_RUN_SUMS_H

#include "comparison.h"

/* What one run (or block) saw at one place. */
struct lapse_run_cell { double weight, squares; uint64_t count; };

struct lapse_run_sums {
    const struct lapse_comparison_input *inputs;
    uint32_t input_count;
    uint32_t *first_run;  /* of each input */
    uint32_t run_count;   /* runs found */
    uint32_t columns;     /* runs, or blocks when there is one run */
    bool blocks;
    double *exact_ns;     /* per run: CPU time of its processes; NAN when any is unknown */
    double *scale;        /* per column: from sampled weight to time per run */
    struct lapse_run_cell *sums;    /* per column: everything */
    struct lapse_run_cell *self;    /* node * columns + column */
    double weight;        /* of all inputs and chosen runs */
};

/* Number the runs of all inputs and add up their processes' CPU time. 0 or -ENOMEM. */
int lapse_run_sums_count(struct lapse_run_sums *side);

/* Read the samples of all inputs. maps[i][node of profile i] is the place in the merged tree, which has
 * node_count places. A single run is cut into `blocks`. 0 or a negative errno. */
int lapse_run_sums_fill(struct lapse_run_sums *side, uint32_t **maps, uint32_t node_count, uint32_t blocks);

/* Is the CPU time of every run known exactly? Forgotten, sums of samples take its place. */
bool lapse_run_sums_know_totals(const struct lapse_run_sums *side);
void lapse_run_sums_forget_totals(struct lapse_run_sums *side);

void lapse_run_sums_fini(struct lapse_run_sums *side);

#endif
