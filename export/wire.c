/* SPDX-License-Identifier: MIT */
/* Protobuf wire encoding: https://protobuf.dev/programming-guides/encoding/. CRC-32C: the Castagnoli
 * polynomial of RFC 3720 B.4, by the processor's instruction where it has one (SSE 4.2), else by table. */
#include "wire.h"

#include <errno.h>
#include <string.h>

enum wire_type { VARINT = 0, FIXED64 = 1, DELIMITED = 2, FIXED32 = 5 };

#define LENGTH_BYTES 5 /* a padded 32-bit length */

static size_t varint_size(uint64_t value)
{
    size_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

static int has_room(struct lapse_wire *wire, size_t size)
{
    if (wire->overflow || size > wire->capacity - wire->size) {
        wire->overflow = 1;
        return 0;
    }
    return 1;
}

static void put_varint(struct lapse_wire *wire, uint64_t value)
{
    while (value >= 0x80) {
        wire->bytes[wire->size++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    wire->bytes[wire->size++] = (uint8_t)value;
}

static uint64_t field_key(uint32_t field, enum wire_type type)
{
    return (uint64_t)field << 3 | (uint64_t)type;
}

static uint64_t zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
}

void lapse_wire_uint(struct lapse_wire *wire, uint32_t field, uint64_t value)
{
    uint64_t key = field_key(field, VARINT);
    if (!value || !has_room(wire, varint_size(key) + varint_size(value)))
        return;
    put_varint(wire, key);
    put_varint(wire, value);
}

void lapse_wire_sint(struct lapse_wire *wire, uint32_t field, int64_t value)
{
    lapse_wire_uint(wire, field, zigzag(value));
}

void lapse_wire_fixed64(struct lapse_wire *wire, uint32_t field, uint64_t value)
{
    uint64_t key = field_key(field, FIXED64);
    if (!has_room(wire, varint_size(key) + 8))
        return;
    put_varint(wire, key);
    for (int i = 0; i < 8; i++)
        wire->bytes[wire->size++] = (uint8_t)(value >> 8 * i);
}

void lapse_wire_bytes(struct lapse_wire *wire, uint32_t field, const void *bytes, size_t size)
{
    uint64_t key = field_key(field, DELIMITED);
    if (!has_room(wire, varint_size(key) + varint_size(size)) ||
        !has_room(wire, varint_size(key) + varint_size(size) + size))
        return;
    put_varint(wire, key);
    put_varint(wire, size);
    if (size)
        memcpy(wire->bytes + wire->size, bytes, size);
    wire->size += size;
}

void lapse_wire_string(struct lapse_wire *wire, uint32_t field, const char *text)
{
    if (text && *text)
        lapse_wire_bytes(wire, field, text, strlen(text));
}

size_t lapse_wire_begin(struct lapse_wire *wire, uint32_t field)
{
    uint64_t key = field_key(field, DELIMITED);
    if (!has_room(wire, varint_size(key) + LENGTH_BYTES))
        return wire->size;
    put_varint(wire, key);
    wire->size += LENGTH_BYTES;
    return wire->size;
}

void lapse_wire_end(struct lapse_wire *wire, size_t mark)
{
    if (wire->overflow)
        return;
    uint64_t length = wire->size - mark;
    uint8_t *at = wire->bytes + mark - LENGTH_BYTES;
    for (int i = 0; i < LENGTH_BYTES; i++, length >>= 7)
        at[i] = (uint8_t)((length & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
}

void lapse_wire_varint(struct lapse_wire *wire, uint64_t value)
{
    if (has_room(wire, varint_size(value)))
        put_varint(wire, value);
}

void lapse_wire_zigzag(struct lapse_wire *wire, int64_t value)
{
    lapse_wire_varint(wire, zigzag(value));
}

int lapse_wire_read_varint(struct lapse_wire_reader *reader, uint64_t *value)
{
    uint64_t result = 0;
    for (unsigned shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        uint8_t byte = *reader->at++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *value = result;
            return 0;
        }
    }
    return -EBADMSG;
}

/* Step over `size` bytes and give them out as a reader of their own. */
static int take(struct lapse_wire_reader *reader, uint64_t size, struct lapse_wire_reader *body)
{
    if (size > (uint64_t)(reader->end - reader->at))
        return -EBADMSG;
    body->at = reader->at;
    body->end = reader->at += size;
    return 1;
}

int lapse_wire_next(struct lapse_wire_reader *reader, uint32_t *field, uint64_t *value,
                    struct lapse_wire_reader *body)
{
    uint64_t key, size;
    *value = 0;
    body->at = body->end = reader->end;
    if (reader->at == reader->end)
        return 0;
    if (lapse_wire_read_varint(reader, &key) || key >> 3 == 0 || key >> 32)
        return -EBADMSG;
    *field = (uint32_t)(key >> 3);
    switch ((enum wire_type)(key & 7)) {
    case VARINT:
        return lapse_wire_read_varint(reader, value) ? -EBADMSG : 1;
    case DELIMITED:
        return lapse_wire_read_varint(reader, &size) ? -EBADMSG : take(reader, size, body);
    case FIXED64:
        return take(reader, 8, body);
    case FIXED32:
        return take(reader, 4, body);
    }
    return -EBADMSG;
}

/* CRC of each value of four bits: the table stays in one cache line. */
static const uint32_t crc_of_nibble[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t crc_by_table(uint32_t crc, const uint8_t *at, size_t size)
{
    while (size--) {
        crc ^= *at++;
        crc = crc >> 4 ^ crc_of_nibble[crc & 15];
        crc = crc >> 4 ^ crc_of_nibble[crc & 15];
    }
    return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc_by_instruction(uint32_t crc,
                                                                     const uint8_t *at, size_t size)
{
    uint64_t wide = crc, eight;
    for (; size >= 8; at += 8, size -= 8) {
        memcpy(&eight, at, 8);
        wide = __builtin_ia32_crc32di(wide, eight);
    }
    crc = (uint32_t)wide;
    while (size--)
        crc = __builtin_ia32_crc32qi(crc, *at++);
    return crc;
}
#endif

uint32_t lapse_crc32c(uint32_t crc, const void *bytes, size_t size)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc_by_instruction(~crc, bytes, size);
#endif
    return ~crc_by_table(~crc, bytes, size);
}

static void put_u32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint32_t get_u32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

void lapse_chunk_head(uint8_t head[LAPSE_CHUNK_HEAD], const void *body, uint32_t size)
{
    put_u32(head, LAPSE_CHUNK_MAGIC);
    put_u32(head + 4, size);
    put_u32(head + 8, lapse_crc32c(0, body, size));
    put_u32(head + 12, lapse_crc32c(0, head, 12));
}

int lapse_chunk_head_read(const uint8_t head[LAPSE_CHUNK_HEAD], uint32_t *size, uint32_t *crc)
{
    if (get_u32(head) != LAPSE_CHUNK_MAGIC || get_u32(head + 12) != lapse_crc32c(0, head, 12) ||
        get_u32(head + 4) > LAPSE_CHUNK_MAX)
        return -EBADMSG;
    *size = get_u32(head + 4);
    *crc = get_u32(head + 8);
    return 0;
}
