/* SPDX-License-Identifier: MIT */
/* Share intervals; derivation and measured coverage: docs/STATISTICS.md. Pure functions. */
#include "statistics.h"

#include <math.h>
#include <stdbool.h>

#define Z 1.959963984540054 /* 97.5 % quantile of the normal distribution */
/* From so many samples on, on both sides, their own mean square is known well enough. */
#define ENOUGH_SAMPLES 50.0

/* How many samples of equal weight would tell as much: p (1 - p) / variance. */
static double effective_samples(double share, double part, double whole, double part_squares,
                                double whole_squares)
{
    double rest = whole - part, rest_squares = whole_squares - part_squares;
    double kish = whole * whole / whole_squares;
    if (part <= 0 || rest <= 0 || part_squares <= 0 || rest_squares <= 0)
        return kish;
    double variance = ((1 - share) * (1 - share) * part_squares + share * share * rest_squares) /
                      (whole * whole);
    double linear = share * (1 - share) / variance;
    bool known = part * part / part_squares >= ENOUGH_SAMPLES &&
                 rest * rest / rest_squares >= ENOUGH_SAMPLES;
    return known || linear < kish ? linear : kish;
}

struct lapse_range lapse_share_interval(double part, double whole, double part_squares,
                                        double whole_squares)
{
    if (!(whole > 0) || !(whole_squares > 0))
        return (struct lapse_range){ 0, 1 };
    double share = part <= 0 ? 0 : part >= whole ? 1 : part / whole;
    double n = effective_samples(share, part, whole, part_squares, whole_squares);
    double scale = 1 + Z * Z / n;
    double centre = (share + Z * Z / (2 * n)) / scale;
    double half = Z / scale * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n));
    /* At the ends of the scale the exact value is the end; rounding must not say otherwise. */
    double low = share > 0 ? centre - half : 0, high = share < 1 ? centre + half : 1;
    return (struct lapse_range){ low < 0 ? 0 : low, high > 1 ? 1 : high };
}
