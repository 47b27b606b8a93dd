/* SPDX-License-Identifier: MIT */
#include "distributions.h"

#include <math.h>
#include <stdlib.h>

/* The continued fraction of I_x(a, b), without the factor before it. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double result = d;
    for (int m = 1; m < 10000; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double terms[2] = { even, odd }, factor = 1;
        for (int i = 0; i < 2; i++) {
            d = 1 + terms[i] * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + terms[i] / c;
            c = fabs(c) < tiny ? tiny : c;
            factor = c * d;
            result *= factor;
        }
        if (fabs(factor - 1) < 1e-14)
            break;
    }
    return result;
}

double lapse_incomplete_beta(double a, double b, double x)
{
    if (x <= 0)
        return 0;
    if (x >= 1)
        return 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    /* The fraction converges fast on this side of the mode only. */
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double lapse_student_cdf(double t, double degrees)
{
    if (!(degrees < 1e6))
        return 0.5 * erfc(-t / sqrt(2));
    double tail = 0.5 * lapse_incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t));
    return t > 0 ? 1 - tail : tail;
}

static double student_density(double t, double degrees)
{
    if (!(degrees < 1e6))
        return exp(-t * t / 2) / sqrt(2 * M_PI);
    return exp(lgamma((degrees + 1) / 2) - lgamma(degrees / 2) - (degrees + 1) / 2 * log1p(t * t / degrees)) /
           sqrt(degrees * M_PI);
}

/* Newton's steps, kept inside a bracket that halves when one would leave it. */
double lapse_student_quantile(double p, double degrees)
{
    double low = -1, high = 1, t = 0;
    while (lapse_student_cdf(low, degrees) > p && low > -1e12)
        low *= 2;
    while (lapse_student_cdf(high, degrees) < p && high < 1e12)
        high *= 2;
    for (int i = 0; i < 200; i++) {
        double excess = lapse_student_cdf(t, degrees) - p;
        *(excess < 0 ? &low : &high) = t;
        double next = t - excess / student_density(t, degrees);
        if (!(next > low && next < high))
            next = (low + high) / 2;
        if (fabs(next - t) <= 1e-11 * fmax(1, fabs(t)))
            return next;
        t = next;
    }
    return t;
}

static int by_p(const void *a, const void *b, void *context)
{
    const double *p = context;
    double x = p[*(const unsigned *)a], y = p[*(const unsigned *)b];
    return (x > y) - (x < y);
}

void lapse_adjust_p_values(double *p, unsigned *order, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, by_p, p);
    double smallest = 1;
    for (unsigned rank = count; rank > 0; rank--) {
        double *value = &p[order[rank - 1]];
        smallest = fmin(smallest, *value * count / rank);
        *value = smallest;
    }
}
