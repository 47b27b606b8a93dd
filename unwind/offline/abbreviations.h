/* SPDX-License-Identifier: MIT */
/* One abbreviation table of .debug_abbrev, laid out for stepping over entries fast: an entry whose
 * forms all have a fixed size is one addition. Offline only. */
#ifndef LAPSE_OFFLINE_ABBREVIATIONS_H
#define LAPSE_OFFLINE_ABBREVIATIONS_H

#include "cursor.h"

struct lapse_attribute_spec {
    uint16_t name, form;
    int64_t constant; /* of DW_FORM_implicit_const */
};

struct lapse_abbreviation {
    uint64_t code;
    uint32_t first, count; /* of specs */
    int32_t fixed_size;    /* bytes after the code; -1: depends on the entry */
    uint16_t tag;
    bool children, is_code; /* is_code: subprogram or inlined_subroutine */
};

struct lapse_abbreviations {
    struct lapse_abbreviation *items; /* by code */
    size_t count, capacity;
    struct lapse_attribute_spec *specs;
    size_t spec_count, spec_capacity;
};

/* How a unit writes addresses and offsets. */
struct lapse_unit_encoding {
    unsigned version, address_size, offset_size;
};

int lapse_abbreviations_read(struct lapse_abbreviations *table, const uint8_t *bytes, size_t size,
                             uint64_t offset, const struct lapse_unit_encoding *encoding);
void lapse_abbreviations_free(struct lapse_abbreviations *table);
const struct lapse_abbreviation *lapse_abbreviations_find(const struct lapse_abbreviations *table,
                                                          uint64_t code);

/* Step over one value. An unknown form makes the cursor bad. */
void lapse_form_skip(struct lapse_cursor *cursor, uint64_t form,
                     const struct lapse_unit_encoding *encoding);
/* A number in any constant, index, offset or address form; other forms are stepped over and give 0.
 */
uint64_t lapse_form_number(struct lapse_cursor *cursor, const struct lapse_attribute_spec *spec,
                           const struct lapse_unit_encoding *encoding);

#endif
