/* SPDX-License-Identifier: MIT */
/* Unpacks the body of a chunk. Nearly all bytes of a recording are lists of numbers in SampleBlocks:
 * these are read here, everything else by protobuf-c from the published schema. A block that is not
 * written the way lapse writes it (unknown or repeated fields, lists that are not packed, anything
 * wrong) sends the whole chunk to protobuf-c: what a chunk means and which chunks are refused is that
 * library's word alone. Called by recording.c. Offline only. */
#include <string.h>

#include "recording_source.h"
#include "wire.h"

enum { CHUNK_SAMPLES = 5 };
enum block_field {
    BLOCK_THREAD = 1, BLOCK_BASE_TIME, BLOCK_TIME_DELTA, BLOCK_NODE_DELTA, BLOCK_LEAF_DELTA,
    BLOCK_WEIGHT, BLOCK_LABELS, BLOCK_CUT_CFA, BLOCK_FIELDS,
};

static void *take(ProtobufCAllocator *allocator, size_t size)
{
    return allocator->alloc(allocator->allocator_data, size);
}

/* The last byte of a number has no high bit: eight bytes are looked at together. */
static size_t count_varints(const struct lapse_wire_reader *list)
{
    const uint64_t ones = 0x0101010101010101u;
    const uint8_t *at = list->at;
    size_t count = 0;
    for (uint64_t word; list->end - at >= 8; at += 8) {
        memcpy(&word, at, sizeof word);
        count += ((~word >> 7 & ones) * ones) >> 56;
    }
    for (; at < list->end; at++)
        count += *at < 0x80;
    return count;
}

/* Eight bytes' low seven bits each, the first byte's lowest, closed up in three steps. */
static uint64_t close_up(uint64_t word)
{
    word = (word & 0x007f007f007f007fu) | (word & 0x7f007f007f007f00u) >> 1;
    word = (word & 0x00003fff00003fffu) | (word & 0x3fff00003fff0000u) >> 2;
    return (word & 0x000000000fffffffu) | (word & 0x0fffffff00000000u) >> 4;
}

/* All numbers of a packed list; they fill the list to its last byte. */
static bool read_list(struct lapse_wire_reader list, uint64_t *to)
{
    while (list.at < list.end) {
        uint64_t word, stops = 0;
        if (*list.at < 0x80) {
            *to++ = *list.at++;
            continue;
        }
        if (list.end - list.at >= 8) {
            memcpy(&word, list.at, sizeof word);
            stops = ~word & 0x8080808080808080u;
        }
        if (stops) {
            *to++ = close_up(word & (stops ^ (stops - 1)));
            list.at += __builtin_ctzll(stops) / 8 + 1;
        } else if (lapse_wire_read_varint(&list, to++)) {
            return false;
        }
    }
    return true;
}

static uint64_t *unpack_list(ProtobufCAllocator *allocator, const struct lapse_wire_reader *list,
                             size_t *count)
{
    *count = count_varints(list);
    uint64_t *numbers = take(allocator, (*count + 1) * sizeof *numbers);
    return numbers && read_list(*list, numbers) ? numbers : NULL;
}

static int64_t *unpack_signed(ProtobufCAllocator *allocator, const struct lapse_wire_reader *list,
                              size_t *count)
{
    uint64_t *numbers = unpack_list(allocator, list, count);
    for (size_t i = 0; numbers && i < *count; i++)
        numbers[i] = (uint64_t)lapse_wire_unzigzag(numbers[i]);
    return (int64_t *)numbers;
}

static uint32_t *unpack_short(ProtobufCAllocator *allocator, const struct lapse_wire_reader *list,
                              size_t *count)
{
    uint64_t *numbers = unpack_list(allocator, list, count);
    uint32_t *shorts = numbers ? take(allocator, (*count + 1) * sizeof *shorts) : NULL;
    for (size_t i = 0; shorts && i < *count; i++) {
        if (numbers[i] > UINT32_MAX)
            return NULL;
        shorts[i] = (uint32_t)numbers[i];
    }
    return shorts;
}

