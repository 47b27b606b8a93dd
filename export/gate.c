/* SPDX-License-Identifier: MIT */
#include "gate.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "distributions.h"

static const struct { const char *word; enum lapse_change_kind kind; } kinds[] = {
    { "func", LAPSE_CHANGE_CUMULATIVE }, { "self", LAPSE_CHANGE_SELF }, { "path", LAPSE_CHANGE_PATH },
};

static const struct { const char *suffix; double ns; } units[] = {
    { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 },
};

/* One `>5%` or `>2ms` at *text; moves past it. */
static int parse_limit(struct lapse_gate *gate, const char **text)
{
    char *end;
    if (*(*text)++ != '>')
        return -EINVAL;
    double value = strtod(*text, &end);
    if (end == *text || !(value >= 0) || !isfinite(value))
        return -EINVAL;
    if (*end == '%') {
        gate->by = value / 100;
        *text = end + 1;
        return 0;
    }
    size_t length = strcspn(end, ",");
    for (unsigned i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i].suffix) == length && !strncmp(end, units[i].suffix, length)) {
            gate->by_ns = value * units[i].ns;
            *text = end + length;
            return 0;
        }
    return -EINVAL;
}

static int parse(struct lapse_gate *gate, const char *text)
{
    const char *limit = strstr(text, ":>");
    /* Names may hold `:>`, limits do not: the last one counts. */
    for (const char *next = limit; next; next = strstr(next + 1, ":>"))
        limit = next;
    if (!limit)
        return -EINVAL;
    const char *at = limit + 1;
    do {
        if (parse_limit(gate, &at))
            return -EINVAL;
    } while (*at++ == ',');
    if (at[-1])
        return -EINVAL;
    if (limit - text == 5 && !strncmp(text, "total", 5)) {
        gate->kind = LAPSE_CHANGE_TOTAL;
        return 0;
    }
    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i].word);
        if (strncmp(text, kinds[i].word, length) || text[length] != ':' || text + length >= limit)
            continue;
        gate->kind = kinds[i].kind;
        gate->pattern = strndup(text + length + 1, (size_t)(limit - text) - length - 1);
        return gate->pattern ? 0 : -ENOMEM;
    }
    return -EINVAL;
}

int lapse_gate_parse(struct lapse_gate *gate, const char *text, char *error, size_t size)
{
    *gate = (struct lapse_gate){ .text = text };
    int result = parse(gate, text);
    if (result)
        snprintf(error, size, "gate '%s': not total:>N%%, func:NAME:>N%%, self:NAME:>N%% or path:NAME:>N%% "
                 "(N%% or a time such as 2ms; several by comma)", text);
    return result;
}

void lapse_gate_fini(struct lapse_gate *gate)
{
    free(gate->pattern);
    gate->pattern = NULL;
}

static bool fits(const struct lapse_gate *gate, const struct lapse_change *change)
{
    return gate->kind == change->kind && (!gate->pattern || !fnmatch(gate->pattern, change->name, 0));
}

static struct lapse_gate_finding hold_against(const struct lapse_gate *gate, const struct lapse_change *change)
{
    bool can_tell = change->verdict != LAPSE_TOO_FEW;
    return (struct lapse_gate_finding){ .gate = gate, .change = change,
                                        .p = can_tell ? lapse_change_exceeds_p(change, gate->by, 0) : 1 };
}

static uint32_t runs_needed(const struct lapse_comparison *c, const struct lapse_gate_finding *finding)
{
    const struct lapse_gate *gate = finding->gate;
    const struct lapse_estimate *e = finding->change->base.mean_ns > 0 ? &finding->change->base : &finding->change->new;
    uint32_t runs = c->base_blocks || c->new_blocks ? 0 : c->base_runs < c->new_runs ? c->base_runs : c->new_runs;
    double by = fmax(gate->by, e->mean_ns > 0 ? gate->by_ns / e->mean_ns : 0);
    return lapse_runs_needed(e, runs, fmax(by, 0.01), 0.9);
}

