/* SPDX-License-Identifier: MIT */
#include "comparison_report.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include "json_writer.h"
#include "text.h"

enum { GITHUB_ERRORS = 10 }; /* a step shows no more of a kind */

static const char *const verdicts[] = {
    [LAPSE_SAME] = "same", [LAPSE_SLOWER] = "slower", [LAPSE_FASTER] = "faster", [LAPSE_APPEARED] = "new",
    [LAPSE_VANISHED] = "gone", [LAPSE_SHARE_ONLY] = "share only", [LAPSE_TOO_FEW] = "too few samples",
};
static const char *const kinds[] = {
    [LAPSE_CHANGE_TOTAL] = "total", [LAPSE_CHANGE_SELF] = "self", [LAPSE_CHANGE_CUMULATIVE] = "func",
    [LAPSE_CHANGE_PATH] = "path",
};
static const char *const results[] = {
    [LAPSE_GATE_CLEAR] = "passed", [LAPSE_GATE_UNSURE] = "unsure", [LAPSE_GATE_CROSSED] = "regression",
};

const char *lapse_verdict_name(enum lapse_verdict verdict) { return verdicts[verdict]; }
const char *lapse_change_kind_name(enum lapse_change_kind kind) { return kinds[kind]; }

__attribute__((format(printf, 2, 3)))
static void put(struct lapse_output *to, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (size > 0)
        lapse_output_bytes(to, text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1);
}

static void put_terminal(struct lapse_output *to, const char *name)
{
    size_t size = strlen(name) * 4 + 1;
    char *room = lapse_output_room(to, size);
    if (room)
        to->size += lapse_terminal_name(room, size, name);
}

static bool is_shown(const struct lapse_comparison_report *report, const struct lapse_change *change)
{
    return report->all || (change->verdict != LAPSE_SAME && change->verdict != LAPSE_TOO_FEW);
}

/* "+4.8 %", "new" where the base had nothing. */
static const char *relative_text(char *text, size_t size, double relative)
{
    if (isfinite(relative))
        snprintf(text, size, "%+.1f %%", 100 * relative);
    else
        snprintf(text, size, "%s", relative > 0 ? "more" : "less");
    return text;
}

static const char *interval_text(char *text, size_t size, struct lapse_range range)
{
    char high[32];
    snprintf(text, size, "[%+.1f, %s]", 100 * range.low,
             isfinite(range.high) ? (snprintf(high, sizeof high, "%+.1f", 100 * range.high), high) : "...");
    return text;
}

static const char *time_text(char *text, size_t size, const struct lapse_comparison *c, double ns)
{
    if (c->counts)
        snprintf(text, size, "%.0f", ns);
    else if (ns >= 1e9)
        snprintf(text, size, "%.3f s", ns / 1e9);
    else
        snprintf(text, size, "%.2f ms", ns / 1e6);
    return text;
}

/* ---- text ---- */

static void text_side(struct lapse_output *to, const struct lapse_comparison *c, const char *label, const char *name,
                      uint32_t runs, bool blocks, const struct lapse_estimate *e)
{
    char time[32];
    put(to, "%-5s ", label);
    put_terminal(to, name);
    put(to, ": %u run%s, %s of CPU a run, %llu samples%s\n", runs, runs == 1 ? "" : "s",
        time_text(time, sizeof time, c, e->mean_ns), (unsigned long long)e->samples,
        blocks ? " (one run: no run-to-run noise seen)" : "");
}

static void text_change(struct lapse_output *to, const struct lapse_comparison *c, const struct lapse_change *change)
{
    char relative[32], interval[64], base[32], new[32];
    put(to, "%9s  %-18s %10s %10s  %7.2g  %-15s ", relative_text(relative, sizeof relative, change->relative),
        interval_text(interval, sizeof interval, change->relative_interval),
        time_text(base, sizeof base, c, change->base.mean_ns), time_text(new, sizeof new, c, change->new.mean_ns),
        change->adjusted_p, verdicts[change->verdict]);
    put_terminal(to, change->name);
    lapse_output_char(to, '\n');
}

