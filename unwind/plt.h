/* SPDX-License-Identifier: MIT */
/* Names of procedure linkage table entries: `name@plt`. Used by symbols.c. */
#ifndef LAPSE_UNWIND_PLT_H
#define LAPSE_UNWIND_PLT_H

#include "elf_file.h"
#include "symbols.h"

/* Fill requests without a name whose address lies in an entry. Returns 0 or -ENOMEM. */
int lapse_plt_find(const struct lapse_elf_file *file, uint64_t bias,
                   struct lapse_symbol_request *requests, uint32_t count);

#endif
