/* SPDX-License-Identifier: MIT */
/* Distributions that intervals and tests are made from. Pure functions, no state. */
#ifndef LAPSE_EXPORT_DISTRIBUTIONS_H
#define LAPSE_EXPORT_DISTRIBUTIONS_H

/* Regularised incomplete beta function I_x(a, b), by the continued fraction of Abramowitz and Stegun
 * 26.5.8 evaluated with Lentz's method; relative error below 1e-10 for a, b in (0, 1e7). */
double lapse_incomplete_beta(double a, double b, double x);

/* P(T <= t) of Student's t; degrees may be fractional; infinite degrees give the normal. */
double lapse_student_cdf(double t, double degrees);

/* The t with P(T <= t) = p, for 0 < p < 1. */
double lapse_student_quantile(double p, double degrees);

/* Benjamini and Hochberg 1995: replaces count p-values by adjusted ones (smallest false discovery rate
 * at which each is called), keeping their places. `order` is room for count numbers. */
void lapse_adjust_p_values(double *p, unsigned *order, unsigned count);

#endif
