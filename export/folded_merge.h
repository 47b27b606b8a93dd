/* SPDX-License-Identifier: MIT */
/* Merge of folded text: equal stacks are summed, the result is sorted by the bytes of the stack, so
 * it is the same in any order and grouping of the inputs. Sorted files are streamed; everything
 * else is summed and sorted in bounded parts, which spill to temporary files.
 * Memory grows with the number of inputs, not with their size. Offline only. */
#ifndef LAPSE_EXPORT_FOLDED_MERGE_H
#define LAPSE_EXPORT_FOLDED_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "line_reader.h"
#include "output.h"

struct lapse_folded_merge;

struct lapse_folded_merge_options {
    uint32_t depth;     /* cut every stack to its innermost frames, marked; 0: leave them */
    bool skip_bad;      /* count bad lines instead of refusing them */
    size_t part_bytes;  /* memory for unsorted input before it spills; 0: 24 MiB */
};

int lapse_folded_merge_create(struct lapse_folded_merge **merge,
                              const struct lapse_folded_merge_options *options);
void lapse_folded_merge_destroy(struct lapse_folded_merge *merge);

/* Add a file that can be read twice; or lines that can be read once; or begin an input that is no
 * folded text, and add its stacks.
 * Return 0 or a negative errno, with one line in lapse_folded_merge_error. The path must live as
 * long as the merge. */
int lapse_folded_merge_file(struct lapse_folded_merge *merge, const char *path);
int lapse_folded_merge_lines(struct lapse_folded_merge *merge, struct lapse_lines *lines);
int lapse_folded_merge_input(struct lapse_folded_merge *merge, const char *path);
int lapse_folded_merge_stack(struct lapse_folded_merge *merge, const char *stack, size_t size,
                             uint64_t value);

/* Write the result. Once. */
int lapse_folded_merge_write(struct lapse_folded_merge *merge, struct lapse_output *output);

const char *lapse_folded_merge_error(const struct lapse_folded_merge *merge);
uint64_t lapse_folded_merge_bad_lines(const struct lapse_folded_merge *merge);

/* Two inputs whose stacks were cut at different depths, as far as the lines show it. Returns false
 * when there are none. A limit of 0 stands for "not cut". */
struct lapse_folded_limits {
    const char *low_path, *high_path;
    uint32_t low, high;
};
bool lapse_folded_merge_limits(const struct lapse_folded_merge *merge,
                               struct lapse_folded_limits *limits);

#endif
