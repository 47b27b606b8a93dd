/* SPDX-License-Identifier: MIT */
/* Source lines of one unit by address, decoded from .debug_line (DWARF 2 to 5) into twelve bytes a
 * row. libdw's own tables take several times that and are never given back. Offline only. */
#ifndef LAPSE_OFFLINE_LINE_TABLE_H
#define LAPSE_OFFLINE_LINE_TABLE_H

#include "names.h"
#include "range_list.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lapse_line_sections {
    struct lapse_bytes line, line_str, str, str_offsets;
};

struct lapse_line_file {
    const char *name;
    uint32_t directory;
};
struct lapse_line_row {
    uint32_t file, line;
};

struct lapse_line_table {
    uint64_t *starts;            /* row i covers [starts[i], starts[i + 1]) */
    struct lapse_line_row *rows; /* file LAPSE_LINE_GAP: no code of this unit */
    size_t count, capacity, row_capacity;
    struct lapse_line_file *files;
    size_t file_count, file_capacity;
    const char **directories;
    size_t directory_count, directory_capacity;
    const char *compile_dir;
    bool from_zero; /* files are counted from 0 (DWARF 5) */
};

#define LAPSE_LINE_GAP UINT32_MAX

/* Is this address code of the image? Sequences of discarded sections start elsewhere. */
typedef bool lapse_line_is_code(const void *context, uint64_t address);

/* Decode the program at `offset`; `files_only` leaves out the rows. Strings stay in the sections;
 * `compile_dir` must outlive the table. Returns 0 or a negative errno. */
int lapse_line_table_read(struct lapse_line_table *table,
                          const struct lapse_line_sections *sections, uint64_t offset,
                          const char *compile_dir, bool files_only, lapse_line_is_code *is_code,
                          const void *context);
void lapse_line_table_free(struct lapse_line_table *table);
/* NULL: no line covers the address. */
const struct lapse_line_row *lapse_line_table_find(const struct lapse_line_table *table,
                                                   uint64_t address);
/* Path of a file by its number in the program, NULL unknown. */
char *lapse_line_table_file(const struct lapse_line_table *table, uint64_t file,
                            struct lapse_names *names);
size_t lapse_line_table_bytes(const struct lapse_line_table *table);

#endif
