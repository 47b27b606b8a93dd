/* SPDX-License-Identifier: MIT */
/* Gates: conditions on a comparison that fail a CI run, `WHAT:>LIMIT[,>LIMIT]`.
 *
 *     total:>3%             CPU time of the run
 *     func:parse_*:>5%      each function that the pattern fits, with what it calls
 *     self:memcpy:>10%,>2ms each function by itself; both limits must be passed
 *     path:main;load;*:>5%  self time of each stack
 *
 * A gate is passed when the whole interval lies beyond it: the one-sided p-value of "beyond the limit",
 * corrected for all things that gates look at, is at most half of what the level leaves. */
#ifndef LAPSE_EXPORT_GATE_H
#define LAPSE_EXPORT_GATE_H

#include "comparison.h"

struct lapse_gate {
    const char *text; /* as given */
    enum lapse_change_kind kind;
    char *pattern;    /* of names, as in fnmatch(3) without flags */
    double by;        /* relative limit, 0.05 for 5 % */
    double by_ns;     /* absolute limit per run */
};

/* Returns 0 or -EINVAL with one line in `error`; `text` must outlive the gate. */
int lapse_gate_parse(struct lapse_gate *gate, const char *text, char *error, size_t size);
void lapse_gate_fini(struct lapse_gate *gate);

enum lapse_gate_result {
    LAPSE_GATE_CLEAR,   /* even the high end of the interval is within the limit */
    LAPSE_GATE_UNSURE,  /* the interval reaches over the limit, or too few samples */
    LAPSE_GATE_CROSSED, /* regression shown */
};

struct lapse_gate_finding {
    const struct lapse_gate *gate;
    const struct lapse_change *change;
    enum lapse_gate_result result;
    double p; /* one-sided, corrected */
    uint32_t runs_needed; /* of unsure ones: a side, to see a change of the limit's size; 0: cannot be told */
};

struct lapse_gate_findings {
    struct lapse_gate_finding *findings; /* crossed first, then unsure, by size of the change */
    uint32_t count;
    enum lapse_gate_result worst;
    uint32_t runs_needed; /* largest of the unsure ones; 0: cannot be told */
    const struct lapse_gate **unmatched; /* gates that fit nothing that was sampled, on either side */
    uint32_t unmatched_count;
};

/* Hold every thing that a gate names against it. A gate that fits nothing has no finding and is listed: a name
 * that is wrong, or so small that nothing could be said of it.
 * Returns 0 or -ENOMEM. */
int lapse_gates_check(struct lapse_gate_findings *findings, const struct lapse_comparison *comparison,
                      const struct lapse_gate *gates, uint32_t gate_count);
void lapse_gate_findings_fini(struct lapse_gate_findings *findings);

#endif
