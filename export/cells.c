/* SPDX-License-Identifier: MIT */
/* See cells.h. The sums lie in the table itself, two to a cache line: a sample costs one wait for memory. */
#include "cells.h"

#include <errno.h>
#include <stdlib.h>

#include "index.h"

enum { FIRST_CAPACITY = 1024 };

/* Place of the cell with this key, or the free one where it belongs. */
static struct lapse_cell *place(const struct lapse_cells *cells, uint32_t leaf, uint32_t owner,
                                uint32_t labels)
{
    uint32_t mask = cells->capacity - 1;
    uint64_t hash = lapse_hash(lapse_hash(leaf, owner), labels);
    for (uint32_t at = (uint32_t)hash & mask;; at = (at + 1) & mask) {
        struct lapse_cell *cell = &cells->cells[at];
        if (!cell->used || (cell->leaf == leaf && cell->owner == owner && cell->labels == labels))
            return cell;
    }
}

static bool grow(struct lapse_cells *cells)
{
    struct lapse_cells larger = { .count = cells->count };
    larger.capacity = cells->capacity ? cells->capacity * 2 : FIRST_CAPACITY;
    if (!larger.capacity)
        return false;
    larger.cells = calloc(larger.capacity, sizeof *larger.cells);
    if (!larger.cells)
        return false;
    for (uint32_t i = 0; i < cells->capacity; i++) {
        const struct lapse_cell *cell = &cells->cells[i];
        if (cell->used)
            *place(&larger, cell->leaf, cell->owner, cell->labels) = *cell;
    }
    free(cells->cells);
    *cells = larger;
    return true;
}

int lapse_cells_add(struct lapse_cells *cells, uint32_t leaf, uint32_t owner, uint32_t labels,
                    uint64_t weight_ns)
{
    if (cells->count >= cells->capacity / 2 && !grow(cells))
        return -ENOMEM;
    struct lapse_cell *cell = place(cells, leaf, owner, labels);
    if (!cell->used) {
        *cell = (struct lapse_cell){ .leaf = leaf, .owner = owner, .labels = labels, .used = 1 };
        cells->count++;
    }
    cell->count++;
    cell->weight_ns += weight_ns;
    return 0;
}

static int by_leaf(const void *a, const void *b)
{
    const struct lapse_cell *left = a, *right = b;
    if (left->leaf != right->leaf)
        return left->leaf < right->leaf ? -1 : 1;
    if (left->owner != right->owner)
        return left->owner < right->owner ? -1 : 1;
    return (left->labels > right->labels) - (left->labels < right->labels);
}

static int by_owner(const void *a, const void *b)
{
    const struct lapse_cell *left = a, *right = b;
    if (left->owner != right->owner)
        return left->owner < right->owner ? -1 : 1;
    return by_leaf(a, b);
}

void lapse_cells_list(struct lapse_cells *cells, bool owner_first)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < cells->capacity; i++)
        if (cells->cells[i].used)
            cells->cells[count++] = cells->cells[i];
    if (count)
        qsort(cells->cells, count, sizeof *cells->cells, owner_first ? by_owner : by_leaf);
}

void lapse_cells_free(struct lapse_cells *cells)
{
    free(cells->cells);
    *cells = (struct lapse_cells){ 0 };
}
