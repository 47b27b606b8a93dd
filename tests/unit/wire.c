/* SPDX-License-Identifier: MIT */
#include "wire.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

static uint8_t bytes[256];
static struct lapse_wire wire;

static void fresh(size_t capacity)
{
    wire = (struct lapse_wire){ .bytes = bytes, .capacity = capacity };
}

/* RFC 3720 B.4 gives these. */
Test(wire, crc32c_of_known_bytes)
{
    uint8_t zeros[32] = { 0 }, ones[32];
    memset(ones, 0xff, sizeof ones);
    cr_expect_eq(lapse_crc32c(0, zeros, 32), 0x8a9136aau);
    cr_expect_eq(lapse_crc32c(0, ones, 32), 0x62a8ab43u);
    cr_expect_eq(lapse_crc32c(lapse_crc32c(0, "12345", 5), "6789", 4), 0xe3069283u);
}

Test(wire, fields_read_back)
{
    struct lapse_wire_reader reader, body;
    uint32_t field;
    uint64_t value;
    fresh(sizeof bytes);
    lapse_wire_uint(&wire, 1, UINT64_MAX);
    lapse_wire_sint(&wire, 2, -300);
    size_t mark = lapse_wire_begin(&wire, 3);
    lapse_wire_string(&wire, 1, "abc");
    lapse_wire_end(&wire, mark);
    cr_assert_not(wire.overflow);
    reader = (struct lapse_wire_reader){ bytes, bytes + wire.size };
    cr_assert_eq(lapse_wire_next(&reader, &field, &value, &body), 1);
    cr_expect(field == 1 && value == UINT64_MAX);
    cr_assert_eq(lapse_wire_next(&reader, &field, &value, &body), 1);
    cr_expect(field == 2 && lapse_wire_unzigzag(value) == -300);
    cr_assert_eq(lapse_wire_next(&reader, &field, &value, &body), 1);
    struct lapse_wire_reader inner = body;
    cr_assert_eq(lapse_wire_next(&inner, &field, &value, &body), 1);
    cr_expect(body.end - body.at == 3 && !memcmp(body.at, "abc", 3));
    cr_expect_eq(lapse_wire_next(&reader, &field, &value, &body), 0);
}

Test(wire, what_does_not_fit_is_left_out_whole)
{
    fresh(4);
    lapse_wire_uint(&wire, 1, 5);
    lapse_wire_string(&wire, 2, "too long");
    cr_expect(wire.overflow);
    cr_expect_eq(wire.size, 2);
    lapse_wire_uint(&wire, 3, 1);
    cr_expect_eq(wire.size, 2, "overflow stays set");
}

Test(wire, every_cut_of_a_message_is_refused_or_whole)
{
    struct lapse_wire_reader reader, body;
    uint32_t field;
    uint64_t value;
    fresh(sizeof bytes);
    lapse_wire_string(&wire, 2, "payload");
    for (size_t size = 1; size < wire.size; size++) {
        reader = (struct lapse_wire_reader){ bytes, bytes + size };
        cr_expect_eq(lapse_wire_next(&reader, &field, &value, &body), -EBADMSG);
    }
}

Test(wire, chunk_head_detects_every_flipped_bit)
{
    uint8_t head[LAPSE_CHUNK_HEAD];
    uint32_t size, crc;
    lapse_chunk_head(head, "body", 4);
    cr_assert_eq(lapse_chunk_head_read(head, &size, &crc), 0);
    cr_expect(size == 4 && crc == lapse_crc32c(0, "body", 4));
    for (int bit = 0; bit < 8 * (int)LAPSE_CHUNK_HEAD; bit++) {
        head[bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_expect_eq(lapse_chunk_head_read(head, &size, &crc), -EBADMSG, "bit %d", bit);
        head[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}
