/* SPDX-License-Identifier: MIT */
#include "abbreviations.h"

#include "array.h"

#include <dwarf.h>
#include <errno.h>

#ifndef DW_FORM_GNU_addr_index
#define DW_FORM_GNU_addr_index 0x1f01
#define DW_FORM_GNU_str_index 0x1f02
#endif

/* Bytes of a form, -1 when they depend on the value. */
static int form_size(uint64_t form, const struct lapse_unit_encoding *encoding)
{
    switch (form) {
    case DW_FORM_flag_present:
    case DW_FORM_implicit_const: return 0;
    case DW_FORM_data1:
    case DW_FORM_ref1:
    case DW_FORM_flag:
    case DW_FORM_strx1:
    case DW_FORM_addrx1: return 1;
    case DW_FORM_data2:
    case DW_FORM_ref2:
    case DW_FORM_strx2:
    case DW_FORM_addrx2: return 2;
    case DW_FORM_strx3:
    case DW_FORM_addrx3: return 3;
    case DW_FORM_data4:
    case DW_FORM_ref4:
    case DW_FORM_strx4:
    case DW_FORM_addrx4:
    case DW_FORM_ref_sup4: return 4;
    case DW_FORM_data8:
    case DW_FORM_ref8:
    case DW_FORM_ref_sig8:
    case DW_FORM_ref_sup8: return 8;
    case DW_FORM_data16: return 16;
    case DW_FORM_addr: return (int)encoding->address_size;
    case DW_FORM_ref_addr:
        return (int)(encoding->version <= 2 ? encoding->address_size : encoding->offset_size);
    case DW_FORM_strp:
    case DW_FORM_line_strp:
    case DW_FORM_sec_offset:
    case DW_FORM_strp_sup:
    case DW_FORM_GNU_ref_alt:
    case DW_FORM_GNU_strp_alt: return (int)encoding->offset_size;
    default: return -1;
    }
}

void lapse_form_skip(struct lapse_cursor *cursor, uint64_t form,
                     const struct lapse_unit_encoding *encoding)
{
    int size = form_size(form, encoding);
    if (size >= 0) {
        lapse_cursor_skip(cursor, (uint64_t)size);
        return;
    }
    switch (form) {
    case DW_FORM_string: lapse_cursor_string(cursor); return;
    case DW_FORM_block1: lapse_cursor_skip(cursor, lapse_cursor_fixed(cursor, 1)); return;
    case DW_FORM_block2: lapse_cursor_skip(cursor, lapse_cursor_fixed(cursor, 2)); return;
    case DW_FORM_block4: lapse_cursor_skip(cursor, lapse_cursor_fixed(cursor, 4)); return;
    case DW_FORM_block:
    case DW_FORM_exprloc: lapse_cursor_skip(cursor, lapse_cursor_uleb(cursor)); return;
    case DW_FORM_sdata:
    case DW_FORM_udata:
    case DW_FORM_ref_udata:
    case DW_FORM_strx:
    case DW_FORM_addrx:
    case DW_FORM_loclistx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index:
    case DW_FORM_GNU_str_index: lapse_cursor_uleb(cursor); return;
    case DW_FORM_indirect: {
        uint64_t actual = lapse_cursor_uleb(cursor);
        if (actual == DW_FORM_indirect || actual == DW_FORM_implicit_const)
            cursor->bad = true;
        else
            lapse_form_skip(cursor, actual, encoding);
        return;
    }
    default: cursor->bad = true; return;
    }
}

uint64_t lapse_form_number(struct lapse_cursor *cursor, const struct lapse_attribute_spec *spec,
                           const struct lapse_unit_encoding *encoding)
{
    switch (spec->form) {
    case DW_FORM_implicit_const: return (uint64_t)spec->constant;
    case DW_FORM_sdata: return (uint64_t)lapse_cursor_sleb(cursor);
    case DW_FORM_udata:
    case DW_FORM_addrx:
    case DW_FORM_rnglistx:
    case DW_FORM_GNU_addr_index: return lapse_cursor_uleb(cursor);
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_addr:
    case DW_FORM_sec_offset:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
        return lapse_cursor_fixed(cursor, (unsigned)form_size(spec->form, encoding));
    default: lapse_form_skip(cursor, spec->form, encoding); return 0;
    }
}

static int read_specs(struct lapse_abbreviations *table, struct lapse_cursor *cursor,
                      struct lapse_abbreviation *item, const struct lapse_unit_encoding *encoding)
{
    for (;;) {
        uint64_t name = lapse_cursor_uleb(cursor), form = lapse_cursor_uleb(cursor);
        int64_t constant = form == DW_FORM_implicit_const ? lapse_cursor_sleb(cursor) : 0;
        if (cursor->bad)
            return -EBADMSG;
        if (!name && !form)
            return 0;
        if (!lapse_array_room(&table->specs, table->spec_count, &table->spec_capacity,
                              sizeof *table->specs))
            return -ENOMEM;
        table->specs[table->spec_count++] = (struct lapse_attribute_spec){ (uint16_t)name,
                                                                           (uint16_t)form,
                                                                           constant };
        item->count++;
        int size = name > UINT16_MAX || form > UINT16_MAX ? -1 : form_size(form, encoding);
        item->fixed_size = size < 0 || item->fixed_size < 0 ? -1 : item->fixed_size + size;
    }
}

static int by_code(const void *a, const void *b)
{
    const struct lapse_abbreviation *x = a, *y = b;
    return x->code < y->code ? -1 : x->code > y->code;
}

int lapse_abbreviations_read(struct lapse_abbreviations *table, const uint8_t *bytes, size_t size,
                             uint64_t offset, const struct lapse_unit_encoding *encoding)
{
    *table = (struct lapse_abbreviations){ 0 };
    if (!bytes || offset >= size)
        return -EBADMSG;
    struct lapse_cursor cursor = { bytes + offset, bytes + size, false };
    bool sorted = true;
    for (uint64_t code; (code = lapse_cursor_uleb(&cursor));) {
        struct lapse_abbreviation item = { .code = code,
                                           .tag = (uint16_t)lapse_cursor_uleb(&cursor),
                                           .first = (uint32_t)table->spec_count };
        item.children = lapse_cursor_fixed(&cursor, 1) == DW_CHILDREN_yes;
        item.is_code = item.tag == DW_TAG_subprogram || item.tag == DW_TAG_inlined_subroutine;
        int error = read_specs(table, &cursor, &item, encoding);
        if (!error && !lapse_array_room(&table->items, table->count, &table->capacity, sizeof item))
            error = -ENOMEM;
        if (error) {
            lapse_abbreviations_free(table);
            return error;
        }
        sorted = sorted && (!table->count || table->items[table->count - 1].code < code);
        table->items[table->count++] = item;
    }
    if (!sorted)
        qsort(table->items, table->count, sizeof *table->items, by_code);
    return 0;
}

void lapse_abbreviations_free(struct lapse_abbreviations *table)
{
    free(table->items);
    free(table->specs);
    *table = (struct lapse_abbreviations){ 0 };
}

const struct lapse_abbreviation *lapse_abbreviations_find(const struct lapse_abbreviations *table,
                                                          uint64_t code)
{
    /* Compilers number from 1 without gaps. */
    if (code - 1 < table->count && table->items[code - 1].code == code)
        return &table->items[code - 1];
    struct lapse_abbreviation key = { .code = code };
    return table->count ? bsearch(&key, table->items, table->count, sizeof key, by_code) : NULL;
}
