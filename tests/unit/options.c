/* SPDX-License-Identifier: MIT */
/* Every LAPSE_* variable: its default, right values, each kind of wrong value with its message; the
 * same through struct lapse_options; expansion of path patterns. */
#include "options.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct lapse_settings settings;
static char line[1024];

static int read_one(const char *variable)
{
    char *environment[] = { (char *)"HOME=/", (char *)variable, NULL };
    struct lapse_text error = { line, 0, sizeof line };
    line[0] = 0;
    return lapse_options_read(&settings, NULL, environment, &error);
}

static void good(const char *variable)
{
    cr_assert_eq(read_one(variable), 0, "%s: %s", variable, line);
    cr_assert_str_empty(line);
}

static void bad(const char *variable, const char *why)
{
    char wanted[1024];
    snprintf(wanted, sizeof wanted, "%s: %s", variable, why);
    cr_assert_eq(read_one(variable), -EINVAL, "%s was taken", variable);
    cr_assert_str_eq(line, wanted);
}

Test(options, defaults)
{
    good("NOTHING=1");
    cr_assert_str_eq(settings.out, "lapse-%e-%p");
    cr_assert_eq(settings.hz, 199);
    cr_assert_eq(settings.period_ns, 1000000000 / 199);
    cr_assert_eq(settings.clock, LAPSE_CLOCK_CPU);
    cr_assert_eq(settings.depth, 1024);
    cr_assert_eq(settings.exports, LAPSE_EXPORT_FOLDED | LAPSE_EXPORT_EVENTS);
    cr_assert_eq(settings.min_samples, 1);
    cr_assert_eq(settings.close, LAPSE_CLOSE_LAST);
    cr_assert_eq(settings.gap_ns, 0);
    cr_assert_not(settings.start_paused);
    cr_assert_eq(settings.toggle_signal, 0);
    cr_assert_eq(settings.duration_ns, 0);
    cr_assert_eq(settings.delay_ns, 0);
    cr_assert(settings.follow);
    cr_assert_eq(settings.signal, SIGPROF);
    cr_assert_not(settings.respect_mask);
    cr_assert_not(settings.quiet);
    cr_assert_not(settings.verbose);
    cr_assert_eq(settings.exit_budget_ms, 2000);
    cr_assert_not(settings.has_run_id);
}

Test(options, numbers)
{
    static const char *const why = "not a number from 1 to 10000";
    good("LAPSE_HZ=1");
    cr_assert_eq(settings.period_ns, 1000000000);
    good("LAPSE_HZ=10000");
    cr_assert_eq(settings.hz, 10000);
    static const char *const wrong[] = { "", "abc", "0", "10001", "-1", "+5", " 5", "5 ", "5x", "0x10",
        "1.5", "99999999999999999999999" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char variable[64];
        snprintf(variable, sizeof variable, "LAPSE_HZ=%s", wrong[i]);
        bad(variable, why);
    }
    good("LAPSE_DEPTH=8");
    good("LAPSE_DEPTH=4096");
    cr_assert_eq(settings.depth, 4096);
    bad("LAPSE_DEPTH=7", "not a number from 8 to 4096");
    bad("LAPSE_DEPTH=4097", "not a number from 8 to 4096");
    good("LAPSE_MIN_SAMPLES=3");
    cr_assert_eq(settings.min_samples, 3);
    bad("LAPSE_MIN_SAMPLES=0", "not a number from 1 to 1000000");
    good("LAPSE_EXIT_BUDGET_MS=5");
    cr_assert_eq(settings.exit_budget_ms, 5);
    bad("LAPSE_EXIT_BUDGET_MS=0", "not a number from 1 to 3600000");
    good("LAPSE_RUN_INDEX=12");
    cr_assert_eq(settings.run_index, 12);
    bad("LAPSE_RUN_INDEX=x", "not a number");
    good("LAPSE_RUN_VARIANT=4294967295");
    cr_assert_eq(settings.run_variant, 4294967295u);
    bad("LAPSE_RUN_VARIANT=4294967296", "not a number");
}

