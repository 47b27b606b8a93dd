/* SPDX-License-Identifier: MIT */
/* Names of procedure linkage table entries: `name@plt`. Used by symbols.c. */
#ifndef LAPSE_UNWIND_PLT_H
#define LAPSE_UNWIND_PLT_H

#include "elf_file.h"
#include "symbols.h"

/* First byte of the entry that holds `pc`, where the code at `start` (whose unwind information covers
 * the table as a whole) is a procedure linkage table in memory; else `start`. Drain thread. */
uint64_t lapse_plt_entry(uint64_t start, uint64_t pc);

/* Fill requests without a name whose address lies in an entry. Returns 0 or -ENOMEM. */
int lapse_plt_find(const struct lapse_elf_file *file, uint64_t bias,
                   struct lapse_symbol_request *requests, uint32_t count);

#endif
