/* SPDX-License-Identifier: MIT */
/* Comparisons of simulated runs whose truth is known. Every rate has its tolerance derived from the
 * number of trials: p +- 4 sqrt(p (1 - p) / trials). */
#include "estimate.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { TRIALS = 4000, MAX_RUNS = 10 };

static uint64_t state = 88172645463325252u;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void) { return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform()); }

static uint64_t poisson(double mean)
{
    if (mean > 500) {
        double value = floor(mean + sqrt(mean) * normal() + 0.5);
        return value > 0 ? (uint64_t)value : 0;
    }
    uint64_t count = 0;
    for (double left = exp(-mean), product = uniform(); product > left; product *= uniform())
        count++;
    return count;
}

/* One side: runs in which a thing holds `share` of about `samples` samples, with a spread from run to
 * run of its own time (relative standard deviation). */
struct simulated {
    struct lapse_run_sums sums;
    struct lapse_run_cell all[MAX_RUNS], part[MAX_RUNS];
    double scale[MAX_RUNS];
};

static void simulate(struct simulated *side, uint32_t runs, double share, double samples, double spread)
{
    side->sums = (struct lapse_run_sums){ .run_count = runs, .columns = runs, .sums = side->all, .scale = side->scale };
    for (uint32_t i = 0; i < runs; i++) {
        double mine = share * samples * exp(spread * normal() - spread * spread / 2);
        double part = (double)poisson(mine), rest = (double)poisson((1 - share) * samples);
        side->part[i] = (struct lapse_run_cell){ part, part, (uint64_t)part };
        side->all[i] = (struct lapse_run_cell){ part + rest, part + rest, (uint64_t)(part + rest) };
        side->scale[i] = 1;
    }
}

static struct lapse_change compare(double factor, uint32_t runs, double share, double samples, double spread)
{
    static struct simulated base, new;
    struct lapse_change change = { .kind = LAPSE_CHANGE_SELF, .name = "f" };
    simulate(&base, runs, share, samples, spread);
    double slower = samples * (1 + share * (factor - 1));
    simulate(&new, runs, share * factor * samples / slower, slower, spread);
    change.base = lapse_run_estimate(&base.sums, base.part, false);
    change.new = lapse_run_estimate(&new.sums, new.part, false);
    lapse_change_compare(&change, 0.95);
    return change;
}

static const struct { uint32_t runs; double share, samples, spread; } cases[] = {
    { 5, 0.3, 2000, 0.03 }, { 5, 0.9, 500, 0.1 }, { 10, 0.02, 5000, 0.02 }, { 3, 0.1, 3000, 0 }, { 10, 0.5, 20000, 0.01 },
};

Test(estimate, equal_sides_rarely_differ)
{
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        unsigned alarms = 0;
        for (unsigned i = 0; i < TRIALS; i++)
            alarms += compare(1, cases[c].runs, cases[c].share, cases[c].samples, cases[c].spread).p <= 0.05;
        double rate = (double)alarms / TRIALS;
        /* Never above the level; the floor of the error makes it rarer where sampling is all there is. */
        cr_expect_lt(rate, 0.05 + 4 * sqrt(0.05 * 0.95 / TRIALS), "case %u: %.4f", c, rate);
        cr_log_info("case %u: false alarms %.4f", c, rate);
    }
}

Test(estimate, intervals_hold_the_true_ratio)
{
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        unsigned held = 0;
        for (unsigned i = 0; i < TRIALS; i++) {
            struct lapse_change change = compare(1.2, cases[c].runs, cases[c].share, cases[c].samples, cases[c].spread);
            held += change.relative_interval.low <= 0.2 && 0.2 <= change.relative_interval.high;
        }
        double rate = (double)held / TRIALS;
        cr_expect_gt(rate, 0.95 - 4 * sqrt(0.05 * 0.95 / TRIALS), "case %u: %.4f", c, rate);
        cr_log_info("case %u: coverage %.4f", c, rate);
    }
}

/* Every share, size of a side, spread between runs and number of runs, of a function that got 20 % slower: the
 * interval holds the truth in 93 to 97 of 100 trials. Left out are cells where fewer than 25 samples of the
 * function are expected in both sides together: a count so small is mostly 'too few samples' (below 10), and no
 * interval that is made from one has a coverage of its own. */