/* The limits are held one by one: beyond both means beyond each. */
static double absolute_p(const struct lapse_gate_finding *finding)
{
    return finding->gate->by_ns > 0 ? lapse_change_exceeds_p(finding->change, 0, finding->gate->by_ns) : 0;
}

static enum lapse_gate_result judge(const struct lapse_gate_finding *finding, double level)
{
    double alpha = (1 - level) / 2;
    /* A pattern fits many small things that nobody asked about one by one; a name is a question. */
    if (finding->change->verdict == LAPSE_TOO_FEW)
        return finding->gate->pattern && strpbrk(finding->gate->pattern, "*?[") ? LAPSE_GATE_CLEAR
                                                                               : LAPSE_GATE_UNSURE;
    if (finding->p <= alpha)
        return LAPSE_GATE_CROSSED;
    if (finding->change->relative_interval.high <= finding->gate->by ||
        (finding->gate->by_ns > 0 && finding->change->difference_interval.high <= finding->gate->by_ns))
        return LAPSE_GATE_CLEAR;
    return LAPSE_GATE_UNSURE;
}

static int by_result_and_size(const void *a, const void *b)
{
    const struct lapse_gate_finding *x = a, *y = b;
    if (x->result != y->result)
        return x->result > y->result ? -1 : 1;
    double dx = x->change->difference_ns, dy = y->change->difference_ns;
    return dx != dy ? (dx > dy ? -1 : 1) : strcmp(x->change->name, y->change->name);
}

static int correct(struct lapse_gate_findings *findings)
{
    double *p = calloc(findings->count + 1, sizeof *p);
    unsigned *order = calloc(findings->count + 1, sizeof *order), tested = 0;
    if (p && order) {
        for (uint32_t i = 0; i < findings->count; i++)
            if (findings->findings[i].change->verdict != LAPSE_TOO_FEW)
                p[tested++] = fmax(findings->findings[i].p, absolute_p(&findings->findings[i]));
        lapse_adjust_p_values(p, order, tested);
        tested = 0;
        for (uint32_t i = 0; i < findings->count; i++)
            if (findings->findings[i].change->verdict != LAPSE_TOO_FEW)
                findings->findings[i].p = p[tested++];
    }
    int result = p && order ? 0 : -ENOMEM;
    free(p);
    free(order);
    return result;
}

int lapse_gates_check(struct lapse_gate_findings *findings, const struct lapse_comparison *c,
                      const struct lapse_gate *gates, uint32_t gate_count)
{
    *findings = (struct lapse_gate_findings){
        .findings = calloc((size_t)gate_count * (c->change_count + 1) + 1, sizeof *findings->findings) };
    findings->unmatched = calloc(gate_count + 1, sizeof *findings->unmatched);
    if (!findings->findings || !findings->unmatched) {
        lapse_gate_findings_fini(findings);
        return -ENOMEM;
    }
    for (uint32_t g = 0; g < gate_count; g++) {
        uint32_t before = findings->count;
        if (fits(&gates[g], &c->total))
            findings->findings[findings->count++] = hold_against(&gates[g], &c->total);
        for (uint32_t i = 0; i < c->change_count; i++)
            if (fits(&gates[g], &c->changes[i]))
                findings->findings[findings->count++] = hold_against(&gates[g], &c->changes[i]);
        if (findings->count == before)
            findings->unmatched[findings->unmatched_count++] = &gates[g];
    }
    int result = correct(findings);
    for (uint32_t i = 0; !result && i < findings->count; i++) {
        struct lapse_gate_finding *finding = &findings->findings[i];
        finding->result = judge(finding, c->level);
        if (finding->result > findings->worst)
            findings->worst = finding->result;
        if (finding->result == LAPSE_GATE_UNSURE)
            finding->runs_needed = runs_needed(c, finding);
        if (finding->runs_needed > findings->runs_needed)
            findings->runs_needed = finding->runs_needed;
    }
    if (findings->count)
        qsort(findings->findings, findings->count, sizeof *findings->findings, by_result_and_size);
    return result;
}

void lapse_gate_findings_fini(struct lapse_gate_findings *findings)
{
    free(findings->findings);
    free(findings->unmatched);
    *findings = (struct lapse_gate_findings){ 0 };
}
