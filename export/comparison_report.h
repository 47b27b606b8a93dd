/* SPDX-License-Identifier: MIT */
/* A comparison and the findings of its gates, written for people and for machines. */
#ifndef LAPSE_EXPORT_COMPARISON_REPORT_H
#define LAPSE_EXPORT_COMPARISON_REPORT_H

#include "comparison.h"
#include "gate.h"
#include "output.h"

struct lapse_comparison_report {
    const struct lapse_comparison *comparison;
    const struct lapse_gate_findings *findings; /* may hold none */
    uint32_t gate_count;
    const char *base_name, *new_name;
    uint32_t limit; /* changes of each kind, 0: all */
    bool all;       /* also those where nothing is shown */
    bool paths;
};

void lapse_report_comparison_text(struct lapse_output *to, const struct lapse_comparison_report *report);
void lapse_report_comparison_tsv(struct lapse_output *to, const struct lapse_comparison_report *report);
void lapse_report_comparison_json(struct lapse_output *to, const struct lapse_comparison_report *report);
/* A table for a job summary. */
void lapse_report_comparison_markdown(struct lapse_output *to, const struct lapse_comparison_report *report);
/* GitHub workflow commands for what crossed a gate, worst first. */
void lapse_report_comparison_github(struct lapse_output *to, const struct lapse_comparison_report *report);
/* JUnit XML: one case per finding, and one, an error, for each gate that names nothing. */
void lapse_report_comparison_junit(struct lapse_output *to, const struct lapse_comparison_report *report);

/* A differential flame graph, one page that loads nothing. */
void lapse_report_comparison_html(struct lapse_output *to, const struct lapse_comparison_report *report);

const char *lapse_verdict_name(enum lapse_verdict verdict);
const char *lapse_change_kind_name(enum lapse_change_kind kind);

#endif
