/* SPDX-License-Identifier: MIT */
#include "distributions.h"

#include <criterion/criterion.h>
#include <math.h>

/* Tables of Student's t: P(T <= t) = 0.975. */
Test(distributions, student_quantiles_of_the_tables)
{
    static const struct { double degrees, t; } table[] = {
        { 1, 12.70620 }, { 2, 4.30265 }, { 4, 2.77645 }, { 8, 2.30600 }, { 30, 2.04227 }, { 1e9, 1.95996 },
    };
    for (unsigned i = 0; i < sizeof table / sizeof *table; i++)
        cr_expect_float_eq(lapse_student_quantile(0.975, table[i].degrees), table[i].t, 1e-4,
                           "%g degrees", table[i].degrees);
}

Test(distributions, student_cdf_is_symmetric_and_inverts_the_quantile)
{
    for (double degrees = 1; degrees < 1000; degrees *= 1.7)
        for (double p = 0.001; p < 1; p += 0.037) {
            double t = lapse_student_quantile(p, degrees);
            cr_expect_float_eq(lapse_student_cdf(t, degrees), p, 1e-9);
            cr_expect_float_eq(lapse_student_cdf(-t, degrees), 1 - p, 1e-9);
        }
}

/* I_x(1, b) = 1 - (1 - x)^b and I_x(a, 1) = x^a. */
Test(distributions, incomplete_beta_in_closed_cases)
{
    for (double x = 0.01; x < 1; x += 0.09)
        for (double k = 0.5; k < 200; k *= 3) {
            cr_expect_float_eq(lapse_incomplete_beta(1, k, x), 1 - pow(1 - x, k), 1e-10);
            cr_expect_float_eq(lapse_incomplete_beta(k, 1, x), pow(x, k), 1e-10);
        }
}

/* By hand: ranks 1, 2, 3, 4 of 0.01 0.02 0.04 0.5 give 0.04 0.04 0.0533 0.5. */
Test(distributions, adjusted_p_values_keep_their_places)
{
    double p[4] = { 0.04, 0.5, 0.01, 0.02 };
    unsigned order[4];
    lapse_adjust_p_values(p, order, 4);
    cr_expect_float_eq(p[0], 0.16 / 3, 1e-12);
    cr_expect_float_eq(p[1], 0.5, 1e-12);
    cr_expect_float_eq(p[2], 0.04, 1e-12);
    cr_expect_float_eq(p[3], 0.04, 1e-12);
}
