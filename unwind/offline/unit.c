/* SPDX-License-Identifier: MIT */
/* One pass over a unit's entries in the order of the file. The pass only ever moves forward
 * (sibling references are not followed), so damaged entries end it but cannot hold it. Where ranges
 * of entries overlap, the later entry holds, which for nested ones is the inner. */
#include "unit.h"

#include "array.h"

#include <dwarf.h>
#include <errno.h>

enum { DEEPEST = 512 }; /* entries nested deeper count as children of this depth */

struct scan {
    struct lapse_unit *unit;
    const struct lapse_unit_source *source;
    const struct lapse_unit_place *place;
    struct lapse_abbreviations abbreviations;
    struct lapse_address_range *ranges;
    size_t range_count, range_capacity;
    lapse_line_is_code *is_code;
    const void *context;
    uint32_t enclosing[DEEPEST + 1]; /* function around the entries of a depth */
};

struct code_entry {
    uint64_t low, high, ranges, call_file, call_line;
    uint16_t low_form, high_form, ranges_form; /* 0: absent */
};

static int add_range(struct scan *scan, uint64_t start, uint64_t end, uint32_t function)
{
    if (start >= end || !scan->is_code(scan->context, start)
        || !scan->is_code(scan->context, end - 1))
        return 0;
    if (!lapse_array_room(&scan->ranges, scan->range_count, &scan->range_capacity,
                          sizeof *scan->ranges))
        return -ENOMEM;
    scan->ranges[scan->range_count++] = (struct lapse_address_range){ start, end, function };
    return 0;
}

static void read_code_entry(struct scan *scan, struct lapse_cursor *cursor,
                            const struct lapse_abbreviation *abbreviation, struct code_entry *entry)
{
    const struct lapse_attribute_spec *spec = scan->abbreviations.specs + abbreviation->first;
    const struct lapse_unit_encoding *encoding = &scan->place->encoding;
    for (uint32_t i = 0; i < abbreviation->count && !cursor->bad; i++, spec++) {
        switch (spec->name) {
        case DW_AT_low_pc:
            entry->low_form = spec->form;
            entry->low = lapse_form_number(cursor, spec, encoding);
            break;
        case DW_AT_high_pc:
            entry->high_form = spec->form;
            entry->high = lapse_form_number(cursor, spec, encoding);
            break;
        case DW_AT_ranges:
            entry->ranges_form = spec->form;
            entry->ranges = lapse_form_number(cursor, spec, encoding);
            break;
        case DW_AT_call_file: entry->call_file = lapse_form_number(cursor, spec, encoding); break;
        case DW_AT_call_line: entry->call_line = lapse_form_number(cursor, spec, encoding); break;
        default: lapse_form_skip(cursor, spec->form, encoding);
        }
    }
}

struct listed {
    struct scan *scan;
    uint32_t function;
};

static int add_listed(void *context, uint64_t start, uint64_t end)
{
    struct listed *listed = context;
    return add_range(listed->scan, start, end, listed->function);
}

static int add_ranges(struct scan *scan, const struct code_entry *entry, uint32_t function)
{
    const struct lapse_range_sections *sections = &scan->source->ranges;
    const struct lapse_unit_place *place = scan->place;
    uint64_t low, high;
    if (entry->ranges_form) {
        struct lapse_range_list list = { sections, &place->bases, &place->encoding, entry->ranges,
                                         entry->ranges_form == DW_FORM_rnglistx };
        return lapse_range_list_each(&list, add_listed, &(struct listed){ scan, function });
    }
    if (!entry->high_form
        || !lapse_range_address(sections, &place->bases, entry->low_form, entry->low, &low))
        return 0;
    if (!lapse_range_address(sections, &place->bases, entry->high_form, entry->high, &high))
        high = low + entry->high;
    return add_range(scan, low, high, function);
}

static int add_function(struct scan *scan, uint64_t offset, uint32_t parent,
                        const struct code_entry *entry, uint32_t *index)
{
    struct lapse_unit *unit = scan->unit;
    *index = (uint32_t)unit->function_count;
    if (!lapse_array_room(&unit->functions, unit->function_count, &unit->function_capacity,
                          sizeof *unit->functions))
        return -ENOMEM;
    unit->functions[unit->function_count++] = (struct lapse_unit_function){
        parent, (uint32_t)(offset - scan->place->offset), (uint32_t)entry->call_file,
        (uint32_t)entry->call_line
    };
    return add_ranges(scan, entry, *index);
}

