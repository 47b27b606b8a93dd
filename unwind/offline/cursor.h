/* SPDX-License-Identifier: MIT */
/* A bounded position in the bytes of a DWARF section. Past the end it stays at the end, reads zero
 * and is `bad`: callers check once per table, not once per byte. */
#ifndef LAPSE_OFFLINE_CURSOR_H
#define LAPSE_OFFLINE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct lapse_cursor {
    const uint8_t *at, *end;
    bool bad;
};

static inline void lapse_cursor_skip(struct lapse_cursor *cursor, uint64_t size)
{
    if (size > (uint64_t)(cursor->end - cursor->at)) {
        cursor->at = cursor->end;
        cursor->bad = true;
        return;
    }
    cursor->at += size;
}

/* Little endian, 1 to 8 bytes. */
static inline uint64_t lapse_cursor_fixed(struct lapse_cursor *cursor, unsigned size)
{
    uint64_t value = 0;
    if (size > (size_t)(cursor->end - cursor->at) || size > 8) {
        cursor->at = cursor->end;
        cursor->bad = true;
        return 0;
    }
    memcpy(&value, cursor->at, size);
    cursor->at += size;
    return value;
}

static inline uint64_t lapse_cursor_uleb(struct lapse_cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; cursor->at < cursor->end; shift += 7) {
        uint8_t byte = *cursor->at++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return value;
    }
    cursor->bad = true;
    return 0;
}

static inline int64_t lapse_cursor_sleb(struct lapse_cursor *cursor)
{
    uint64_t value = 0;
    for (unsigned shift = 0; cursor->at < cursor->end;) {
        uint8_t byte = *cursor->at++;
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (byte & 0x80)
            continue;
        if (shift < 64 && byte & 0x40)
            value |= ~UINT64_C(0) << shift;
        return (int64_t)value;
    }
    cursor->bad = true;
    return 0;
}

/* A terminated string; "" and bad without a terminator. */
static inline const char *lapse_cursor_string(struct lapse_cursor *cursor)
{
    const uint8_t *start = cursor->at;
    const uint8_t *zero = start < cursor->end ? memchr(start, 0, (size_t)(cursor->end - start))
                                              : NULL;
    if (!zero) {
        cursor->at = cursor->end;
        cursor->bad = true;
        return "";
    }
    cursor->at = zero + 1;
    return (const char *)start;
}

/* A string of a string section by offset, "" outside. */
static inline const char *lapse_section_string(const uint8_t *bytes, size_t size, uint64_t offset)
{
    return bytes && offset < size && memchr(bytes + offset, 0, size - offset)
               ? (const char *)bytes + offset
               : "";
}

#endif
