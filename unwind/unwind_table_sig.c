/* SPDX-License-Identifier: MIT */
/* Search in .eh_frame_hdr and the range of one frame description entry: unwind_table.h says for
 * whom. Layouts: Linux Standard Base core, "Exception Frames" and "DWARF Extensions". */
#include "unwind_table.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* Encodings of pointers; the low four bits are the size. */
enum { ENCODING_ABSOLUTE = 0x00, ENCODING_UDATA4 = 0x03, ENCODING_PCREL_SDATA4 = 0x1b,
       ENCODING_DATAREL_SDATA4 = 0x3b };

struct header {
    uint8_t version, frame_encoding, count_encoding, table_encoding;
    int32_t frame;
    uint32_t count;
};

/* Compilers write a row for each function, 0.1 to 1 KiB of module a row. A program built without unwind
 * information has rows all the same, those of objects that others built (chromium: 33 KiB a row). */
enum { REMNANT_BYTES_A_ROW = 8192 };

struct row { int32_t start, entry; }; /* both relative to the header */

/* Bytes of a pointer in this encoding, 0 when of no fixed size. */
static unsigned encoding_size(uint8_t encoding)
{
    switch (encoding & 0x0f) {
    case 0x00: case 0x04: case 0x0c: return 8;
    case 0x02: case 0x0a: return 2;
    case 0x03: case 0x0b: return 4;
    default: return 0;
    }
}

/* Cursor over the bytes of a common information entry. */
struct bytes { const uint8_t *at, *end; };

static uint8_t next_byte(struct bytes *bytes)
{
    return bytes->at < bytes->end ? *bytes->at++ : 0;
}

static void skip_leb128(struct bytes *bytes)
{
    while (next_byte(bytes) & 0x80)
        ;
}

/* The encoding of pc_begin in entries that refer to this common entry. */
static int read_pc_encoding(struct lapse_windows *windows, uintptr_t common)
{
    uint8_t head[64];
    size_t size = sizeof head;
    while (size > 20 && lapse_windows_read(windows, head, common, size))
        size -= 4; /* the entry may stand at the very end of what is mapped */
    if (size <= 20)
        return -EFAULT;
    struct bytes bytes = { head + 8, head + size };
    uint8_t version = next_byte(&bytes);
    const char *augmentation = (const char *)bytes.at;
    while (next_byte(&bytes))
        ;
    skip_leb128(&bytes); /* code alignment */
    skip_leb128(&bytes); /* data alignment */
    if (version == 1)
        next_byte(&bytes);
    else
        skip_leb128(&bytes); /* return address register */
    if (*augmentation != 'z')
        return ENCODING_ABSOLUTE;
    skip_leb128(&bytes);
    for (const char *letter = augmentation + 1; *letter && (const uint8_t *)letter < bytes.end;
         letter++) {
        if (*letter == 'R')
            return next_byte(&bytes);
        if (*letter == 'P')
            bytes.at += encoding_size(next_byte(&bytes));
        else if (*letter == 'L')
            next_byte(&bytes);
        else if (*letter != 'S' && *letter != 'B')
            break;
    }
    return ENCODING_ABSOLUTE;
}

/* Length of the code that the entry at `at` describes. */
static int read_range(struct lapse_windows *windows, uintptr_t at, uint64_t *range)
{
    uint32_t head[2];
    if (lapse_windows_read(windows, head, at, sizeof head) || !head[0] || head[0] == UINT32_MAX ||
        !head[1])
        return -EFAULT;
    int encoding = read_pc_encoding(windows, at + 4 - head[1]);
    unsigned size = encoding < 0 ? 0 : encoding_size((uint8_t)encoding);
    if (!size)
        return -EFAULT;
    *range = 0; /* the range is encoded as the size says, always unsigned */
    return lapse_windows_read(windows, range, at + 8 + size, size);
}

/* Index of the last row that starts at or before the offset; count when all start behind it. */
static uint32_t search(struct lapse_windows *windows, uintptr_t table, uint32_t count,
                       int64_t offset)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        struct row row;
        if (lapse_windows_read(windows, &row, table + middle * sizeof row, sizeof row))
            return count;
        if (row.start <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? low - 1 : count;
}

static void search_table(struct lapse_windows *windows, uintptr_t address, uint32_t count,
                         struct lapse_unwind_entry *entry)
{
    uintptr_t table = entry->header + sizeof(struct header);
    struct row row, next;
    uint64_t range;
    uint32_t i = search(windows, table, count, (int64_t)(address - entry->header));
    entry->start = entry->map_start;
    if (i == count)
        return;
    if (lapse_windows_read(windows, &row, table + i * sizeof row, sizeof row) ||
        read_range(windows, entry->header + (intptr_t)row.entry, &range))
        return;
    uintptr_t start = entry->header + (intptr_t)row.start;
    if (address < start + range) {
        entry->covered = 1;
        entry->start = start;
        entry->end = start + range;
        entry->row = table + i * sizeof row;
    } else {
        entry->start = start + range;
        if (i + 1 < count &&
            !lapse_windows_read(windows, &next, table + (i + 1) * sizeof next, sizeof next))
            entry->end = entry->header + (intptr_t)next.start;
    }
}

LAPSE_SIGSAFE int lapse_unwind_table_find(struct lapse_windows *windows, uintptr_t address,
                                          struct lapse_unwind_entry *entry)
{
    struct dl_find_object object;
    struct header header;
    memset(entry, 0, sizeof *entry);
    if (_dl_find_object((void *)address, &object))
        return -ENOENT;
    entry->map_start = entry->start = (uintptr_t)object.dlfo_map_start;
    entry->map_end = (uintptr_t)object.dlfo_map_end;
    entry->header = (uintptr_t)object.dlfo_eh_frame;
    if (!entry->header || lapse_windows_read(windows, &header, entry->header, sizeof header))
        return 0;
    if (header.version != 1 || header.frame_encoding != ENCODING_PCREL_SDATA4 ||
        header.count_encoding != ENCODING_UDATA4 ||
        header.table_encoding != ENCODING_DATAREL_SDATA4)
        return 0;
    entry->has_table =
        header.count && (entry->map_end - entry->map_start) / header.count < REMNANT_BYTES_A_ROW;
    search_table(windows, address, header.count, entry);
    return 0;
}
