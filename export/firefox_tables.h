/* SPDX-License-Identifier: MIT */
/* The tables that all threads of a Firefox profile share, in the columns of version 60: stacks by
 * frame and prefix, frames by function, address and line. Made from a profile by format_firefox.c.
 * Offline only; memory: distinct stacks. */
#ifndef LAPSE_EXPORT_FIREFOX_TABLES_H
#define LAPSE_EXPORT_FIREFOX_TABLES_H

#include "intern.h"
#include "json_writer.h"
#include "profile.h"

struct lapse_firefox_tables {
    const struct lapse_profile *profile;
    struct lapse_intern stacks; /* (node, pc, line) */
    uint32_t *stack_frames;     /* by stack */
    uint32_t *stack_prefixes;   /* by stack: plus one, 0 none */
    struct lapse_intern frames; /* (function, pc, line, inline depth and guessed mark) */
    struct lapse_strings strings, sources;
    uint32_t *leaf_stacks;      /* by leaf: stack plus one, 0 for the empty stack */
};

int lapse_firefox_tables_init(struct lapse_firefox_tables *tables,
                              const struct lapse_profile *profile);
void lapse_firefox_tables_fini(struct lapse_firefox_tables *tables);

/* Index of a string; strings may be added until the string array is written. */
uint32_t lapse_firefox_string(struct lapse_firefox_tables *tables, const char *text);

/* The value of `categories` and the index of the one for markers. */
void lapse_firefox_categories(struct lapse_output *output);
enum { LAPSE_FIREFOX_OTHER = 0 };

void lapse_firefox_libs(struct lapse_firefox_tables *tables, struct lapse_output *output);
/* The value of `shared`, strings included: last, when all are known. */
void lapse_firefox_shared(struct lapse_firefox_tables *tables, struct lapse_output *output);

#endif
