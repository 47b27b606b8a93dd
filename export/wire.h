/* SPDX-License-Identifier: MIT */
/* Protobuf wire encoding and chunk framing, by hand: the runtime writes spools with it inside the
 * host (no allocation, no library), exporters write pprof and Perfetto files with it. Reading of
 * recordings goes through protobuf-c, which so checks these bytes against the published schema. */
#ifndef LAPSE_EXPORT_WIRE_H
#define LAPSE_EXPORT_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define LAPSE_CHUNK_MAGIC 0x4350414cu /* "LAPC" read as little endian */
#define LAPSE_CHUNK_MAX (1u << 20)
#define LAPSE_CHUNK_HEAD 16u

/* A buffer of the caller that fields are appended to. When a field does not fit, nothing of it is
 * written and `overflow` is set and stays set. */
struct lapse_wire {
    uint8_t *bytes;
    size_t size, capacity;
    int overflow;
};

void lapse_wire_uint(struct lapse_wire *wire, uint32_t field, uint64_t value); /* 0 is left out */
void lapse_wire_sint(struct lapse_wire *wire, uint32_t field, int64_t value);  /* zigzag; 0 left out */
void lapse_wire_fixed64(struct lapse_wire *wire, uint32_t field, uint64_t value);
void lapse_wire_bytes(struct lapse_wire *wire, uint32_t field, const void *bytes, size_t size);
void lapse_wire_string(struct lapse_wire *wire, uint32_t field, const char *text); /* "" left out */

/* Messages nest: begin returns where the length goes, end fills it in (five bytes are kept for it,
 * in the padded form that every reader takes). Packed lists are written the same way, with
 * lapse_wire_varint and lapse_wire_zigzag for their values. */
size_t lapse_wire_begin(struct lapse_wire *wire, uint32_t field);
void lapse_wire_end(struct lapse_wire *wire, size_t mark);
void lapse_wire_varint(struct lapse_wire *wire, uint64_t value);
void lapse_wire_zigzag(struct lapse_wire *wire, int64_t value);

/* Reading, bounds-checked: used on our own bytes inside the host, where protobuf-c is not. */
struct lapse_wire_reader {
    const uint8_t *at, *end;
};
/* Next varint into *value. Returns 0, or -EBADMSG past the end or beyond ten bytes. */
int lapse_wire_read_varint(struct lapse_wire_reader *reader, uint64_t *value);
static inline int64_t lapse_wire_unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}
/* Next field: its number, and for length-delimited ones its bytes in *body, for varints the value.
 * Returns 1, 0 at the end, -EBADMSG. */
int lapse_wire_next(struct lapse_wire_reader *reader, uint32_t *field, uint64_t *value,
                    struct lapse_wire_reader *body);

/* Fill the 16 bytes of a chunk's head for this body. */
void lapse_chunk_head(uint8_t head[LAPSE_CHUNK_HEAD], const void *body, uint32_t size);
/* Check a head. Returns 0 and size and crc, or -EBADMSG. */
int lapse_chunk_head_read(const uint8_t head[LAPSE_CHUNK_HEAD], uint32_t *size, uint32_t *crc);

uint32_t lapse_crc32c(uint32_t crc, const void *bytes, size_t size); /* start with 0 */

#endif
