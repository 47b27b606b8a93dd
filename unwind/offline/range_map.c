/* SPDX-License-Identifier: MIT */
/* A sweep over the ranges by start; a heap holds those that are open, the highest value on top. */
#include "range_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct heap {
    const struct lapse_address_range **items;
    size_t count;
};

static int by_start(const void *a, const void *b)
{
    const struct lapse_address_range *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

static void heap_push(struct heap *heap, const struct lapse_address_range *range)
{
    size_t at = heap->count++;
    while (at && heap->items[(at - 1) / 2]->value < range->value) {
        heap->items[at] = heap->items[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->items[at] = range;
}

static void heap_pop(struct heap *heap)
{
    const struct lapse_address_range *last = heap->items[--heap->count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && heap->items[child + 1]->value > heap->items[child]->value)
            child++;
        if (heap->items[child]->value <= last->value)
            break;
        heap->items[at] = heap->items[child];
        at = child;
    }
    if (heap->count)
        heap->items[at] = last;
}

static void emit(struct lapse_range_map *map, uint64_t start, uint32_t value)
{
    if (map->count ? map->values[map->count - 1] == value : value == LAPSE_RANGE_NONE)
        return;
    map->starts[map->count] = start;
    map->values[map->count++] = value;
}

static void sweep(struct lapse_range_map *map, const struct lapse_address_range *ranges,
                  size_t count, struct heap *heap)
{
    uint64_t at = count ? ranges[0].start : 0;
    size_t next = 0;
    for (;;) {
        for (; next < count && ranges[next].start <= at; next++)
            if (ranges[next].end > ranges[next].start)
                heap_push(heap, &ranges[next]);
        while (heap->count && heap->items[0]->end <= at)
            heap_pop(heap);
        if (!heap->count) {
            emit(map, at, LAPSE_RANGE_NONE);
            if (next >= count)
                return;
            at = ranges[next].start;
            continue;
        }
        emit(map, at, heap->items[0]->value);
        at = heap->items[0]->end;
        if (next < count && ranges[next].start < at)
            at = ranges[next].start;
    }
}

static void *shrunk(void *items, size_t bytes)
{
    void *moved = realloc(items, bytes ? bytes : 1);
    return moved ? moved : items;
}

int lapse_range_map_build(struct lapse_range_map *map, struct lapse_address_range *ranges,
                          size_t count)
{
    /* Each range opens one segment and closes one. */
    size_t most = 2 * count + 1;
    struct heap heap = { malloc((count + 1) * sizeof *heap.items), 0 };
    *map = (struct lapse_range_map){ malloc(most * sizeof *map->starts),
                                     malloc(most * sizeof *map->values), 0 };
    if (!heap.items || !map->starts || !map->values) {
        free(heap.items);
        lapse_range_map_free(map);
        return -ENOMEM;
    }
    if (count)
        qsort(ranges, count, sizeof *ranges, by_start);
    sweep(map, ranges, count, &heap);
    free(heap.items);
    map->starts = shrunk(map->starts, map->count * sizeof *map->starts);
    map->values = shrunk(map->values, map->count * sizeof *map->values);
    return 0;
}

void lapse_range_map_free(struct lapse_range_map *map)
{
    free(map->starts);
    free(map->values);
    *map = (struct lapse_range_map){ 0 };
}

uint32_t lapse_range_map_find(const struct lapse_range_map *map, uint64_t address)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->starts[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? map->values[low - 1] : LAPSE_RANGE_NONE;
}

size_t lapse_range_map_bytes(const struct lapse_range_map *map)
{
    return map->count * (sizeof *map->starts + sizeof *map->values);
}
