/* SPDX-License-Identifier: MIT */
/* One stream of numbers per thread, kept out of memory: formats that want each thread's samples in
 * one piece (speedscope, firefox) get them interleaved from a recording, sort them into lanes and
 * read each lane back as often as they need. Memory: one block per lane; the rest is a temporary
 * file without a name. Offline only; one owner. */
#ifndef LAPSE_EXPORT_LANES_H
#define LAPSE_EXPORT_LANES_H

#include <stdint.h>
#include <stdio.h>

struct lapse_lane;

struct lapse_lanes {
    struct lapse_lane *lanes;
    uint32_t count;
    FILE *file; /* full blocks of all lanes; NULL until there is one */
    uint64_t file_blocks;
    int error; /* first failure, negative errno; later calls do nothing */
};

int lapse_lanes_init(struct lapse_lanes *lanes, uint32_t count);
void lapse_lanes_fini(struct lapse_lanes *lanes);

void lapse_lane_put(struct lapse_lanes *lanes, uint32_t lane, uint64_t value);

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
/* Next value. Returns 1, 0 at the end, negative errno. */
int lapse_lane_next(struct lapse_lane_reader *reader, uint64_t *value);
void lapse_lane_close(struct lapse_lane_reader *reader);

#endif
