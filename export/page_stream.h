/* SPDX-License-Identifier: MIT */
/* Bytes on their way into the page: numbers as varints, text with its length, all of it deflated and
 * written as base64. The first failure sticks. Used by html.c only; offline; one owner. */
#ifndef LAPSE_EXPORT_PAGE_STREAM_H
#define LAPSE_EXPORT_PAGE_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

#include "output.h"

struct lapse_page_stream {
    struct lapse_output *output;
    z_stream deflate;
    uint8_t plain[64 * 1024]; /* not yet deflated */
    size_t plain_size;
    uint8_t rest[3];          /* deflated, fewer than base64 takes at a time */
    unsigned rest_size;
    int error;
};

/* Returns 0 or a negative errno. The output stays the caller's. */
int lapse_page_stream_init(struct lapse_page_stream *stream, struct lapse_output *output);
void lapse_page_bytes(struct lapse_page_stream *stream, const void *bytes, size_t size);
void lapse_page_uint(struct lapse_page_stream *stream, uint64_t value);
void lapse_page_text(struct lapse_page_stream *stream, const char *text); /* NULL is "" */
/* End the compressed data and free what init made. Returns 0 or the first failure. */
int lapse_page_stream_fini(struct lapse_page_stream *stream);

#endif
