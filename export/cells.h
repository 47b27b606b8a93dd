/* SPDX-License-Identifier: MIT */
/* Sums of samples by leaf and by who took them: what pprof's samples and the lines of folded text with
 * frames for threads are made of. Offline only; one owner. Memory: distinct keys. */
#ifndef LAPSE_EXPORT_CELLS_H
#define LAPSE_EXPORT_CELLS_H

#include <stdbool.h>
#include <stdint.h>

struct lapse_cell {
    uint64_t count, weight_ns;
    uint32_t leaf, owner; /* whatever the caller tells its samples apart by: a thread, a group of them */
    uint32_t labels;
    uint32_t used; /* 0: a free place of the table */
};

/* All zero is empty. A table by hash until it is listed. */
struct lapse_cells {
    struct lapse_cell *cells;
    uint32_t count, capacity; /* capacity: 0 or a power of two */
};

/* Returns 0 or -ENOMEM. */
int lapse_cells_add(struct lapse_cells *cells, uint32_t leaf, uint32_t owner, uint32_t labels,
                    uint64_t weight_ns);
/* From now on cells[0] to cells[count - 1], by leaf, owner, labels, or with the owner first. To be called
 * once; nothing can be added after. */
void lapse_cells_list(struct lapse_cells *cells, bool owner_first);
void lapse_cells_free(struct lapse_cells *cells);

#endif
