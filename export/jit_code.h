/* SPDX-License-Identifier: MIT */
/* Code that a program made at run time, with its names: from perf maps (lines "START SIZE name") and
 * jitdump files (records with times, moves and source lines). Both are written by other programs into
 * folders that are everybody's, so every number in them is doubted: reading is bounded by the file's
 * size, nothing is mapped, and what contradicts itself is passed over. Offline only; one owner.
 * The reader of perf maps inside the host is unwind/perf_map.c. */
#ifndef LAPSE_EXPORT_JIT_CODE_H
#define LAPSE_EXPORT_JIT_CODE_H

#include <stdbool.h>
#include <stdint.h>

#include "index.h"

struct lapse_jit_line {
    uint64_t address;
    const char *file;
    uint32_t line;
};

/* A function at a place, from a moment on: until the next one that overlaps it. */
struct lapse_jit_load {
    uint64_t start, size, from_ns; /* from_ns 0: from the beginning, as perf maps have it */
    uint64_t end_ns;               /* moved away then; 0: not */
    uint64_t reach;                /* the table's own: furthest end of the loads up to this one */
    uint64_t index;                /* of jitdump, to find it again when it moves */
    uint32_t order;                /* in the file; the later of two wins */
    uint32_t first_line, line_count;
    const char *name;
};

struct lapse_jit_code {
    struct lapse_jit_load *loads;
    uint32_t load_count;
    struct lapse_jit_line *lines; /* those of a load stand together, by address */
    uint32_t line_count;
    struct lapse_strings strings;
    bool settled;
};

/* Take in a file, from its beginning (the descriptor's offset does not matter). A file that is still
 * being written is read up to its last whole record. Returns 0, -EBADMSG when it is no such file, or
 * -ENOMEM. */
int lapse_jit_code_read_map(struct lapse_jit_code *code, int fd);
int lapse_jit_code_read_dump(struct lapse_jit_code *code, int fd);

/* What stands at an address at a time, NULL nothing. *until_ns: when something else takes its place,
 * 0 never. */
const struct lapse_jit_load *lapse_jit_code_find(struct lapse_jit_code *code, uint64_t address,
                                                 uint64_t time_ns, uint64_t *until_ns);
/* All that ever stood there, in order of time, at most `max`. */
uint32_t lapse_jit_code_all(struct lapse_jit_code *code, uint64_t address,
                            const struct lapse_jit_load **loads, uint32_t max);
uint64_t lapse_jit_code_until(struct lapse_jit_code *code, const struct lapse_jit_load *load);
/* The source line of an address inside a load, NULL unknown. */
const struct lapse_jit_line *lapse_jit_code_line(const struct lapse_jit_code *code,
                                                 const struct lapse_jit_load *load, uint64_t address);
void lapse_jit_code_free(struct lapse_jit_code *code);

/* For the readers. `name` is copied. */
int lapse_jit_code_add(struct lapse_jit_code *code, const struct lapse_jit_load *load, const char *name,
                       uint32_t name_size);

#endif
