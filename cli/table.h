/* SPDX-License-Identifier: MIT */
/* Tables of report and record: functions with self, total and their intervals; threads; processes;
 * losses. Names never reach a terminal raw. */
#ifndef LAPSE_CLI_TABLE_H
#define LAPSE_CLI_TABLE_H

#include <stdio.h>

#include "view.h"

enum lapse_table_form { LAPSE_FORM_TEXT, LAPSE_FORM_TSV, LAPSE_FORM_JSON };
enum lapse_table_sort { LAPSE_SORT_SELF, LAPSE_SORT_TOTAL, LAPSE_SORT_NAME };

struct lapse_table {
    struct lapse_profile *profile;
    const struct lapse_view *view;
    FILE *to;
    enum lapse_table_form form;
    enum lapse_table_sort sort;
    uint32_t limit; /* rows; 0: all */
    bool colour;
};

/* One line a process: what ran, CPU time sampled and used; then losses. Text only. */
void lapse_table_summary(const struct lapse_table *table);
int lapse_table_functions(const struct lapse_table *table);
int lapse_table_threads(const struct lapse_table *table);
int lapse_table_processes(const struct lapse_table *table);
/* A line per value of the label `key`; the view is grouped by it. */
int lapse_table_labels(const struct lapse_table *table, const char *key);
void lapse_table_notes(const struct lapse_table *table);

/* Pieces that the call tree needs as well. */
void lapse_table_name(FILE *to, enum lapse_table_form form, const char *name); /* escaped for the form */
void lapse_table_weight(const struct lapse_table *table, uint64_t weight, int width); /* "1.234 s" or a count */
const char *lapse_table_module(const struct lapse_profile *profile, uint32_t function); /* last part, "" */

#endif
