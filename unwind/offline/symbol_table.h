/* SPDX-License-Identifier: MIT */
/* Functions by address out of symbol tables, with one stable choice among aliases, and names for
 * the entries of procedure linkage tables. Offline only; one owner. */
#ifndef LAPSE_OFFLINE_SYMBOL_TABLE_H
#define LAPSE_OFFLINE_SYMBOL_TABLE_H

#include "object_file.h"
#include "range_map.h"

struct lapse_table_symbol {
    uint64_t start, end; /* of a symbol without size, the end is where the next thing begins */
    const char *name;    /* in the file, or owned when `allocated` */
    uint8_t rank;        /* 0 global, 1 weak, 2 local, 3 procedure linkage */
    bool allocated, sized;
};

struct lapse_symbol_table {
    struct lapse_table_symbol *symbols; /* by start, one per start */
    size_t count, capacity;
    struct lapse_range_map map;
};

/* Collect from a file (any number of times), then order. The files must outlive the table.
 * Adding returns 0, also when there is nothing to add, or -ENOMEM. */
int lapse_symbol_table_add(struct lapse_symbol_table *table, const struct lapse_object_file *file);
int lapse_symbol_table_add_plt(struct lapse_symbol_table *table,
                               const struct lapse_object_file *file);
int lapse_symbol_table_order(struct lapse_symbol_table *table);
void lapse_symbol_table_free(struct lapse_symbol_table *table);

int lapse_symbol_table_push(struct lapse_symbol_table *table, struct lapse_table_symbol symbol);
const struct lapse_table_symbol *lapse_symbol_table_find(const struct lapse_symbol_table *table,
                                                         uint64_t address);

#endif
