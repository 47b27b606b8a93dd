/* SPDX-License-Identifier: MIT */
/* Statistics of profiles. Sources and derivations: docs/STATISTICS.md. Pure functions. */
#ifndef LAPSE_EXPORT_STATISTICS_H
#define LAPSE_EXPORT_STATISTICS_H

#include <stdint.h>

struct lapse_range { double low, high; };

/* 95 % interval of a share: `part` of `whole`, in weight, with the sums of squared weights of the
 * samples behind them (equal to count * weight^2 when all samples weigh the same). */
struct lapse_range lapse_share_interval(double part, double whole, double part_squares,
                                        double whole_squares);

#endif