static void text_kind(struct lapse_output *to, const struct lapse_comparison_report *report,
                      enum lapse_change_kind kind, const char *headline)
{
    const struct lapse_comparison *c = report->comparison;
    uint32_t shown = 0, hidden = 0;
    for (uint32_t i = 0; i < c->change_count; i++) {
        if (c->changes[i].kind != kind)
            continue;
        if (!is_shown(report, &c->changes[i]) || (report->limit && shown == report->limit)) {
            hidden++;
            continue;
        }
        if (!shown++)
            put(to, "\n%s\n%9s  %-18s %10s %10s  %7s  %-15s %s\n", headline, "change", "95 % interval", "base", "new",
                "p", "verdict", kind == LAPSE_CHANGE_PATH ? "stack" : "function");
        text_change(to, c, &c->changes[i]);
    }
    if (!shown)
        put(to, "\n%s: no change shown (%u looked at)\n", headline, hidden);
}

static void text_findings(struct lapse_output *to, const struct lapse_comparison_report *report)
{
    const struct lapse_gate_findings *findings = report->findings;
    if (!report->gate_count)
        return;
    lapse_output_text(to, "\ngates\n");
    uint32_t clear = 0;
    for (uint32_t i = 0; i < findings->count; i++) {
        const struct lapse_gate_finding *f = &findings->findings[i];
        char relative[32], interval[64];
        if (f->result == LAPSE_GATE_CLEAR) {
            clear++;
            continue;
        }
        put(to, "  %-10s  %s %s  ", results[f->result], relative_text(relative, sizeof relative, f->change->relative),
            interval_text(interval, sizeof interval, f->change->relative_interval));
        put_terminal(to, f->change->name);
        put(to, "  (%s", f->gate->text);
        if (f->result == LAPSE_GATE_UNSURE && f->runs_needed && f->runs_needed != UINT32_MAX)
            put(to, "; %u runs a side would tell", f->runs_needed);
        lapse_output_text(to, ")\n");
    }
    put(to, "  %u within their limits\n", clear);
    for (uint32_t i = 0; i < findings->unmatched_count; i++) {
        lapse_output_text(to, "  error       ");
        put_terminal(to, findings->unmatched[i]->text);
        lapse_output_text(to, ": names nothing that was sampled, on either side\n");
    }
}

void lapse_report_comparison_text(struct lapse_output *to, const struct lapse_comparison_report *report)
{
    const struct lapse_comparison *c = report->comparison;
    text_side(to, c, "base", report->base_name, c->base_runs, c->base_blocks, &c->total.base);
    text_side(to, c, "new", report->new_name, c->new_runs, c->new_blocks, &c->total.new);
    lapse_output_text(to, "\n");
    put(to, "%9s  %-18s %10s %10s  %7s  %-15s\n", "change", "95 % interval", "base", "new", "p", "verdict");
    text_change(to, c, &c->total);
    text_kind(to, report, LAPSE_CHANGE_SELF, "functions by themselves");
    text_kind(to, report, LAPSE_CHANGE_CUMULATIVE, "functions with what they call");
    if (report->paths)
        text_kind(to, report, LAPSE_CHANGE_PATH, "stacks");
    text_findings(to, report);
}

/* ---- tsv ---- */

static void tsv_change(struct lapse_output *to, const struct lapse_change *change)
{
    put(to, "%s\t%s\t%.0f\t%.0f\t%.6g\t%.6g\t%.6g\t%.4g\t%llu\t%llu\t", kinds[change->kind], verdicts[change->verdict],
        change->base.mean_ns, change->new.mean_ns, change->relative, change->relative_interval.low,
        change->relative_interval.high, change->adjusted_p, (unsigned long long)change->base.samples,
        (unsigned long long)change->new.samples);
    size_t size = strlen(change->name) * 4 + 1;
    char *room = lapse_output_room(to, size);
    if (room)
        to->size += lapse_escaped_name(room, size, change->name);
    lapse_output_char(to, '\n');
}

void lapse_report_comparison_tsv(struct lapse_output *to, const struct lapse_comparison_report *report)
{
    const struct lapse_comparison *c = report->comparison;
    lapse_output_text(to, "kind\tverdict\tbase_ns\tnew_ns\trelative\tlow\thigh\tp\tbase_samples\tnew_samples\tname\n");
    tsv_change(to, &c->total);
    for (uint32_t i = 0; i < c->change_count; i++)
        if (is_shown(report, &c->changes[i]) && (report->paths || c->changes[i].kind != LAPSE_CHANGE_PATH))
            tsv_change(to, &c->changes[i]);
}