/* The function that the children of this entry stand in. */
static int take_code_entry(struct scan *scan, struct lapse_cursor *cursor, uint64_t offset,
                           const struct lapse_abbreviation *abbreviation, uint32_t around,
                           uint32_t *inside)
{
    struct code_entry entry = { 0 };
    read_code_entry(scan, cursor, abbreviation, &entry);
    bool inlined = abbreviation->tag == DW_TAG_inlined_subroutine;
    *inside = LAPSE_RANGE_NONE;
    if (!entry.low_form && !entry.ranges_form && (!inlined || around == LAPSE_RANGE_NONE))
        return 0; /* a declaration, or the abstract form of an inlined function */
    return add_function(scan, offset, inlined ? around : LAPSE_RANGE_NONE, &entry, inside);
}

static int scan_entries(struct scan *scan)
{
    const struct lapse_unit_place *place = scan->place;
    const uint8_t *info = scan->source->info.bytes;
    struct lapse_cursor cursor = { info + place->first_die, info + place->end, false };
    size_t depth = 0;
    scan->enclosing[0] = LAPSE_RANGE_NONE;
    while (cursor.at < cursor.end && !cursor.bad) {
        uint64_t offset = (uint64_t)(cursor.at - info), code = lapse_cursor_uleb(&cursor);
        if (!code) {
            if (depth-- <= 1)
                return 0;
            continue;
        }
        const struct lapse_abbreviation *abbreviation = lapse_abbreviations_find(
            &scan->abbreviations, code);
        if (!abbreviation)
            return -EBADMSG;
        uint32_t around = scan->enclosing[depth < DEEPEST ? depth : DEEPEST], inside = around;
        if (abbreviation->is_code) {
            int error = take_code_entry(scan, &cursor, offset, abbreviation, around, &inside);
            if (error)
                return error;
        } else if (abbreviation->fixed_size >= 0) {
            lapse_cursor_skip(&cursor, (uint64_t)abbreviation->fixed_size);
        } else {
            const struct lapse_attribute_spec *spec = scan->abbreviations.specs
                                                      + abbreviation->first;
            for (uint32_t i = 0; i < abbreviation->count; i++)
                lapse_form_skip(&cursor, spec[i].form, &place->encoding);
        }
        if (abbreviation->children) {
            depth++;
            if (depth <= DEEPEST)
                scan->enclosing[depth] = inside;
        } else if (!depth) {
            return 0; /* a unit without entries */
        }
    }
    return 0;
}

int lapse_unit_read_functions(struct lapse_unit *unit, const struct lapse_unit_source *source,
                              const struct lapse_unit_place *place, lapse_line_is_code *is_code,
                              const void *context)
{
    struct scan *scan = calloc(1, sizeof *scan);
    if (!scan)
        return -ENOMEM;
    *scan = (struct scan){
        .unit = unit, .source = source, .place = place, .is_code = is_code, .context = context
    };
    int error = lapse_abbreviations_read(&scan->abbreviations, source->abbrev.bytes,
                                         source->abbrev.size, place->abbrev_offset,
                                         &place->encoding);
    if (!error)
        error = scan_entries(scan);
    if (!error || error == -EBADMSG) /* what came before the damage holds */
        error = lapse_range_map_build(&unit->map, scan->ranges, scan->range_count);
    lapse_abbreviations_free(&scan->abbreviations);
    free(scan->ranges);
    free(scan);
    return error;
}

void lapse_unit_free(struct lapse_unit *unit)
{
    free(unit->functions);
    lapse_range_map_free(&unit->map);
    lapse_line_table_free(&unit->lines);
    lapse_line_table_free(&unit->files);
    *unit = (struct lapse_unit){ 0 };
}

size_t lapse_unit_bytes(const struct lapse_unit *unit)
{
    return sizeof *unit + unit->function_capacity * sizeof *unit->functions
           + lapse_range_map_bytes(&unit->map) + lapse_line_table_bytes(&unit->lines)
           + lapse_line_table_bytes(&unit->files);
}
