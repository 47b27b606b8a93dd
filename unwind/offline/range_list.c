/* SPDX-License-Identifier: MIT */
#include "range_list.h"

#include <dwarf.h>

#ifndef DW_FORM_GNU_addr_index
#define DW_FORM_GNU_addr_index 0x1f01
#endif

static struct lapse_cursor cursor_at(const struct lapse_bytes *section, uint64_t offset)
{
    struct lapse_cursor cursor = { section->bytes, section->bytes + section->size,
                                   !section->bytes };
    if (section->bytes)
        lapse_cursor_skip(&cursor, offset);
    return cursor;
}

static uint64_t indexed_address(const struct lapse_range_sections *sections,
                                const struct lapse_range_bases *bases, uint64_t index, bool *bad)
{
    struct lapse_cursor cursor = cursor_at(
        &sections->addr, index < UINT32_MAX ? bases->addr + 8 * index : UINT64_MAX);
    uint64_t address = lapse_cursor_fixed(&cursor, 8);
    *bad |= cursor.bad;
    return address;
}

bool lapse_range_address(const struct lapse_range_sections *sections,
                         const struct lapse_range_bases *bases, uint16_t form, uint64_t value,
                         uint64_t *address)
{
    bool bad = false;
    *address = value;
    switch (form) {
    case DW_FORM_addr: return true;
    case DW_FORM_addrx:
    case DW_FORM_addrx1:
    case DW_FORM_addrx2:
    case DW_FORM_addrx3:
    case DW_FORM_addrx4:
    case DW_FORM_GNU_addr_index:
        *address = indexed_address(sections, bases, value, &bad);
        return !bad;
    default: return false;
    }
}

/* Before DWARF 5: pairs relative to a base, ended by two zeros. */
static int each_old(const struct lapse_range_list *list,
                    int (*each)(void *context, uint64_t start, uint64_t end), void *context)
{
    struct lapse_cursor cursor = cursor_at(&list->sections->ranges,
                                           list->bases->ranges + list->value);
    uint64_t base = list->bases->address;
    int result = 0;
    while (!result && !cursor.bad) {
        uint64_t start = lapse_cursor_fixed(&cursor, 8), end = lapse_cursor_fixed(&cursor, 8);
        if (cursor.bad || (!start && !end))
            break;
        if (start == UINT64_MAX)
            base = end;
        else
            result = each(context, base + start, base + end);
    }
    return result;
}

/* One entry of DWARF 5. False at the end of the list. */
static bool next_entry(const struct lapse_range_list *list, struct lapse_cursor *cursor,
                       uint64_t *base, uint64_t *start, uint64_t *end)
{
    bool bad = false;
    *start = *end = 0;
    switch (lapse_cursor_fixed(cursor, 1)) {
    case DW_RLE_base_addressx:
        *base = indexed_address(list->sections, list->bases, lapse_cursor_uleb(cursor), &bad);
        break;
    case DW_RLE_startx_endx:
        *start = indexed_address(list->sections, list->bases, lapse_cursor_uleb(cursor), &bad);
        *end = indexed_address(list->sections, list->bases, lapse_cursor_uleb(cursor), &bad);
        break;
    case DW_RLE_startx_length:
        *start = indexed_address(list->sections, list->bases, lapse_cursor_uleb(cursor), &bad);
        *end = *start + lapse_cursor_uleb(cursor);
        break;
    case DW_RLE_offset_pair:
        *start = *base + lapse_cursor_uleb(cursor);
        *end = *base + lapse_cursor_uleb(cursor);
        break;
    case DW_RLE_base_address: *base = lapse_cursor_fixed(cursor, 8); break;
    case DW_RLE_start_end:
        *start = lapse_cursor_fixed(cursor, 8);
        *end = lapse_cursor_fixed(cursor, 8);
        break;
    case DW_RLE_start_length:
        *start = lapse_cursor_fixed(cursor, 8);
        *end = *start + lapse_cursor_uleb(cursor);
        break;
    default: return false;
    }
    return !bad && !cursor->bad;
}

static int each_new(const struct lapse_range_list *list,
                    int (*each)(void *context, uint64_t start, uint64_t end), void *context)
{
    uint64_t offset = list->value, base = list->bases->address, start, end;
    if (list->indexed) {
        unsigned size = list->encoding->offset_size;
        struct lapse_cursor table = cursor_at(
            &list->sections->rnglists,
            offset < UINT32_MAX ? list->bases->rnglists + offset * size : UINT64_MAX);
        offset = list->bases->rnglists + lapse_cursor_fixed(&table, size);
        if (table.bad)
            return 0;
    }
    struct lapse_cursor cursor = cursor_at(&list->sections->rnglists, offset);
    int result = 0;
    while (!result && next_entry(list, &cursor, &base, &start, &end))
        if (end > start)
            result = each(context, start, end);
    return result;
}

int lapse_range_list_each(const struct lapse_range_list *list,
                          int (*each)(void *context, uint64_t start, uint64_t end), void *context)
{
    return list->encoding->version >= 5 ? each_new(list, each, context)
                                        : each_old(list, each, context);
}