/* ---- json ---- */

/* JSON knows no infinity: null. */
static void json_number(struct lapse_output *to, const char *key, double value)
{
    if (isfinite(value))
        put(to, ",\"%s\":%.9g", key, value);
    else
        put(to, ",\"%s\":null", key);
}

static void json_change(struct lapse_output *to, const struct lapse_change *change)
{
    put(to, "{\"kind\":\"%s\",\"name\":", kinds[change->kind]);
    lapse_json_string(to, change->name);
    put(to, ",\"verdict\":\"%s\"", verdicts[change->verdict]);
    json_number(to, "base_ns", change->base.mean_ns);
    json_number(to, "new_ns", change->new.mean_ns);
    json_number(to, "base_share", change->base.share);
    json_number(to, "new_share", change->new.share);
    json_number(to, "relative", change->relative);
    json_number(to, "relative_low", change->relative_interval.low);
    json_number(to, "relative_high", change->relative_interval.high);
    json_number(to, "p", change->adjusted_p);
    put(to, ",\"base_samples\":%llu,\"new_samples\":%llu}", (unsigned long long)change->base.samples,
        (unsigned long long)change->new.samples);
}

static void json_side(struct lapse_output *to, const char *key, const char *name, uint32_t runs, bool blocks,
                      const struct lapse_estimate *e)
{
    put(to, "\"%s\":{\"file\":", key);
    lapse_json_string(to, name);
    put(to, ",\"runs\":%u,\"run_to_run_noise_seen\":%s,\"samples\":%llu", runs, blocks || runs < 2 ? "false" : "true",
        (unsigned long long)e->samples);
    json_number(to, "mean_ns", e->mean_ns);
    lapse_output_text(to, "},");
}

/* A gate that names nothing is an error, unless another one was crossed. */
static const char *gates_verdict(const struct lapse_gate_findings *findings)
{
    return findings->unmatched_count && findings->worst != LAPSE_GATE_CROSSED ? "error" : results[findings->worst];
}

void lapse_report_comparison_json(struct lapse_output *to, const struct lapse_comparison_report *report)
{
    const struct lapse_comparison *c = report->comparison;
    put(to, "{\"schema_version\":1,\"verdict\":\"%s\",\"level\":%g,\"unit\":\"%s\",",
        report->gate_count ? gates_verdict(report->findings) : verdicts[c->total.verdict], c->level, c->counts ? "count" : "ns");
    json_side(to, "base", report->base_name, c->base_runs, c->base_blocks, &c->total.base);
    json_side(to, "new", report->new_name, c->new_runs, c->new_blocks, &c->total.new);
    lapse_output_text(to, "\"total\":");
    json_change(to, &c->total);
    lapse_output_text(to, ",\"changes\":[");
    bool first = true;
    for (uint32_t i = 0; i < c->change_count; i++) {
        if (!is_shown(report, &c->changes[i]) || (!report->paths && c->changes[i].kind == LAPSE_CHANGE_PATH))
            continue;
        lapse_output_text(to, first ? "\n" : ",\n");
        json_change(to, &c->changes[i]);
        first = false;
    }
    lapse_output_text(to, "],\"gates\":[");
    for (uint32_t i = 0; i < report->findings->count; i++) {
        const struct lapse_gate_finding *f = &report->findings->findings[i];
        lapse_output_text(to, i ? ",\n{\"gate\":" : "\n{\"gate\":");
        lapse_json_string(to, f->gate->text);
        put(to, ",\"result\":\"%s\",\"kind\":\"%s\",\"name\":", results[f->result], kinds[f->change->kind]);
        lapse_json_string(to, f->change->name);
        json_number(to, "p", f->p);
        json_number(to, "relative", f->change->relative);
        put(to, ",\"runs_needed\":%u}", f->runs_needed == UINT32_MAX ? 0 : f->runs_needed);
    }
    lapse_output_text(to, "],\"unmatched_gates\":[");
    for (uint32_t i = 0; i < report->findings->unmatched_count; i++) {
        if (i)
            lapse_output_char(to, ',');
        lapse_json_string(to, report->findings->unmatched[i]->text);
    }
    lapse_output_text(to, "]}\n");
}

