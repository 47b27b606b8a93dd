/* SPDX-License-Identifier: MIT */
/* What the page's times are relative to: the start of the run that they belong to, so that repeated runs
 * of a program lie one above the other, and numbers are small enough to be exact in JavaScript.
 * Called by html.c. Offline only; one owner. */
#ifndef LAPSE_EXPORT_PAGE_TIMES_H
#define LAPSE_EXPORT_PAGE_TIMES_H

#include "profile.h"

struct lapse_page_times {
    uint64_t *process_base_ns, *thread_base_ns;
    uint64_t duration_ns; /* of the longest run */
    uint32_t run_count;
};

int lapse_page_times_init(struct lapse_page_times *times, const struct lapse_profile *profile);
void lapse_page_times_fini(struct lapse_page_times *times);

#endif