Test(options, words)
{
    good("LAPSE_CLOCK=cpu");
    good("LAPSE_CLOCK=perf");
    cr_assert_eq(settings.clock, LAPSE_CLOCK_PERF);
    good("LAPSE_CLOCK=wall");
    cr_assert_eq(settings.clock, LAPSE_CLOCK_WALL);
    bad("LAPSE_CLOCK=CPU", "not cpu, perf or wall");
    bad("LAPSE_CLOCK=cp", "not cpu, perf or wall");
    bad("LAPSE_CLOCK=", "not cpu, perf or wall");
    good("LAPSE_CLOSE=next");
    cr_assert_eq(settings.close, LAPSE_CLOSE_NEXT);
    good("LAPSE_CLOSE=open");
    cr_assert_eq(settings.close, LAPSE_CLOSE_OPEN);
    bad("LAPSE_CLOSE=never", "not last, next or open");
    good("LAPSE_START=paused");
    cr_assert(settings.start_paused);
    good("LAPSE_START=now");
    cr_assert_not(settings.start_paused);
    bad("LAPSE_START=later", "not now or paused");
}

Test(options, exports)
{
    static const char *const why = "not folded, events, folded,events or none";
    good("LAPSE_EXPORT=folded");
    cr_assert_eq(settings.exports, LAPSE_EXPORT_FOLDED);
    good("LAPSE_EXPORT=events,folded");
    cr_assert_eq(settings.exports, LAPSE_EXPORT_FOLDED | LAPSE_EXPORT_EVENTS);
    good("LAPSE_EXPORT=none");
    cr_assert_eq(settings.exports, 0);
    bad("LAPSE_EXPORT=", why);
    bad("LAPSE_EXPORT=folded,", why);
    bad("LAPSE_EXPORT=folded,none", why);
    bad("LAPSE_EXPORT=none,folded", why);
    bad("LAPSE_EXPORT=folded,folded", why);
    bad("LAPSE_EXPORT=html", why);
}

Test(options, times)
{
    good("LAPSE_DURATION=2");
    cr_assert_eq(settings.duration_ns, 2000000000);
    good("LAPSE_DURATION=0.25");
    cr_assert_eq(settings.duration_ns, 250000000);
    good("LAPSE_DELAY=.5");
    cr_assert_eq(settings.delay_ns, 500000000);
    good("LAPSE_DELAY=1.000000001");
    cr_assert_eq(settings.delay_ns, 1000000001);
    good("LAPSE_GAP=50");
    cr_assert_eq(settings.gap_ns, 50000000);
    bad("LAPSE_DURATION=", "not a number of seconds");
    bad("LAPSE_DURATION=.", "not a number of seconds");
    bad("LAPSE_DURATION=1s", "not a number of seconds");
    bad("LAPSE_DURATION=-1", "not a number of seconds");
    bad("LAPSE_DURATION=1e3", "not a number of seconds");
    bad("LAPSE_DURATION=99999999999999999999", "not a number of seconds");
    bad("LAPSE_DELAY=x", "not a number of seconds");
    bad("LAPSE_GAP=x", "not a number of milliseconds");
}

Test(options, signals)
{
    good("LAPSE_SIGNAL=12");
    cr_assert_eq(settings.signal, 12);
    good("LAPSE_SIGNAL=40");
    good("LAPSE_TOGGLE_SIGNAL=10");
    cr_assert_eq(settings.toggle_signal, 10);
    static const char *const wrong[] = { "0", "9", "19", "32", "33", "65", "SIGPROF", "" };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char variable[64];
        snprintf(variable, sizeof variable, "LAPSE_SIGNAL=%s", wrong[i]);
        bad(variable, "not a signal that can be caught");
        snprintf(variable, sizeof variable, "LAPSE_TOGGLE_SIGNAL=%s", wrong[i]);
        bad(variable, "not a signal that can be caught");
    }
    bad("LAPSE_TOGGLE_SIGNAL=27", "is the signal that samples");
}

Test(options, flags)
{
    static const struct { const char *name; size_t offset; } flags[] = {
        { "LAPSE_FOLLOW", offsetof(struct lapse_settings, follow) },
        { "LAPSE_RESPECT_MASK", offsetof(struct lapse_settings, respect_mask) },
        { "LAPSE_QUIET", offsetof(struct lapse_settings, quiet) },
        { "LAPSE_VERBOSE", offsetof(struct lapse_settings, verbose) },
    };
    static const char *const wrong[] = { "", "2", "yes", "10", "true" };
    char variable[64];
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        snprintf(variable, sizeof variable, "%s=1", flags[i].name);
        good(variable);
        cr_assert(*(bool *)((char *)&settings + flags[i].offset));
        snprintf(variable, sizeof variable, "%s=0", flags[i].name);
        good(variable);
        cr_assert_not(*(bool *)((char *)&settings + flags[i].offset));
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            snprintf(variable, sizeof variable, "%s=%s", flags[i].name, wrong[w]);
            bad(variable, "not 0 or 1");
        }
    }
}

