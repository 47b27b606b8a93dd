/* SPDX-License-Identifier: MIT */
/* lapse report --by=KEY: a line for each value of a label, from the groups of a view (table.h). */
#include "table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "statistics.h"

static int by_total(const void *a, const void *b, void *context)
{
    const struct lapse_view_function *functions = context;
    const struct lapse_view_function *left = &functions[*(const uint32_t *)a];
    const struct lapse_view_function *right = &functions[*(const uint32_t *)b];
    if (left->total_ns != right->total_ns)
        return left->total_ns > right->total_ns ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* `VALUE` of a group's name `[KEY=VALUE]`; "" for samples without the label. */
static void value_of(char *value, size_t size, const char *name, const char *key)
{
    size_t skip = strlen(key) + 2, length = strlen(name);
    snprintf(value, size, "%.*s", length > skip ? (int)(length - skip - 1) : 0, name + skip);
}

static void write_row(const struct lapse_table *table, const struct lapse_view_function *group,
                      const char *key, bool first)
{
    const struct lapse_view *view = table->view;
    struct lapse_range range = lapse_share_interval((double)group->total_ns, (double)view->weight_ns,
                                                    group->total_squares, view->squares);
    double share = view->weight_ns ? (double)group->total_ns / (double)view->weight_ns : 0;
    char value[4096];
    value_of(value, sizeof value, group->name, key);
    if (table->form == LAPSE_FORM_TEXT) {
        fprintf(table->to, "%6.2f %% %6.2f-%5.2f ", 100 * share, 100 * range.low, 100 * range.high);
        lapse_table_weight(table, group->total_ns, 12);
        fprintf(table->to, " %8" PRIu64 "  ", group->total_count);
        lapse_table_name(table->to, table->form, *value ? value : "(without)");
        fputc('\n', table->to);
        return;
    }
    fputs(table->form == LAPSE_FORM_JSON ? first ? "\n  {\"value\":" : ",\n  {\"value\":" : "", table->to);
    lapse_table_name(table->to, table->form, value);
    fprintf(table->to, table->form == LAPSE_FORM_JSON
                ? ",\"share\":%.6f,\"low\":%.6f,\"high\":%.6f,\"weight\":%" PRIu64 ",\"samples\":%" PRIu64 "}"
                : "\t%.6f\t%.6f\t%.6f\t%" PRIu64 "\t%" PRIu64 "\n",
            share, range.low, range.high, group->total_ns, group->total_count);
}

static void write_head(const struct lapse_table *table, const char *key)
{
    if (table->form == LAPSE_FORM_JSON)
        fputs("[", table->to);
    else if (table->form == LAPSE_FORM_TSV)
        fputs("value\tshare\tlow\thigh\tweight\tsamples\n", table->to);
    else {
        fputs("   total    95 % of it      weight  samples  ", table->to);
        lapse_table_name(table->to, LAPSE_FORM_TEXT, key);
        fputc('\n', table->to);
    }
}

int lapse_table_labels(const struct lapse_table *table, const char *key)
{
    const struct lapse_view *view = table->view;
    uint32_t *order = malloc((view->function_count + 1) * sizeof *order), count = 0;
    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < view->function_count; i++)
        if (view->functions[i].function == LAPSE_NONE)
            order[count++] = i;
    qsort_r(order, count, sizeof *order, by_total, view->functions);
    write_head(table, key);
    for (uint32_t i = 0; i < count && (!table->limit || i < table->limit); i++)
        write_row(table, &view->functions[order[i]], key, !i);
    if (table->form == LAPSE_FORM_JSON)
        fputs("\n]\n", table->to);
    free(order);
    return 0;
}
