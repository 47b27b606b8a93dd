/* SPDX-License-Identifier: MIT */
/* Share intervals by simulation: how often do they hold the true share? Seeds are fixed, so the
 * figures are the same each time; run with -v to see the table. */
#include "statistics.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

static uint64_t state;

/* splitmix64, as a number in [0, 1) */
static double uniform(void)
{
    uint64_t value = state += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return (double)((value ^ value >> 31) >> 11) * 0x1p-53;
}

/* Weights of a sample inside and outside of the part: `base`, or `heavy` with probability `rate`. */
struct weights { double base, heavy, rate; };

static double mean(const struct weights *weights)
{
    return weights->base * (1 - weights->rate) + weights->heavy * weights->rate;
}

static double normal(void)
{
    return sqrt(-2 * log(1 - uniform())) * cos(2 * M_PI * uniform());
}

/* How many of `n` with this chance; where that is large and wide, as the normal distribution has it. */
static int binomial(int n, double chance)
{
    double middle = n * chance, spread = sqrt(middle * (1 - chance));
    if (spread > 20)
        return (int)fmin(n, fmax(0, floor(middle + spread * normal() + 0.5)));
    int count = 0;
    for (int i = 0; i < n; i++)
        count += uniform() < chance;
    return count;
}

static void add(const struct weights *weights, int samples, double *sum, double *squares)
{
    int heavy = weights->rate > 0 ? binomial(samples, weights->rate) : 0;
    *sum += heavy * weights->heavy + (samples - heavy) * weights->base;
    *squares += heavy * weights->heavy * weights->heavy + (samples - heavy) * weights->base * weights->base;
}

/* Share of runs whose interval holds the truth. The true share is drawn anew for each run from
 * [low, high], log-uniformly: with so few events at hand the coverage at one single share jumps, for
 * every interval that is made from a count (see docs/STATISTICS.md). */
static double coverage(double low, double high, int samples, int runs, struct weights inside,
                       struct weights outside)
{
    int held = 0;
    for (int run = 0; run < runs; run++) {
        double chance = low * pow(high / low, uniform()), part = 0, part_squares = 0;
        int in = binomial(samples, chance);
        add(&inside, in, &part, &part_squares);
        double whole = part, whole_squares = part_squares;
        add(&outside, samples - in, &whole, &whole_squares);
        double true_part = chance * mean(&inside), rest = (1 - chance) * mean(&outside);
        struct lapse_range range = lapse_share_interval(part, whole, part_squares, whole_squares);
        double truth = true_part / (true_part + rest);
        held += range.low <= truth && truth <= range.high;
    }
    return (double)held / runs;
}

/* Tolerance: 4 standard errors of the simulation on top of 93 to 97 %. */
static void expect_coverage(double low, double high, int samples, int runs, struct weights inside,
                            struct weights outside)
{
    double found = coverage(low, high, samples, runs, inside, outside);
    double slack = 4 * sqrt(0.95 * 0.05 / runs);
    cr_log_info("samples %6d, share %.3f to %.3f: %.1f %%", samples, low, high, 100 * found);
    cr_expect(found >= 0.93 - slack && found <= 0.97 + slack, "samples %d, share %.3f to %.3f: %.2f %%",
              samples, low, high, 100 * found);
}

static const double bands[][2] = { { 0.005, 0.02 }, { 0.02, 0.1 }, { 0.1, 0.5 }, { 0.5, 0.9 } };
static const struct { int samples, runs; } sizes[] = {
    { 50, 20000 }, { 200, 20000 }, { 1000, 10000 }, { 10000, 8000 }, { 100000, 8000 },
};

static void expect_all(struct weights inside, struct weights outside)
{
    for (size_t size = 0; size < sizeof sizes / sizeof *sizes; size++)
        for (size_t band = 0; band < sizeof bands / sizeof *bands; band++)
            expect_coverage(bands[band][0], bands[band][1], sizes[size].samples, sizes[size].runs,
                            inside, outside);
}

Test(statistics, coverage_of_equal_weights)
{
    state = 1;
    expect_all((struct weights){ 5e6, 0, 0 }, (struct weights){ 5e6, 0, 0 });
}

/* Merged ticks: some samples stand for two periods, wherever they fall. */
Test(statistics, coverage_of_merged_ticks)
{
    state = 2;
    expect_all((struct weights){ 1, 2, 0.1 }, (struct weights){ 1, 2, 0.1 });
}

/* Every fifth sample stands for eight times as much: the interval must be half as wide again. */
Test(statistics, coverage_of_very_unequal_weights)
{
    state = 3;
    expect_all((struct weights){ 1, 8, 0.2 }, (struct weights){ 1, 8, 0.2 });
}

/* Samples of the part weigh four times as much as the others, as with two rates in one recording.
 * With enough samples the interval knows; before that it may only be too wide or, for rare and heavy
 * parts, is not claimed to hold. */
Test(statistics, coverage_when_the_part_weighs_more)
{
    state = 4;
    for (int heavy_part = 0; heavy_part < 2; heavy_part++) {
        struct weights light = { 1, 0, 0 }, heavy = { 4, 0, 0 };
        expect_coverage(0.1, 0.5, 1000, 3000, heavy_part ? heavy : light, heavy_part ? light : heavy);
        expect_coverage(0.02, 0.9, 10000, 800, heavy_part ? heavy : light, heavy_part ? light : heavy);
    }
}

/* Wilson's interval for 15 of 148, as published by Newcombe (1998), table of example data: method 3. */
Test(statistics, known_values)
{
    struct lapse_range range = lapse_share_interval(15, 148, 15, 148);
    cr_expect_float_eq(range.low, 0.0624, 0.00005, "%f", range.low);
    cr_expect_float_eq(range.high, 0.1605, 0.00005, "%f", range.high);
    range = lapse_share_interval(81, 263, 81, 263);
    cr_expect_float_eq(range.low, 0.2553, 0.00005, "%f", range.low);
    cr_expect_float_eq(range.high, 0.3662, 0.00005, "%f", range.high);
}

Test(statistics, ends_of_the_scale)
{
    struct lapse_range none = lapse_share_interval(0, 100, 0, 100);
    struct lapse_range all = lapse_share_interval(100, 100, 100, 100);
    struct lapse_range nothing = lapse_share_interval(0, 0, 0, 0);
    cr_expect(none.low == 0 && none.high > 0.03 && none.high < 0.04);
    cr_expect(all.high == 1 && all.low > 0.96 && all.low < 0.97);
    cr_expect(nothing.low == 0 && nothing.high == 1);
}

/* The unit of the weights does not matter. */
Test(statistics, scale_free)
{
    struct lapse_range one = lapse_share_interval(30, 100, 40, 130);
    struct lapse_range other = lapse_share_interval(30e6, 100e6, 40e12, 130e12);
    cr_expect_float_eq(one.low, other.low, 1e-12);
    cr_expect_float_eq(one.high, other.high, 1e-12);
}
