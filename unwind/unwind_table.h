/* SPDX-License-Identifier: MIT */
/* Which function (frame description entry) covers an address: search of the sorted table in
 * .eh_frame_hdr of the module that _dl_find_object names (lock-free). Reads through windows, so a
 * module that is unmapped meanwhile makes the search fail and not fault.
 * Context: signal handler (cold path) and drain thread. */
#ifndef LAPSE_UNWIND_UNWIND_TABLE_H
#define LAPSE_UNWIND_UNWIND_TABLE_H

#include "memory.h"
#include "walk.h"

struct lapse_unwind_entry {
    uintptr_t map_start, map_end; /* of the module */
    int has_table;                /* the module has a table that we can search and that is no remnant */
    int covered;                  /* an entry covers the address */
    uintptr_t start, end;         /* of the function when covered, else of the stretch around the
                                     address that no entry covers (end: 0 when unknown) */
    uintptr_t header;             /* .eh_frame_hdr */
    uintptr_t row;                /* its row for `start`, when covered */
};

/* Returns 0, or -ENOENT when no module holds the address. */
LAPSE_SIGSAFE int lapse_unwind_table_find(struct lapse_windows *windows, uintptr_t address,
                                          struct lapse_unwind_entry *entry);

#endif
