/* SPDX-License-Identifier: MIT */
/* lapse report --lines=FUNCTION: where in the function's source its own time went. */
#include "report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "source_text.h"
#include "statistics.h"

struct hot_line {
    uint32_t function, line;
    uint64_t count, weight_ns;
    double squares;
};

static int by_place(const void *a, const void *b)
{
    const struct hot_line *x = a, *y = b;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

static int by_weight(const void *a, const void *b)
{
    const struct hot_line *x = a, *y = b;
    if (x->weight_ns != y->weight_ns)
        return x->weight_ns > y->weight_ns ? -1 : 1;
    return by_place(a, b);
}

/* One entry a line; the number of them, or a negative errno. */
static int64_t collect(const struct lapse_profile *profile, const char *name,
                       struct hot_line **result)
{
    struct hot_line *lines = calloc(profile->leaf_count + 1, sizeof *lines);
    uint32_t count = 0, kept = 0;
    *result = lines;
    if (!lines)
        return -ENOMEM;
    for (uint32_t i = 0; i < profile->leaf_count; i++) {
        const struct lapse_profile_leaf *leaf = &profile->leaves[i];
        uint32_t function = profile->nodes[leaf->node].function;
        if (!leaf->node || strcmp(profile->functions[function].name, name))
            continue;
        /* Samples of one place mostly stand for equal times. */
        double squares = leaf->count ? (double)leaf->weight_ns * (double)leaf->weight_ns
                                           / (double)leaf->count
                                     : 0;
        lines[count++] = (struct hot_line){ function, leaf->line, leaf->count, leaf->weight_ns,
                                            squares };
    }
    qsort(lines, count, sizeof *lines, by_place);
    for (uint32_t i = 0; i < count; i++) {
        if (kept && !by_place(&lines[kept - 1], &lines[i])) {
            lines[kept - 1].count += lines[i].count;
            lines[kept - 1].weight_ns += lines[i].weight_ns;
            lines[kept - 1].squares += lines[i].squares;
        } else {
            lines[kept++] = lines[i];
        }
    }
    qsort(lines, kept, sizeof *lines, by_weight);
    return kept;
}

static void write_line(const struct lapse_table *table, const struct hot_line *line,
                       const char *text, bool first)
{
    const struct lapse_view *view = table->view;
    const char *file = table->profile->functions[line->function].file;
    double part = view->weight_ns ? (double)line->weight_ns / (double)view->weight_ns : 0;
    struct lapse_range range = lapse_share_interval(
        (double)line->weight_ns, (double)view->weight_ns, line->squares, view->squares);
    if (table->form == LAPSE_FORM_TEXT) {
        fprintf(table->to, "%6.2f %% %6.2f-%5.2f ", 100 * part, 100 * range.low, 100 * range.high);
        lapse_table_weight(table, line->weight_ns, 12);
        fprintf(table->to, " %6" PRIu32 "  ", line->line);
        lapse_table_name(table->to, table->form, text ? text : line->line ? "" : "(no line known)");
    } else if (table->form == LAPSE_FORM_TSV) {
        lapse_table_name(table->to, table->form, file ? file : "");
        fprintf(table->to, "\t%" PRIu32 "\t%.6f\t%.6f\t%.6f\t%" PRIu64 "\t%" PRIu64 "\t",
                line->line, part, range.low, range.high, line->weight_ns, line->count);
        lapse_table_name(table->to, table->form, text ? text : "");
    } else {
        fprintf(table->to, "%s{\"file\":", first ? "[" : ",\n");
        lapse_table_name(table->to, table->form, file ? file : "");
        fprintf(table->to,
                ",\"line\":%" PRIu32 ",\"self\":%.6f,\"self_low\":%.6f,\"self_high\":%.6f"
                ",\"weight\":%" PRIu64 ",\"count\":%" PRIu64 ",\"text\":",
                line->line, part, range.low, range.high, line->weight_ns, line->count);
        lapse_table_name(table->to, table->form, text ? text : "");
        fputc('}', table->to);
        return;
    }
    fputc('\n', table->to);
}

int lapse_report_lines(const struct lapse_table *table, uint32_t function)
{
    const struct lapse_profile *profile = table->profile;
    const struct lapse_view_function *wanted = &table->view->functions[function];
    struct lapse_source_text source = { 0 };
    struct hot_line *lines;
    int64_t count = collect(profile, wanted->name, &lines);
    if (count < 0)
        return (int)count;
    if (table->form == LAPSE_FORM_TEXT) {
        lapse_table_name(table->to, table->form, wanted->name);
        fputs(", lines by its own time (self)\n   self   95 % interval        time   line\n",
              table->to);
    } else if (table->form == LAPSE_FORM_TSV) {
        fputs("file\tline\tself\tself_low\tself_high\tweight\tcount\ttext\n", table->to);
    }
    for (int64_t i = 0; i < count && (!table->limit || i < table->limit); i++) {
        const char *file = profile->functions[lines[i].function].file;
        write_line(table, &lines[i], lapse_source_line(&source, file, lines[i].line), i == 0);
    }
    if (table->form == LAPSE_FORM_JSON)
        fputs(count ? "]\n" : "[]\n", table->to);
    lapse_source_text_free(&source);
    free(lines);
    return 0;
}
