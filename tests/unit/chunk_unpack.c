/* SPDX-License-Identifier: MIT */
/* The quick reader of chunks against protobuf-c, on whole chunks and on damaged ones: what one refuses the
 * other refuses, what they take is the same. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "make_recording.h"
#include "recording_source.h"

enum { DAMAGED = 4000, MEMORY = 16 << 20 };

struct memory { char *bytes; size_t used; };

static void *take(void *context, size_t size)
{
    struct memory *memory = context;
    size = (size + 15) & ~(size_t)15;
    if (size > MEMORY - memory->used)
        return NULL;
    memory->used += size;
    return memory->bytes + memory->used - size;
}

static void give_back(void *context, void *piece)
{
    (void)context;
    (void)piece;
}

static void expect_equal(struct memory *memory, const uint8_t *body, size_t size, unsigned which)
{
    ProtobufCAllocator allocator = { take, give_back, memory };
    memory->used = 0;
    Lapse__Chunk *quick = lapse_chunk_unpack(&allocator, body, size);
    Lapse__Chunk *truth = lapse__chunk__unpack(&allocator, size, body);
    cr_assert_eq(!quick, !truth, "chunk %u", which);
    if (!truth)
        return;
    size_t packed = lapse__chunk__get_packed_size(truth);
    cr_assert_eq(lapse__chunk__get_packed_size(quick), packed, "chunk %u", which);
    uint8_t *left = take(memory, packed), *right = take(memory, packed);
    cr_assert(left && right);
    lapse__chunk__pack(quick, left);
    lapse__chunk__pack(truth, right);
    cr_assert_arr_eq(left, right, packed, "chunk %u", which);
}

/* All bytes of a small recording; the caller frees. */
static uint8_t *read_recording(size_t *size)
{
    static const struct lapse_test_recording numbers = {
        .samples = 300, .stacks = 20, .threads = 3, .labels = true, .cut = true, .raw = true, .spans = true,
    };
    char path[] = "/tmp/lapse-chunk-XXXXXX";
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    lapse_test_make_recording(path, &numbers);
    FILE *from = fopen(path, "r");
    uint8_t *bytes = malloc(1 << 20);
    cr_assert(from && bytes);
    *size = fread(bytes, 1, 1 << 20, from);
    fclose(from);
    unlink(path);
    return bytes;
}

Test(chunk_unpack, agrees_with_the_schema)
{
    struct memory memory = { malloc(MEMORY), 0 };
    size_t size;
    uint8_t *bytes = read_recording(&size);
    uint32_t body, crc, chunks = 0;
    cr_assert(memory.bytes);
    for (size_t at = 0; at < size; at += LAPSE_CHUNK_HEAD + body) {
        cr_assert_eq(lapse_chunk_head_read(bytes + at, &body, &crc), 0);
        uint8_t *contents = bytes + at + LAPSE_CHUNK_HEAD, *copy = malloc(body + 1);
        cr_assert_not_null(copy);
        expect_equal(&memory, contents, body, chunks++);
        srand(chunks);
        for (unsigned i = 0; i < DAMAGED; i++) {
            memcpy(copy, contents, body);
            for (int flips = 1 + rand() % 3; flips; flips--)
                copy[(unsigned)rand() % body] = (uint8_t)rand();
            expect_equal(&memory, copy, i % 5 ? body : (unsigned)rand() % (body + 1), i);
        }
        free(copy);
    }
    cr_expect(chunks > 0);
    free(memory.bytes);
    free(bytes);
}
