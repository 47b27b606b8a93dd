/* SPDX-License-Identifier: MIT */
/* Lines of folded text as a tree of frame names: equal stacks are one, and all come out sorted as their
 * lines' bytes are, without a line being made before it is written. Built by folded.c.
 * Offline only; one owner. Memory: distinct stacks, names once. */
#ifndef LAPSE_EXPORT_LINE_TREE_H
#define LAPSE_EXPORT_LINE_TREE_H

#include "index.h"
#include "output.h"

/* All zero is empty. Node 0 is the root and stands for no frame. */
struct lapse_line_tree {
    struct lapse_strings names;
    struct lapse_map children; /* (parent, name) -> node */
    struct lapse_line_node { uint32_t parent, name; uint64_t weight; } *nodes;
    uint32_t node_count; /* the root included, once there is a node */
};

/* Number of a frame's name, as it shall stand in the line (no `;`). LAPSE_INDEX_NONE: no memory. */
uint32_t lapse_line_tree_name(struct lapse_line_tree *tree, const char *text, size_t size);
/* Found or made; LAPSE_INDEX_NONE: no memory. */
uint32_t lapse_line_tree_child(struct lapse_line_tree *tree, uint32_t parent, uint32_t name);

/* Write a line for every node that has a weight; `value` makes its number. Returns 0 or -ENOMEM; what the
 * output could not take shows in the output. */
int lapse_line_tree_write(const struct lapse_line_tree *tree, struct lapse_output *output,
                          uint64_t (*value)(const void *context, uint64_t weight), const void *context);
void lapse_line_tree_free(struct lapse_line_tree *tree);

#endif