Test(options, run_id)
{
    static const uint8_t wanted[16] = { 0, 1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, [15] = 0xff };
    good("LAPSE_RUN_ID=000123456789abcdef000000000000ff");
    cr_assert(settings.has_run_id);
    cr_assert_arr_eq(settings.run_id, wanted, sizeof wanted);
    bad("LAPSE_RUN_ID=00", "not 32 hexadecimal digits");
    bad("LAPSE_RUN_ID=0001023456789abcdef000000000000fff", "not 32 hexadecimal digits");
    bad("LAPSE_RUN_ID=0001023456789abcdef00000000000zz", "not 32 hexadecimal digits");
}

Test(options, paths_are_checked_at_once)
{
    static char longest[5000] = "LAPSE_OUT=";
    good("LAPSE_OUT=/tmp/%e.%p.%t.100%%");
    bad("LAPSE_OUT=", "not a path with %p, %e, %t or %% in it");
    bad("LAPSE_OUT=/tmp/%x", "not a path with %p, %e, %t or %% in it");
    bad("LAPSE_OUT=/tmp/%", "not a path with %p, %e, %t or %% in it");
    memset(longest + 10, 'a', 4200);
    cr_assert_eq(read_one(longest), -EINVAL);
}

Test(options, from_a_structure)
{
    struct lapse_options options = { .out = "here", .hz = 500, .clock = LAPSE_CLOCK_WALL, .depth = 64,
        .exports = LAPSE_EXPORT_NONE, .close = "next", .gap_ns = 7, .start_paused = 1, .toggle_signal = 10,
        .duration_s = 1.5, .delay_s = 0.5, .no_follow = 1, .signal = 12, .respect_mask = 1, .quiet = 1,
        .verbose = 1, .exit_budget_ms = 9, .min_samples = 2 };
    struct lapse_text error = { line, 0, sizeof line };
    cr_assert_eq(lapse_options_read(&settings, &options, NULL, &error), 0);
    cr_assert_str_eq(settings.out, "here");
    cr_assert_eq(settings.hz, 500);
    cr_assert_eq(settings.clock, LAPSE_CLOCK_WALL);
    cr_assert_eq(settings.depth, 64);
    cr_assert_eq(settings.exports, 0);
    cr_assert_eq(settings.close, LAPSE_CLOSE_NEXT);
    cr_assert_eq(settings.duration_ns, 1500000000);
    cr_assert_eq(settings.delay_ns, 500000000);
    cr_assert_not(settings.follow);
    cr_assert_eq(settings.signal, 12);
    cr_assert_eq(settings.min_samples, 2);
    char *environment[] = { (char *)"LAPSE_HZ=77", NULL };
    cr_assert_eq(lapse_options_read(&settings, &options, environment, &error), 0);
    cr_assert_eq(settings.hz, 77);
    cr_assert_eq(settings.depth, 64);
}

Test(options, wrong_structures)
{
    const struct lapse_options wrong[] = {
        { .out = "%x" }, { .out = "" }, { .hz = 10001 }, { .clock = (enum lapse_clock)3 }, { .depth = 7 },
        { .exports = 8 }, { .exports = LAPSE_EXPORT_NONE | LAPSE_EXPORT_FOLDED }, { .close = "x" },
        { .toggle_signal = 9 }, { .toggle_signal = -1 }, { .duration_s = -1 }, { .duration_s = 1e300 },
        { .delay_s = -0.5 }, { .signal = 19 }, { .signal = 12, .toggle_signal = 12 },
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct lapse_text error = { line, 0, sizeof line };
        cr_assert_eq(lapse_options_read(&settings, &wrong[i], NULL, &error), -EINVAL, "case %zu", i);
        cr_assert_str_not_empty(line);
    }
}

Test(options, path_expansion)
{
    static char path[LAPSE_PATH_MAX];
    struct lapse_path_values values = { 4711, "a/b\n", 951782400 + 3661, "/srv" };
    cr_assert_eq(lapse_path_expand(path, "x-%e-%p-%t%%", &values), 0);
    cr_assert_str_eq(path, "/srv/x-a_b_-4711-20000229-010101%");
    cr_assert_eq(lapse_path_expand(path, "/abs", &values), 0);
    cr_assert_str_eq(path, "/abs");
    values.realtime_s = 0;
    cr_assert_eq(lapse_path_expand(path, "/%t", &values), 0);
    cr_assert_str_eq(path, "/19700101-000000");
    values.realtime_s = 4102444799;
    cr_assert_eq(lapse_path_expand(path, "/%t", &values), 0);
    cr_assert_str_eq(path, "/20991231-235959");
    cr_assert_eq(lapse_path_expand(path, "%y", &values), -EINVAL);
}
