/* SPDX-License-Identifier: MIT */
/* Dense numbers for distinct keys of up to four words, in order of first sight. Exporters number
 * locations, frames, stacks and edges with it. Offline only; one owner; allocates with malloc. */
#ifndef LAPSE_EXPORT_INTERN_H
#define LAPSE_EXPORT_INTERN_H

#include "index.h"

struct lapse_key { uint64_t word[4]; };

struct lapse_intern {
    struct lapse_index index;
    struct lapse_key *keys; /* by number */
    uint32_t count;
};

/* The key's number, made if it is new (*is_new, may be NULL). LAPSE_INDEX_NONE: no memory. */
uint32_t lapse_intern(struct lapse_intern *intern, struct lapse_key key, bool *is_new);
void lapse_intern_fini(struct lapse_intern *intern);

#endif