Test(estimate, coverage_of_every_cell, .timeout = 120)
{
    static const double shares[] = { 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9 };
    static const double sizes[] = { 50, 200, 1000, 10000, 100000 }, spreads[] = { 0, 0.03, 0.1 };
    static const uint32_t runs[] = { 5, 10 };
    enum { TIMES = 1500 };
    double all = 0, least = 1, most = 0;
    unsigned cells = 0;
    for (unsigned spread = 0; spread < 3; spread++)
        for (unsigned r = 0; r < 2; r++) {
            double row = 0;
            unsigned in_row = 0;
            for (unsigned cell = 0; cell < 50; cell++) {
                double share = shares[cell / 5], samples = sizes[cell % 5], held = 0;
                if (2 * share * samples < 25)
                    continue;
                for (unsigned i = 0; i < TIMES; i++) {
                    struct lapse_change change = compare(1.2, runs[r], share, samples / runs[r], spreads[spread]);
                    held += change.relative_interval.low <= 0.2 && 0.2 <= change.relative_interval.high;
                }
                held /= TIMES;
                double slack = 4 * sqrt(0.95 * 0.05 / TIMES);
                cr_expect(held > 0.93 - slack && held < 0.97 + slack, "%u runs, spread %.2f, share %.3f, %.0f samples: %.4f",
                          runs[r], spreads[spread], share, samples, held);
                least = fmin(least, held);
                most = fmax(most, held);
                row += held;
                in_row++;
            }
            cr_log_info("%u runs, spread %.2f: coverage %.4f", runs[r], spreads[spread], row / in_row);
            cr_expect(row / in_row > 0.93 && row / in_row < 0.97, "%u runs, spread %.2f: coverage %.4f", runs[r],
                      spreads[spread], row / in_row);
            all += row;
            cells += in_row;
        }
    cr_log_info("%u cells: coverage %.4f to %.4f, mean %.4f", cells, least, most, all / cells);
}

/* 10 % slower, 30 % of the time, 10 runs a side of 2,000 samples with 3 % spread from run to run: the
 * error of the difference is about 600 sqrt(2 (1/600 + 0.03^2) / 10), 14 samples of 60. */
Test(estimate, a_tenth_slower_is_seen)
{
    unsigned seen = 0;
    for (unsigned i = 0; i < TRIALS; i++) {
        struct lapse_change change = compare(1.1, 10, 0.3, 2000, 0.03);
        seen += change.p <= 0.05 && change.difference_ns > 0;
    }
    cr_expect_gt(seen, 0.9 * TRIALS, "%u of %u", seen, TRIALS);
}

Test(estimate, runs_needed_give_the_power_asked_for)
{
    static struct simulated base;
    simulate(&base, 10, 0.3, 2000, 0.03);
    struct lapse_estimate estimate = lapse_run_estimate(&base.sums, base.part, false);
    estimate.run_variance = 600 + pow(600 * 0.03, 2); /* the truth, in place of one draw */
    uint32_t runs = lapse_runs_needed(&estimate, 10, 0.1, 0.9);
    cr_assert(runs >= 2 && runs <= MAX_RUNS, "%u runs", runs);
    unsigned seen = 0;
    for (unsigned i = 0; i < TRIALS; i++) {
        struct lapse_change change = compare(1.1, runs, 0.3, 2000, 0.03);
        seen += change.p <= 0.05 && change.difference_ns > 0;
    }
    double rate = (double)seen / TRIALS;
    cr_expect_gt(rate, 0.9 - 0.05, "%u runs: %.3f", runs, rate);
    cr_expect_eq(lapse_runs_needed(&estimate, 1, 0.1, 0.9), 0, "one run tells nothing of others");
}

Test(estimate, nothing_against_something_is_unbounded)
{
    static struct simulated base, new;
    struct lapse_change change = { .name = "f" };
    simulate(&base, 5, 0, 1000, 0);
    simulate(&new, 5, 0.1, 1000, 0);
    change.base = lapse_run_estimate(&base.sums, base.part, false);
    change.new = lapse_run_estimate(&new.sums, new.part, false);
    lapse_change_compare(&change, 0.95);
    cr_expect(isinf(change.relative) && isinf(change.relative_interval.high));
    cr_expect_lt(change.p, 0.001);
}
