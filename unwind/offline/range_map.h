/* SPDX-License-Identifier: MIT */
/* Overlapping address ranges flattened once, so that a look-up is one binary search. Units,
 * functions with their inlined calls, and symbols all use it. Offline only; one owner. */
#ifndef LAPSE_OFFLINE_RANGE_MAP_H
#define LAPSE_OFFLINE_RANGE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define LAPSE_RANGE_NONE UINT32_MAX

struct lapse_address_range {
    uint64_t start, end;
    uint32_t value;
};

struct lapse_range_map {
    uint64_t *starts; /* segment i covers [starts[i], starts[i + 1]) */
    uint32_t *values; /* LAPSE_RANGE_NONE: a gap; the last segment always is one */
    size_t count;
};

/* Where ranges overlap the higher value wins. Sorts `ranges`. Returns 0 or -ENOMEM. */
int lapse_range_map_build(struct lapse_range_map *map, struct lapse_address_range *ranges, size_t count);
void lapse_range_map_free(struct lapse_range_map *map);
uint32_t lapse_range_map_find(const struct lapse_range_map *map, uint64_t address);
size_t lapse_range_map_bytes(const struct lapse_range_map *map);

#endif
