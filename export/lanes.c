/* SPDX-License-Identifier: MIT */
/* See lanes.h. A value is a varint and never crosses a block; a block's first two bytes say how many of
 * its bytes are used. A lane lists the places of its blocks: eight bytes for each 32 KiB. */
#include "lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK 32768u
#define VARINT_MAX 10u

struct lapse_lane {
    uint8_t *bytes;   /* block being filled; the first two bytes hold how many are used */
    uint32_t used;
    uint64_t *blocks; /* places in the file */
    uint64_t block_count, block_capacity;
};

int lapse_lanes_init(struct lapse_lanes *lanes, uint32_t count)
{
    *lanes = (struct lapse_lanes){ .count = count };
    lanes->lanes = calloc(count ? count : 1, sizeof *lanes->lanes);
    lanes->error = lanes->lanes ? 0 : -ENOMEM;
    return lanes->error;
}

void lapse_lanes_fini(struct lapse_lanes *lanes)
{
    for (uint32_t i = 0; lanes->lanes && i < lanes->count; i++) {
        free(lanes->lanes[i].bytes);
        free(lanes->lanes[i].blocks);
    }
    free(lanes->lanes);
    if (lanes->file)
        fclose(lanes->file);
    *lanes = (struct lapse_lanes){ 0 };
}

static int remember_block(struct lapse_lane *lane, uint64_t place)
{
    if (lane->block_count == lane->block_capacity) {
        uint64_t capacity = lane->block_capacity ? lane->block_capacity * 2 : 16;
        uint64_t *blocks = realloc(lane->blocks, capacity * sizeof *blocks);
        if (!blocks)
            return -ENOMEM;
        lane->blocks = blocks;
        lane->block_capacity = capacity;
    }
    lane->blocks[lane->block_count++] = place;
    return 0;
}

static int spill(struct lapse_lanes *lanes, struct lapse_lane *lane)
{
    lane->bytes[0] = (uint8_t)lane->used;
    lane->bytes[1] = (uint8_t)(lane->used >> 8);
    if (!lanes->file && !(lanes->file = tmpfile()))
        return -errno;
    if (pwrite(fileno(lanes->file), lane->bytes, BLOCK, (off_t)(lanes->file_blocks * BLOCK)) !=
        (ssize_t)BLOCK)
        return errno ? -errno : -EIO;
    lane->used = 2;
    return remember_block(lane, lanes->file_blocks++);
}

void lapse_lane_put(struct lapse_lanes *lanes, uint32_t index, uint64_t value)
{
    struct lapse_lane *lane = &lanes->lanes[index];
    if (lanes->error)
        return;
    if (!lane->bytes) {
        lane->bytes = malloc(BLOCK);
        lane->used = 2;
        if (!lane->bytes) {
            lanes->error = -ENOMEM;
            return;
        }
    }
    if (BLOCK - lane->used < VARINT_MAX && (lanes->error = spill(lanes, lane)))
        return;
    while (value >= 0x80) {
        lane->bytes[lane->used++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    lane->bytes[lane->used++] = (uint8_t)value;
}

int lapse_lane_open(struct lapse_lane_reader *reader, struct lapse_lanes *lanes, uint32_t lane)
{
    *reader = (struct lapse_lane_reader){
        .lanes = lanes, .lane = lane, .order = lanes->lanes[lane].blocks,
        .block_count = lanes->lanes[lane].block_count,
    };
    if (reader->block_count && !(reader->bytes = malloc(BLOCK)))
        return -ENOMEM;
    return lanes->error;
}

/* Point the reader at its next block: those in the file, then the one in memory. */
static int next_block(struct lapse_lane_reader *reader)
{
    const struct lapse_lane *lane = &reader->lanes->lanes[reader->lane];
    if (reader->block > reader->block_count || !lane->bytes)
        return 0;
    if (reader->block == reader->block_count) {
        reader->at = lane->bytes + 2;
        reader->end = lane->bytes + lane->used;
    } else {
        if (pread(fileno(reader->lanes->file), reader->bytes, BLOCK,
                  (off_t)(reader->order[reader->block] * BLOCK)) != (ssize_t)BLOCK)
            return errno ? -errno : -EIO;
        reader->at = reader->bytes + 2;
        reader->end = reader->bytes + (reader->bytes[0] | reader->bytes[1] << 8);
    }
    reader->block++;
    return 1;
}

int lapse_lane_next(struct lapse_lane_reader *reader, uint64_t *value)
{
    while (reader->at == reader->end) {
        int more = next_block(reader);
        if (more <= 0)
            return more;
    }
    uint64_t result = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = *reader->at++;
        result |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            break;
    }
    *value = result;
    return 1;
}

void lapse_lane_close(struct lapse_lane_reader *reader)
{
    free(reader->bytes);
    reader->bytes = NULL;
}
