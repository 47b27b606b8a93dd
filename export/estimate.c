/* SPDX-License-Identifier: MIT */
#include "estimate.h"

#include <math.h>

#include "distributions.h"

/* Error of a mean over n runs. What runs differ by (`observed`) holds their sampling error, which is known; the
 * rest is estimated from n values, and none of it is left where the runs differ by less than that. Degrees of
 * freedom are n - 1 where all is run-to-run, and grow without end as the known part takes over. */
static double mean_error(uint32_t n, double observed, double sampling, double *degrees)
{
    double rest = fmax(0, observed - sampling), variance = sampling + rest;
    *degrees = n > 1 && rest > 0 ? (n - 1) * variance / rest : INFINITY;
    return n ? sqrt(variance / n) : 0;
}

/* Mean and errors over the columns of one thing. `cells` is NULL for the whole run. */
struct lapse_estimate lapse_run_estimate(const struct lapse_run_sums *side, const struct lapse_run_cell *cells, bool exact)
{
    struct lapse_estimate e = { 0 };
    double mean = 0, square = 0, share_mean = 0, share_square = 0, share_sampling = 0;
    uint32_t n = side->columns;
    for (uint32_t i = 0; i < n; i++) {
        const struct lapse_run_cell *all = &side->sums[i], *cell = cells ? &cells[i] : all;
        double share = all->weight > 0 ? cell->weight / all->weight : 0;
        double value = cell->weight * side->scale[i];
        /* Variance of a ratio of sums, by the delta method; the whole of an exact total has none. */
        double relative = all->weight > 0
            ? (cell->squares * (1 - 2 * share) + share * share * all->squares) / (all->weight * all->weight) : 0;
        double sampling = exact && !side->blocks
            ? relative * pow(all->weight * side->scale[i], 2) : cell->squares * side->scale[i] * side->scale[i];
        e.samples += cell->count;
        e.sampling_variance += sampling / n;
        share_sampling += relative / n;
        double d = value - mean, ds = share - share_mean;
        mean += d / (i + 1);
        square += d * (value - mean);
        share_mean += ds / (i + 1);
        share_square += ds * (share - share_mean);
    }
    e.mean_ns = mean;
    e.share = share_mean;
    e.run_variance = n > 1 ? square / (n - 1) : 0;
    e.standard_error_ns = mean_error(n, e.run_variance, e.sampling_variance, &e.degrees);
    e.share_error = mean_error(n, n > 1 ? share_square / (n - 1) : 0, share_sampling, &e.share_degrees);
    return e;
}

/* Welch and Satterthwaite: degrees of freedom of a difference of two means. */
static double welch_degrees(double error_a, double degrees_a, double error_b, double degrees_b)
{
    double a = error_a * error_a, b = error_b * error_b;
    double below = a * a / degrees_a + b * b / degrees_b;
    return below > 0 ? (a + b) * (a + b) / below : INFINITY;
}

static double two_sided_p(double difference, double error, double degrees)
{
    if (error <= 0)
        return difference == 0 ? 1 : 0;
    return fmin(1, 2 * lapse_student_cdf(-fabs(difference) / error, degrees));
}

/* Fieller 1954: all ratios r with (new - r base)^2 <= t^2 (e_new^2 + r^2 e_base^2). */
static struct lapse_range ratio_interval(const struct lapse_estimate *base, const struct lapse_estimate *new, double t)
{
    double a = base->mean_ns * base->mean_ns - t * t * base->standard_error_ns * base->standard_error_ns;
    double b = base->mean_ns * new->mean_ns;
    double c = new->mean_ns * new->mean_ns - t * t * new->standard_error_ns * new->standard_error_ns;
    double under = b * b - a * c;
    if (a <= 0 || under < 0) /* base is not shown to differ from nothing: no bound above */
        return (struct lapse_range){ c > 0 && a <= 0 && b > 0 ? fmax(0, c / (2 * b)) : 0, INFINITY };
    return (struct lapse_range){ fmax(0, (b - sqrt(under)) / a), (b + sqrt(under)) / a };
}

void lapse_change_compare(struct lapse_change *change, double level)
{
    const struct lapse_estimate *base = &change->base, *new = &change->new;
    double degrees = welch_degrees(base->standard_error_ns, base->degrees, new->standard_error_ns, new->degrees);
    double error = hypot(base->standard_error_ns, new->standard_error_ns);
    double t = lapse_student_quantile(0.5 + level / 2, degrees);
    change->difference_ns = new->mean_ns - base->mean_ns;
    change->difference_interval = (struct lapse_range){ change->difference_ns - t * error, change->difference_ns + t * error };
    change->relative = base->mean_ns > 0 ? new->mean_ns / base->mean_ns - 1 : new->mean_ns > 0 ? INFINITY : 0;
    struct lapse_range ratio = ratio_interval(base, new, t);
    change->relative_interval = (struct lapse_range){ ratio.low - 1, ratio.high - 1 };
    change->p = change->adjusted_p = two_sided_p(change->difference_ns, error, degrees);
    change->share_p = two_sided_p(new->share - base->share, hypot(base->share_error, new->share_error),
        welch_degrees(base->share_error, base->share_degrees, new->share_error, new->share_degrees));
}

double lapse_change_exceeds_p(const struct lapse_change *change, double by, double by_ns)
{
    const struct lapse_estimate *base = &change->base, *new = &change->new;
    double base_error = (1 + by) * base->standard_error_ns;
    double degrees = welch_degrees(base_error, base->degrees, new->standard_error_ns, new->degrees);
    double error = hypot(base_error, new->standard_error_ns);
    double excess = new->mean_ns - (1 + by) * base->mean_ns - by_ns;
    if (error <= 0)
        return excess > 0 ? 0 : 1;
    return lapse_student_cdf(-excess / error, degrees);
}

uint32_t lapse_runs_needed(const struct lapse_estimate *estimate, uint32_t runs, double by, double power)
{
    if (runs < 2 || estimate->mean_ns <= 0 || by <= 0)
        return 0;
    double variance = fmax(estimate->run_variance, estimate->sampling_variance) * (1 + (1 + by) * (1 + by));
    double wanted = by * estimate->mean_ns;
    uint32_t low = 1, high = 100000; /* too few; the most that is looked at */
    while (high - low > 1) {
        uint32_t n = low + (high - low) / 2;
        double degrees = 2.0 * n - 2;
        double reach = lapse_student_quantile(0.975, degrees) + lapse_student_quantile(power, degrees);
        *(reach * sqrt(variance / n) <= wanted ? &high : &low) = n;
    }
    return high == 100000 ? UINT32_MAX : high;
}
