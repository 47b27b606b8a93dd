/* SPDX-License-Identifier: MIT */
/* lapse report in parts: report.c reads options, report_tree.c shows trees, report_lines.c lines of a
 * function, table.c tables. */
#ifndef LAPSE_CLI_REPORT_H
#define LAPSE_CLI_REPORT_H

#include "table.h"

enum lapse_tree_kind {
    LAPSE_TREE_WHOLE,
    LAPSE_TREE_CALLERS, /* of a function: who called it, innermost first */
    LAPSE_TREE_CALLEES, /* of a function: what it called */
};

struct lapse_tree_options {
    enum lapse_tree_kind kind;
    uint32_t function; /* of the view; for callers and callees */
    double minimum;    /* share of the whole below which a call is not shown */
};

/* Returns 0 or -ENOMEM. */
int lapse_report_tree(const struct lapse_table *table, const struct lapse_tree_options *options);

/* Lines of a function (of the view) by self weight. Returns 0 or -ENOMEM. */
int lapse_report_lines(const struct lapse_table *table, uint32_t function);

#endif