/* ---- markdown ---- */

/* A name in backticks: the fence is longer than any run of backticks inside, `|` ends no cell. */
static void markdown_name(struct lapse_output *to, const char *name)
{
    size_t longest = 0, run = 0;
    for (const char *at = name; *at; at++) {
        run = *at == '`' ? run + 1 : 0;
        longest = run > longest ? run : longest;
    }
    for (size_t i = 0; i <= longest; i++)
        lapse_output_char(to, '`');
    if (longest)
        lapse_output_char(to, ' ');
    for (const char *at = name; *at; at++) {
        if (*at == '|')
            lapse_output_char(to, '\\');
        lapse_output_char(to, (unsigned char)*at < 0x20 ? ' ' : *at);
    }
    if (longest)
        lapse_output_char(to, ' ');
    for (size_t i = 0; i <= longest; i++)
        lapse_output_char(to, '`');
}

static void markdown_change(struct lapse_output *to, const struct lapse_comparison *c, const struct lapse_change *change)
{
    char relative[32], interval[64], base[32], new[32];
    lapse_output_text(to, "| ");
    if (change->kind == LAPSE_CHANGE_TOTAL)
        lapse_output_text(to, "**total**");
    else
        markdown_name(to, change->name);
    put(to, " | %s | %s | %s | %s | %s | %s |\n", kinds[change->kind], time_text(base, sizeof base, c, change->base.mean_ns),
        time_text(new, sizeof new, c, change->new.mean_ns), relative_text(relative, sizeof relative, change->relative),
        interval_text(interval, sizeof interval, change->relative_interval), verdicts[change->verdict]);
}

void lapse_report_comparison_markdown(struct lapse_output *to, const struct lapse_comparison_report *report)
{
    const struct lapse_comparison *c = report->comparison;
    uint32_t shown = 0, more = 0, limit = report->limit ? report->limit : UINT32_MAX;
    if (report->gate_count)
        put(to, "**%s** ", report->findings->worst == LAPSE_GATE_CROSSED ? "Regression shown."
            : report->findings->unmatched_count ? "Error: a gate names nothing that was sampled."
            : report->findings->worst == LAPSE_GATE_UNSURE ? "No regression shown; not everything could be told."
            : "No regression.");
    put(to, "%u against %u runs%s.\n\n", c->base_runs, c->new_runs,
        c->base_blocks || c->new_blocks ? "; a single run shows no run-to-run noise" : "");
    lapse_output_text(to, "| what | kind | base | new | change | 95 % interval | verdict |\n"
                          "| --- | --- | ---: | ---: | ---: | --- | --- |\n");
    markdown_change(to, c, &c->total);
    for (uint32_t i = 0; i < c->change_count; i++) {
        if (!is_shown(report, &c->changes[i]) || (!report->paths && c->changes[i].kind == LAPSE_CHANGE_PATH))
            continue;
        if (shown++ < limit)
            markdown_change(to, c, &c->changes[i]);
        else
            more++;
    }
    if (more)
        put(to, "\n%u more.\n", more);
    for (uint32_t i = 0; i < report->findings->unmatched_count; i++) {
        lapse_output_text(to, i ? ", " : "\nNothing was sampled, on either side, of what is named by ");
        markdown_name(to, report->findings->unmatched[i]->text);
    }
    if (report->findings->unmatched_count)
        lapse_output_text(to, ".\n");
}

/* ---- github ---- */

/* In the message of a workflow command %, CR and LF are escaped. */
static void github_text(struct lapse_output *to, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '%': lapse_output_text(to, "%25"); break;
        case '\r': lapse_output_text(to, "%0D"); break;
        case '\n': lapse_output_text(to, "%0A"); break;
        default: lapse_output_char(to, *text);
        }
}

