/* SPDX-License-Identifier: MIT */
/* Code that a program made at run time, with its names: from perf maps (lines "START SIZE name") and
 * jitdump files (records with times, moves and source lines). Both are written by other programs into
 * folders that are everybody's, so every number in them is doubted: reading is bounded, nothing is
 * mapped, and what contradicts itself is passed over. Read by the process itself at its end
 * (runtime/run_time_names.c) and by `lapse record`: memory from the allocator only, the file through
 * the caller's function. One owner. */
#ifndef LAPSE_EXPORT_JIT_CODE_H
#define LAPSE_EXPORT_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lapse/diff.h"
#include "wire.h"

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
    uint64_t written;              /* end of the last piece that was put into a recording */
    uint32_t order;                /* in the file; the later of two wins */
    uint32_t chain;                /* the reader's own */
    uint32_t first_line, line_count;
    const char *name;
};

/* Zero but for what its user sets. */
struct lapse_jit_code {
    const struct lapse_allocator *allocator; /* the user's */
    /* The user's, or NULL: addresses, ascending; of a perf map, what covers none of them is not kept. */
    const uint64_t *wanted;
    uint32_t wanted_count;
    uint32_t items_max; /* the user's: more loads, or more lines, are -E2BIG; 0: no bound */
    struct lapse_jit_load *loads; /* by start, once a reader is done */
    uint32_t load_count, load_capacity;
    struct lapse_jit_line *lines; /* those of a load stand together, by address */
    uint32_t line_count, line_capacity;
    struct lapse_jit_texts *texts;
};

/* Where a file's bytes come from. `read` gives bytes at an offset: how many (perhaps fewer than asked
 * for), 0 at the end, or a negative errno, which ends the reading. */
struct lapse_jit_source {
    long (*read)(void *context, void *to, size_t size, uint64_t offset);
    void *context;
    uint64_t bytes_max; /* a longer file is -EFBIG */
};

/* Take in a file. One that is still being written is read up to its last whole record. Returns 0,
 * -EBADMSG when it is no such file, or another negative errno: what the table holds is then not to be
 * believed, since later entries correct earlier ones. */
int lapse_jit_code_read_map(struct lapse_jit_code *code, const struct lapse_jit_source *source);
int lapse_jit_code_read_dump(struct lapse_jit_code *code, const struct lapse_jit_source *source);
void lapse_jit_code_free(struct lapse_jit_code *code); /* what its user set stays */

/* jit_file.c, offline only: a file by its descriptor (whose offset does not matter). */
struct lapse_jit_source lapse_jit_file(const int *fd);

/* What stands at an address at a time, NULL nothing. *until_ns: when something else takes its place,
 * 0 never. */
const struct lapse_jit_load *lapse_jit_code_find(const struct lapse_jit_code *code, uint64_t address,
                                                 uint64_t time_ns, uint64_t *until_ns);
/* All that ever stood there, in order of time, the first `max`. */
uint32_t lapse_jit_code_all(const struct lapse_jit_code *code, uint64_t address,
                            struct lapse_jit_load **loads, uint32_t max);
/* When a load is moved away or something takes a part of its place; 0 never. */
uint64_t lapse_jit_code_until(const struct lapse_jit_code *code, const struct lapse_jit_load *load);
/* The source line of an address inside a load, NULL unknown. */
const struct lapse_jit_line *lapse_jit_code_line(const struct lapse_jit_code *code,
                                                 const struct lapse_jit_load *load, uint64_t address);
/* [*start, *end): the part of a load around an address in it that no later load without times has. */
void lapse_jit_code_part(const struct lapse_jit_code *code, const struct lapse_jit_load *load,
                         uint64_t address, uint64_t *start, uint64_t *end);

/* Is a module with this path run-time code? Anonymous memory, and what programs use in its place. */
bool lapse_is_run_time_code(const char *path);

/* jit_put.c: the load as a Symbol of a recording's chunk, with this name, unless it was put for an
 * address before; addresses ascend. At most LAPSE_JIT_PUT_MAX bytes, with a name of that size or less. */
#define LAPSE_JIT_NAME_MAX 4096u
#define LAPSE_JIT_PUT_MAX (16u << 10)
void lapse_jit_put_symbol(struct lapse_wire *wire, const struct lapse_jit_code *code,
                          struct lapse_jit_load *load, uint64_t address, const char *name);
/* The source line of a pc in a load as an AddressInfo, when one is known. That has no time: only where
 * nothing else ever stood. */
void lapse_jit_put_line(struct lapse_wire *wire, const struct lapse_jit_code *code,
                        const struct lapse_jit_load *load, uint64_t pc, bool is_return, const char *name);

/* For the readers. Texts are copied. */
int lapse_jit_code_add(struct lapse_jit_code *code, const struct lapse_jit_load *load, const char *name,
                       uint32_t name_size);
int lapse_jit_code_add_line(struct lapse_jit_code *code, uint64_t address, const char *file, uint32_t line);
const char *lapse_jit_code_keep(struct lapse_jit_code *code, const char *text, uint32_t size);
int lapse_jit_code_sort_lines(struct lapse_jit_code *code, uint32_t first, uint32_t count);
int lapse_jit_code_settle(struct lapse_jit_code *code);

#endif
