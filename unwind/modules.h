/* SPDX-License-Identifier: MIT */
/* The modules of this process: path, load bias, text ranges, build id. Read by the drain thread from
 * /proc/self/maps and the mapped headers (through reads that cannot fault): no loader lock, no
 * allocation. Never from the handler. */
#ifndef LAPSE_UNWIND_MODULES_H
#define LAPSE_UNWIND_MODULES_H

#include <stdint.h>

#include "lapse/diff.h"

#define LAPSE_MODULE_TEXT_MAX 8

struct lapse_mapped_module {
    char *path; /* in the allocator's memory; "[vdso]", "[anon:exec]" */
    uint8_t build_id[32];
    uint32_t build_id_size;
    uint64_t start, end, bias;
    struct { uint64_t start, end, file_offset; } text[LAPSE_MODULE_TEXT_MAX];
    uint32_t text_count;
    uint64_t device, inode; /* of the file as mapped, so that another file at the path is noticed */
};

struct lapse_modules {
    struct lapse_mapped_module *modules; /* by start */
    uint32_t count, capacity;
    struct lapse_allocator allocator;
};

/* Read the list afresh. Raw system calls only. Returns 0 or a negative errno (list then empty). */
int lapse_modules_read(struct lapse_modules *modules, const struct lapse_allocator *allocator);
void lapse_modules_free(struct lapse_modules *modules);
const struct lapse_mapped_module *lapse_modules_find(const struct lapse_modules *modules,
                                                     uint64_t address);

#endif
