/* SPDX-License-Identifier: MIT */
/* One stream of numbers per thread, kept out of memory: formats that want each thread's samples in
 * one piece (speedscope, firefox) get them interleaved from a recording, sort them into lanes and
 * read each lane back as often as they need. Memory: one block per lane; the rest is a temporary
 * file without a name. Offline only; one owner. */
#ifndef LAPSE_EXPORT_LANES_H
#define LAPSE_EXPORT_LANES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { LAPSE_LANE_BLOCK = 32768, LAPSE_LANE_VALUE_MAX = 10, LAPSE_LANE_RECORD_MAX = 16 };

struct lapse_lane {
    uint8_t *bytes;   /* block being filled; the first two bytes hold how many are used */
    uint32_t used;
    uint64_t *blocks; /* places in the file */
    uint64_t block_count, block_capacity;
};

struct lapse_lanes {
    struct lapse_lane *lanes;
    uint32_t count;
    FILE *file; /* full blocks of all lanes; NULL until there is one */
    uint64_t file_blocks;
    int error; /* first failure, negative errno; later calls do nothing */
};

int lapse_lanes_init(struct lapse_lanes *lanes, uint32_t count);
void lapse_lanes_fini(struct lapse_lanes *lanes);

/* A block with room for one more value; false after a failure. */
bool lapse_lane_make_room(struct lapse_lanes *lanes, struct lapse_lane *lane);

static inline void lapse_lane_put(struct lapse_lanes *lanes, uint32_t index, uint64_t value)
{
    struct lapse_lane *lane = &lanes->lanes[index];
    if ((!lane->bytes || LAPSE_LANE_BLOCK - lane->used < LAPSE_LANE_VALUE_MAX) &&
        !lapse_lane_make_room(lanes, lane))
        return;
    uint8_t *at = lane->bytes + lane->used;
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    lane->used = (uint32_t)(at - lane->bytes);
}

/* What is put by the million is put as it is in memory instead, in records that say themselves how
 * long they are: room for one of up to LAPSE_LANE_RECORD_MAX bytes; the caller adds what it used to
 * lane->used. NULL after a failure. A lane holds values or records, not both. */
static inline uint8_t *lapse_lane_room(struct lapse_lanes *lanes, struct lapse_lane *lane)
{
    if ((!lane->bytes || LAPSE_LANE_BLOCK - lane->used < LAPSE_LANE_RECORD_MAX) &&
        !lapse_lane_make_room(lanes, lane))
        return NULL;
    return lane->bytes + lane->used;
}

/* Reading; nothing may be put while a lane is read. */
struct lapse_lane_reader {
    struct lapse_lanes *lanes;
    const uint8_t *at, *end;
    uint8_t *bytes; /* block read from the file */
    uint64_t *order; /* places of the lane's blocks in the file, first one first */
    uint64_t block, block_count;
    uint32_t lane;
};

int lapse_lane_open(struct lapse_lane_reader *reader, struct lapse_lanes *lanes, uint32_t lane);
/* Point the reader at its next block: those in the file, then the one in memory. Returns 1, 0 at the
 * end, negative errno. */
int lapse_lane_next_block(struct lapse_lane_reader *reader);

/* Whether there is more, which then is at reader->at; who reads records moves that on. Returns 1, 0 at
 * the end, negative errno. */
static inline int lapse_lane_more(struct lapse_lane_reader *reader)
{
    while (reader->at == reader->end) {
        int more = lapse_lane_next_block(reader);
        if (more <= 0)
            return more;
    }
    return 1;
}

/* Next value. Returns 1, 0 at the end, negative errno. */
static inline int lapse_lane_next(struct lapse_lane_reader *reader, uint64_t *value)
{
    int more = lapse_lane_more(reader);
    if (more <= 0)
        return more;
    uint64_t byte = *reader->at++, result = byte & 0x7f;
    for (unsigned shift = 7; byte & 0x80; shift += 7) {
        byte = *reader->at++;
        result |= (byte & 0x7f) << shift;
    }
    *value = result;
    return 1;
}
void lapse_lane_close(struct lapse_lane_reader *reader);

#endif
