/* SPDX-License-Identifier: MIT */
/* Folded lines in memory: equal stacks are summed as they come, then sorted by the bytes of the
 * stack. That order does not depend on values, so any grouping of merges gives the same bytes.
 * Used by the replay and, a bounded part at a time, by the merge. Offline only. */
#ifndef LAPSE_EXPORT_FOLDED_SET_H
#define LAPSE_EXPORT_FOLDED_SET_H

#include "index.h"
#include "output.h"

struct lapse_folded_set {
    struct lapse_folded_entry { size_t at; uint32_t size; uint64_t value; } *entries;
    uint32_t count, capacity;
    char *bytes;
    size_t size, byte_capacity;
    struct lapse_index index;
};

/* 0, -ENOMEM, or -EOVERFLOW when the sum is too large. */
int lapse_folded_set_add(struct lapse_folded_set *set, const char *stack, size_t size,
                         uint64_t value);
/* After it nothing can be added until the set is cleared. */
void lapse_folded_set_sort(struct lapse_folded_set *set);
void lapse_folded_set_write(const struct lapse_folded_set *set, struct lapse_output *output);
/* Bytes of memory that the lines take, about. */
size_t lapse_folded_set_weight(const struct lapse_folded_set *set);
void lapse_folded_set_clear(struct lapse_folded_set *set); /* keeps the memory */
void lapse_folded_set_free(struct lapse_folded_set *set);

/* Order of stacks: by bytes, a beginning first. */
static inline int lapse_folded_compare(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order ? order : (a_size > b_size) - (a_size < b_size);
}

/* Append `STACK VALUE\n`. */
void lapse_folded_write_line(struct lapse_output *output, const char *stack, size_t size,
                             uint64_t value);

#endif
