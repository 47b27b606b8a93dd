/* SPDX-License-Identifier: MIT */
/* Functions, inlined calls and lines of one compilation unit, by address. Built once, at the unit's
 * first address; small enough to be kept and cheap enough to be built again. Offline only. */
#ifndef LAPSE_OFFLINE_UNIT_H
#define LAPSE_OFFLINE_UNIT_H

#include "abbreviations.h"
#include "line_table.h"
#include "range_list.h"
#include "range_map.h"

#include <elfutils/libdw.h>

/* Where a unit's entries are read from: the main file, or its split unit. */
struct lapse_unit_source {
    Dwarf *dwarf; /* for names */
    struct lapse_bytes info, abbrev;
    struct lapse_line_sections lines;
    struct lapse_range_sections ranges;
};

struct lapse_unit_place {
    uint64_t offset, end, first_die; /* in .debug_info */
    uint64_t abbrev_offset;
    struct lapse_unit_encoding encoding;
    struct lapse_range_bases bases;
};

struct lapse_unit_function {
    uint32_t parent; /* the function that it is inlined into; LAPSE_RANGE_NONE: not inlined */
    uint32_t die;    /* offset in the unit */
    uint32_t call_file, call_line;
};

struct lapse_unit {
    struct lapse_unit_function *functions; /* in order of the entries: outer before inner */
    size_t function_count, function_capacity;
    struct lapse_range_map map; /* address to the innermost function */
    struct lapse_line_table lines;
    struct lapse_line_table files; /* of a split unit with a table of its own */
};

/* Ranges and calls of the unit at `place` of `source`. Returns 0 or a negative errno. */
int lapse_unit_read_functions(struct lapse_unit *unit, const struct lapse_unit_source *source,
                              const struct lapse_unit_place *place, lapse_line_is_code *is_code,
                              const void *context);
void lapse_unit_free(struct lapse_unit *unit);
size_t lapse_unit_bytes(const struct lapse_unit *unit);

#endif
