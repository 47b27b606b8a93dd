/* SPDX-License-Identifier: MIT */
/* Address ranges of a DWARF entry: .debug_ranges (before DWARF 5) and .debug_rnglists, with
 * addresses that stand in .debug_addr. Every list ends, since the position only moves forward.
 * Offline only. */
#ifndef LAPSE_OFFLINE_RANGE_LIST_H
#define LAPSE_OFFLINE_RANGE_LIST_H

#include "abbreviations.h"

struct lapse_bytes {
    const uint8_t *bytes;
    size_t size;
};
struct lapse_range_sections {
    struct lapse_bytes addr, ranges, rnglists;
};

/* Of a unit, from its first entry (for a split unit, mostly from its skeleton's). */
struct lapse_range_bases {
    uint64_t address, addr, ranges, rnglists;
};

struct lapse_range_list {
    const struct lapse_range_sections *sections;
    const struct lapse_range_bases *bases;
    const struct lapse_unit_encoding *encoding;
    uint64_t value; /* of DW_AT_ranges */
    bool indexed;   /* value is an index (DW_FORM_rnglistx), not an offset */
};

/* A non-zero return of `each` ends the walk and is returned; damage ends it with 0. */
int lapse_range_list_each(const struct lapse_range_list *list,
                          int (*each)(void *context, uint64_t start, uint64_t end), void *context);

/* Value of an attribute in an address form; false when the form is no address. */
bool lapse_range_address(const struct lapse_range_sections *sections,
                         const struct lapse_range_bases *bases, uint16_t form, uint64_t value,
                         uint64_t *address);

#endif