/* Fields of a block, each at most once, in any order. */
static bool read_fields(struct lapse_wire_reader block, uint64_t numbers[BLOCK_TIME_DELTA],
                        struct lapse_wire_reader lists[BLOCK_FIELDS])
{
    uint32_t field, seen = 0;
    int more;
    for (;;) {
        struct lapse_wire_reader body;
        uint64_t value;
        const uint8_t *key = block.at;
        more = lapse_wire_next(&block, &field, &value, &body);
        if (more <= 0)
            return !more;
        bool is_list = field >= BLOCK_TIME_DELTA;
        if (field >= BLOCK_FIELDS || seen & 1u << field || (*key & 7) != (is_list ? 2 : 0))
            return false;
        seen |= 1u << field;
        if (is_list)
            lists[field] = body;
        else
            numbers[field] = value;
    }
}

static Lapse__SampleBlock *unpack_block(ProtobufCAllocator *allocator,
                                        struct lapse_wire_reader body)
{
    struct lapse_wire_reader lists[BLOCK_FIELDS] = { 0 };
    uint64_t numbers[BLOCK_TIME_DELTA] = { 0 };
    Lapse__SampleBlock *block = take(allocator, sizeof *block);
    if (!block || !read_fields(body, numbers, lists) || numbers[BLOCK_THREAD] > UINT32_MAX)
        return NULL;
    lapse__sample_block__init(block);
    block->thread = (uint32_t)numbers[BLOCK_THREAD];
    block->base_time_ns = numbers[BLOCK_BASE_TIME];
    block->time_delta = unpack_list(allocator, &lists[BLOCK_TIME_DELTA], &block->n_time_delta);
    block->node_delta = unpack_signed(allocator, &lists[BLOCK_NODE_DELTA], &block->n_node_delta);
    block->leaf_delta = unpack_signed(allocator, &lists[BLOCK_LEAF_DELTA], &block->n_leaf_delta);
    block->weight_ns = unpack_list(allocator, &lists[BLOCK_WEIGHT], &block->n_weight_ns);
    block->labels = unpack_short(allocator, &lists[BLOCK_LABELS], &block->n_labels);
    block->cut_cfa = unpack_list(allocator, &lists[BLOCK_CUT_CFA], &block->n_cut_cfa);
    return block->time_delta && block->node_delta && block->leaf_delta && block->weight_ns &&
                   block->labels && block->cut_cfa
               ? block : NULL;
}

/* How many blocks there are; 0 also for what is no Chunk. */
static size_t count_blocks(const uint8_t *body, size_t size)
{
    struct lapse_wire_reader reader = { body, body + size }, inner;
    uint32_t field;
    uint64_t value;
    size_t count = 0;
    int more;
    while ((more = lapse_wire_next(&reader, &field, &value, &inner)) > 0)
        count += field == CHUNK_SAMPLES;
    return more ? 0 : count;
}

/* Blocks into `blocks`, everything else to `rest`. Returns the size of the rest, -1 on a block that
 * is not as expected. */
static int64_t split(ProtobufCAllocator *allocator, const uint8_t *body, size_t size,
                     Lapse__SampleBlock **blocks, uint8_t *rest)
{
    struct lapse_wire_reader reader = { body, body + size }, inner;
    uint32_t field;
    uint64_t value;
    size_t kept = 0;
    for (const uint8_t *start = body; lapse_wire_next(&reader, &field, &value, &inner) > 0;
         start = reader.at) {
        if (field != CHUNK_SAMPLES) {
            memcpy(rest + kept, start, (size_t)(reader.at - start));
            kept += (size_t)(reader.at - start);
        } else if ((*start & 7) != 2 || !(*blocks++ = unpack_block(allocator, inner))) {
            return -1;
        }
    }
    return (int64_t)kept;
}

Lapse__Chunk *lapse_chunk_unpack(ProtobufCAllocator *allocator, const uint8_t *body, size_t size)
{
    size_t count = count_blocks(body, size);
    Lapse__SampleBlock **blocks = count ? take(allocator, count * sizeof *blocks) : NULL;
    uint8_t *rest = blocks ? take(allocator, size) : NULL;
    int64_t kept = rest ? split(allocator, body, size, blocks, rest) : -1;
    Lapse__Chunk *chunk = lapse__chunk__unpack(allocator, kept < 0 ? size : (size_t)kept,
                                               kept < 0 ? body : rest);
    if (chunk && kept >= 0) {
        chunk->n_samples = count;
        chunk->samples = blocks;
    }
    return chunk;
}