void lapse_report_comparison_github(struct lapse_output *to, const struct lapse_comparison_report *report)
{
    const struct lapse_gate_findings *findings = report->findings;
    uint32_t crossed = 0;
    while (crossed < findings->count && findings->findings[crossed].result == LAPSE_GATE_CROSSED)
        crossed++;
    uint32_t shown = crossed > GITHUB_ERRORS ? GITHUB_ERRORS - 1 : crossed;
    for (uint32_t i = 0; i < shown; i++) {
        const struct lapse_change *change = findings->findings[i].change;
        char line[128], relative[32], interval[64];
        lapse_output_text(to, "::error title=Performance regression::");
        github_text(to, change->name);
        snprintf(line, sizeof line, " %s %s per run, gate ", relative_text(relative, sizeof relative, change->relative),
                 interval_text(interval, sizeof interval, change->relative_interval));
        github_text(to, line);
        github_text(to, findings->findings[i].gate->text);
        lapse_output_char(to, '\n');
    }
    if (crossed > shown)
        put(to, "::error title=Performance regression::%u more crossed a gate\n", crossed - shown);
    for (uint32_t i = 0; i < findings->unmatched_count; i++) {
        lapse_output_text(to, "::error title=Performance gate::");
        github_text(to, findings->unmatched[i]->text);
        lapse_output_text(to, " names nothing that was sampled, on either side\n");
    }
}

/* ---- junit ---- */

static void xml_text(struct lapse_output *to, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': lapse_output_text(to, "&amp;"); break;
        case '<': lapse_output_text(to, "&lt;"); break;
        case '>': lapse_output_text(to, "&gt;"); break;
        case '"': lapse_output_text(to, "&quot;"); break;
        default: /* XML 1.0 cannot hold control characters at all */
            lapse_output_char(to, (unsigned char)*text < 0x20 ? ' ' : *text);
        }
}

static void junit_case(struct lapse_output *to, const struct lapse_gate_finding *f)
{
    char relative[32], interval[64];
    lapse_output_text(to, "    <testcase classname=\"lapse.");
    xml_text(to, kinds[f->change->kind]);
    lapse_output_text(to, "\" name=\"");
    xml_text(to, f->change->name);
    lapse_output_text(to, " (");
    xml_text(to, f->gate->text);
    put(to, ")\" time=\"%.6f\"", f->change->new.mean_ns / 1e9);
    relative_text(relative, sizeof relative, f->change->relative);
    interval_text(interval, sizeof interval, f->change->relative_interval);
    if (f->result == LAPSE_GATE_CROSSED)
        put(to, ">\n      <failure type=\"regression\" message=\"%s %s\">base %.0f ns, new %.0f ns a run, p %.3g</failure>\n"
            "    </testcase>\n", relative, interval, f->change->base.mean_ns, f->change->new.mean_ns, f->p);
    else if (f->result == LAPSE_GATE_UNSURE)
        put(to, ">\n      <skipped message=\"not enough to tell: %s %s\"/>\n    </testcase>\n", relative, interval);
    else
        lapse_output_text(to, "/>\n");
}

void lapse_report_comparison_junit(struct lapse_output *to, const struct lapse_comparison_report *report)
{
    const struct lapse_gate_findings *findings = report->findings;
    uint32_t failures = 0, skipped = 0;
    for (uint32_t i = 0; i < findings->count; i++) {
        failures += findings->findings[i].result == LAPSE_GATE_CROSSED;
        skipped += findings->findings[i].result == LAPSE_GATE_UNSURE;
    }
    uint32_t errors = findings->unmatched_count, tests = findings->count + errors;
    put(to, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"%u\" failures=\"%u\" errors=\"%u\">\n"
        "  <testsuite name=\"lapse diff\" tests=\"%u\" failures=\"%u\" errors=\"%u\" skipped=\"%u\" time=\"%.6f\">\n",
        tests, failures, errors, tests, failures, errors, skipped, report->comparison->total.new.mean_ns / 1e9);
    for (uint32_t i = 0; i < findings->count; i++)
        junit_case(to, &findings->findings[i]);
    for (uint32_t i = 0; i < errors; i++) {
        lapse_output_text(to, "    <testcase classname=\"lapse.gate\" name=\"");
        xml_text(to, findings->unmatched[i]->text);
        lapse_output_text(to, "\" time=\"0\">\n      <error type=\"gate\" message=\"names nothing that was sampled, "
                          "on either side\"/>\n    </testcase>\n");
    }
    lapse_output_text(to, "  </testsuite>\n</testsuites>\n");
}
