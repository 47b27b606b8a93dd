/* SPDX-License-Identifier: MIT */
#include "gate.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>

static char error[256];

Test(gate, every_form_is_read)
{
    static const struct { const char *text; enum lapse_change_kind kind; const char *pattern; double by, by_ns; } forms[] = {
        { "total:>3%", LAPSE_CHANGE_TOTAL, NULL, 0.03, 0 },
        { "func:parse_*:>5%", LAPSE_CHANGE_CUMULATIVE, "parse_*", 0.05, 0 },
        { "self:memcpy:>10%,>2ms", LAPSE_CHANGE_SELF, "memcpy", 0.1, 2e6 },
        { "func:ns::f(int):>1.5%", LAPSE_CHANGE_CUMULATIVE, "ns::f(int)", 0.015, 0 },
        { "func:operator:>:>2us", LAPSE_CHANGE_CUMULATIVE, "operator:>", 0, 2e3 },
        { "path:main;*:>1s", LAPSE_CHANGE_PATH, "main;*", 0, 1e9 },
    };
    for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct lapse_gate gate;
        cr_assert_eq(lapse_gate_parse(&gate, forms[i].text, error, sizeof error), 0, "%s", forms[i].text);
        cr_expect_eq(gate.kind, forms[i].kind, "%s", forms[i].text);
        cr_expect_float_eq(gate.by, forms[i].by, 1e-12);
        cr_expect_float_eq(gate.by_ns, forms[i].by_ns, 1e-3);
        if (forms[i].pattern)
            cr_expect_str_eq(gate.pattern, forms[i].pattern);
        lapse_gate_fini(&gate);
    }
}

Test(gate, everything_else_is_refused_with_its_text)
{
    static const char *const wrong[] = { "", "total", "total:3%", "total:>", "total:>x%", "total:>-3%", "total:>3", "total:>3%x",
                                         "func:>3%", "file:a:>3%", "total:>3%,", "total:>nan%", "total:>3parsecs" };
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct lapse_gate gate;
        cr_expect_eq(lapse_gate_parse(&gate, wrong[i], error, sizeof error), -EINVAL, "'%s'", wrong[i]);
        cr_expect(strstr(error, wrong[i]));
        lapse_gate_fini(&gate);
    }
}

/* A thing with these runs on both sides, in ns. */
static struct lapse_change change_of(enum lapse_change_kind kind, const char *name, double base, double new, double error_ns)
{
    struct lapse_change change = { .kind = kind, .name = name, .verdict = LAPSE_SAME };
    change.base = (struct lapse_estimate){ .mean_ns = base, .standard_error_ns = error_ns, .degrees = 9, .samples = 1000,
                                           .run_variance = 10 * error_ns * error_ns };
    change.new = change.base;
    change.new.mean_ns = new;
    change.difference_ns = new - base;
    change.relative = new / base - 1;
    change.relative_interval = (struct lapse_range){ change.relative - 3 * error_ns / base, change.relative + 3 * error_ns / base };
    change.difference_interval = (struct lapse_range){ new - base - 3 * error_ns, new - base + 3 * error_ns };
    return change;
}

static enum lapse_gate_result result_of(const char *text, struct lapse_change *changes, uint32_t count)
{
    struct lapse_comparison comparison = { .base_runs = 10, .new_runs = 10, .level = 0.95, .changes = changes, .change_count = count,
        .total = change_of(LAPSE_CHANGE_TOTAL, "total", 1e9, 1.1e9, 1e6) };
    struct lapse_gate gate;
    struct lapse_gate_findings findings;
    cr_assert_eq(lapse_gate_parse(&gate, text, error, sizeof error), 0);
    cr_assert_eq(lapse_gates_check(&findings, &comparison, &gate, 1), 0);
    enum lapse_gate_result worst = findings.worst;
    cr_expect_eq(findings.unmatched_count, !findings.count, "listed, exactly when it fits nothing");
    if (findings.unmatched_count)
        cr_expect_eq(findings.unmatched[0], &gate);
    lapse_gate_findings_fini(&findings);
    lapse_gate_fini(&gate);
    return worst;
}

Test(gate, crossed_when_the_whole_interval_lies_beyond)
{
    struct lapse_change change = change_of(LAPSE_CHANGE_CUMULATIVE, "f", 1e8, 1.2e8, 1e6);
    cr_expect_eq(result_of("total:>3%", &change, 1), LAPSE_GATE_CROSSED);
    cr_expect_eq(result_of("total:>10%", &change, 1), LAPSE_GATE_UNSURE, "10 % is in the middle of it");
    cr_expect_eq(result_of("total:>20%", &change, 1), LAPSE_GATE_CLEAR);
    cr_expect_eq(result_of("func:f:>5%", &change, 1), LAPSE_GATE_CROSSED);
    cr_expect_eq(result_of("func:g:>5%", &change, 1), LAPSE_GATE_CLEAR, "fits nothing");
    cr_expect_eq(result_of("self:f:>5%", &change, 1), LAPSE_GATE_CLEAR, "of another kind");
}

Test(gate, both_limits_must_be_crossed)
{
    struct lapse_change change = change_of(LAPSE_CHANGE_CUMULATIVE, "f", 1e6, 2e6, 1e4);
    cr_expect_eq(result_of("func:f:>5%,>0.5ms", &change, 1), LAPSE_GATE_CROSSED);
    cr_expect_eq(result_of("func:f:>5%,>2ms", &change, 1), LAPSE_GATE_CLEAR);
}

Test(gate, too_few_samples_never_fail)
{
    struct lapse_change change = change_of(LAPSE_CHANGE_CUMULATIVE, "f", 1e6, 9e6, 1e3);
    change.verdict = LAPSE_TOO_FEW;
    cr_expect_eq(result_of("func:f:>5%", &change, 1), LAPSE_GATE_UNSURE);
    cr_expect_eq(result_of("func:*:>5%", &change, 1), LAPSE_GATE_CLEAR);
}

/* The more a pattern fits, the more it takes: one of 400 equal things looks slower by chance. */
Test(gate, many_things_under_one_pattern_are_corrected)
{
    static struct lapse_change changes[400];
    for (unsigned i = 0; i < 400; i++)
        changes[i] = change_of(LAPSE_CHANGE_CUMULATIVE, "f", 1e8, 1e8, 1e6);
    changes[7] = change_of(LAPSE_CHANGE_CUMULATIVE, "f", 1e8, 1.04e8, 1e6);
    cr_expect_eq(result_of("func:f:>0%", &changes[7], 1), LAPSE_GATE_CROSSED);
    cr_expect_neq(result_of("func:f:>0%", changes, 400), LAPSE_GATE_CROSSED);
}
