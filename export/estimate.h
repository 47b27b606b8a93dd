/* SPDX-License-Identifier: MIT */
/* Means, errors and tests of comparisons. Pure functions; derivations in docs/STATISTICS.md. */
#ifndef LAPSE_EXPORT_ESTIMATE_H
#define LAPSE_EXPORT_ESTIMATE_H

#include "run_sums.h"

/* Mean per run and its errors of one place: `cells` has side->columns entries, NULL is the whole run.
 * `exact`: the runs' totals are known and only shares are sampled. */
struct lapse_estimate lapse_run_estimate(const struct lapse_run_sums *side, const struct lapse_run_cell *cells,
                                         bool exact);

/* Fill in difference, intervals and p-values from both estimates. */
void lapse_change_compare(struct lapse_change *change, double level);

#endif
