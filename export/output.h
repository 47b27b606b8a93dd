/* SPDX-License-Identifier: MIT */
/* Buffered output of the exporters: bytes go through one buffer to a file or to memory,
 * numbers are printed without printf and without the locale. The first failure sticks, everything after it is
 * dropped, lapse_output_finish tells: writers need not check each call.
 * Offline only; one owner. */
#ifndef LAPSE_EXPORT_OUTPUT_H
#define LAPSE_EXPORT_OUTPUT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct lapse_output {
    char *bytes;
    size_t size, capacity;
    FILE *file;     /* NULL: everything stays in memory, `bytes` grows */
    int error;      /* first failure, negative errno */
    uint64_t total; /* bytes handed on so far, the buffer not included */
};

/* To a file that stays the caller's; NULL: to memory. Returns 0 or -ENOMEM. */
int lapse_output_init(struct lapse_output *output, FILE *file);
/* Hand on what is buffered (the caller flushes the file). Returns 0 or the first failure of all. */
int lapse_output_finish(struct lapse_output *output);
void lapse_output_fini(struct lapse_output *output);

/* Make room for `size` more bytes; 0 when there is none (error is set). */
int lapse_output_make_room(struct lapse_output *output, size_t size);

/* Where `size` bytes may be written to directly; the writer adds what it used to output->size. */
static inline char *lapse_output_room(struct lapse_output *output, size_t size)
{
    if (size > output->capacity - output->size && !lapse_output_make_room(output, size))
        return NULL;
    return output->bytes + output->size;
}

static inline void lapse_output_bytes(struct lapse_output *output, const void *bytes, size_t size)
{
    char *to = lapse_output_room(output, size);
    if (to && size) {
        memcpy(to, bytes, size);
        output->size += size;
    }
}

static inline void lapse_output_char(struct lapse_output *output, char c)
{
    char *to = lapse_output_room(output, 1);
    if (to) {
        *to = c;
        output->size++;
    }
}

static inline void lapse_output_text(struct lapse_output *output, const char *text)
{
    lapse_output_bytes(output, text, strlen(text));
}

/* For lines that are written by the million: one room is asked for (LAPSE_LAY_SLACK bytes more than
 * needed), then the parts are laid one behind the other without further questions. Short parts cost a
 * store or two instead of a call: whole words of 16 bytes are copied, so `from` must be readable up to
 * LAPSE_LAY_SLACK bytes behind its end. Returns the end. */
enum { LAPSE_LAY_SLACK = 16 };
static inline char *lapse_lay(char *to, const char *from, size_t size)
{
    size_t at = 0;
    do {
        memcpy(to + at, from + at, 16);
        at += 16;
    } while (at < size);
    return to + size;
}

/* Make bytes in memory readable for lapse_lay. */
static inline void lapse_output_pad(struct lapse_output *output)
{
    char *to = lapse_output_room(output, LAPSE_LAY_SLACK);
    if (to)
        memset(to, 0, LAPSE_LAY_SLACK);
}

/* Decimal digits of a number into `to` (20 bytes are enough); returns how many. */
size_t lapse_decimal(char *to, uint64_t value);

void lapse_output_uint(struct lapse_output *output, uint64_t value);
/* A count of 1/1000 as a decimal number, exact: 12345 -> 12.345, 12000 -> 12. */
void lapse_output_thousandths(struct lapse_output *output, uint64_t value);
/* The same for 1/1000000. */
void lapse_output_millionths(struct lapse_output *output, uint64_t value);

#endif
