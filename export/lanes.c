/* SPDX-License-Identifier: MIT */
/* See lanes.h. A value is a varint and never crosses a block; a block's first two bytes say how many of
 * its bytes are used. A lane lists the places of its blocks: eight bytes for each 32 KiB. */
#include "lanes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    if (pwrite(fileno(lanes->file), lane->bytes, LAPSE_LANE_BLOCK,
               (off_t)(lanes->file_blocks * LAPSE_LANE_BLOCK)) != (ssize_t)LAPSE_LANE_BLOCK)
        return errno ? -errno : -EIO;
    lane->used = 2;
    return remember_block(lane, lanes->file_blocks++);
}

bool lapse_lane_make_room(struct lapse_lanes *lanes, struct lapse_lane *lane)
{
    if (lanes->error)
        return false;
    if (lane->bytes)
        lanes->error = spill(lanes, lane);
    else if ((lane->bytes = malloc(LAPSE_LANE_BLOCK)))
        lane->used = 2;
    else
        lanes->error = -ENOMEM;
    return !lanes->error;
}

int lapse_lane_open(struct lapse_lane_reader *reader, struct lapse_lanes *lanes, uint32_t lane)
{
    *reader = (struct lapse_lane_reader){
        .lanes = lanes, .lane = lane, .order = lanes->lanes[lane].blocks,
        .block_count = lanes->lanes[lane].block_count,
    };
    if (reader->block_count && !(reader->bytes = malloc(LAPSE_LANE_BLOCK)))
        return -ENOMEM;
    return lanes->error;
}

int lapse_lane_next_block(struct lapse_lane_reader *reader)
{
    const struct lapse_lane *lane = &reader->lanes->lanes[reader->lane];
    if (reader->block > reader->block_count || !lane->bytes)
        return 0;
    if (reader->block == reader->block_count) {
        reader->at = lane->bytes + 2;
        reader->end = lane->bytes + lane->used;
    } else {
        if (pread(fileno(reader->lanes->file), reader->bytes, LAPSE_LANE_BLOCK,
                  (off_t)(reader->order[reader->block] * LAPSE_LANE_BLOCK)) !=
            (ssize_t)LAPSE_LANE_BLOCK)
            return errno ? -errno : -EIO;
        reader->at = reader->bytes + 2;
        reader->end = reader->bytes + (reader->bytes[0] | reader->bytes[1] << 8);
    }
    reader->block++;
    return 1;
}

void lapse_lane_close(struct lapse_lane_reader *reader)
{
    free(reader->bytes);
    reader->bytes = NULL;
}
