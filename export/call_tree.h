/* SPDX-License-Identifier: MIT */
/* The call tree: every distinct stack once. A node is (parent, call site in the parent, function).
 * Used by the drain thread inside the host and by everything offline; allocates through the
 * allocator it was created with and nothing else. Node 0 is the root of all and stands for no frame.
 * One owner at a time; not async-signal-safe. */
#ifndef LAPSE_EXPORT_CALL_TREE_H
#define LAPSE_EXPORT_CALL_TREE_H

#include <stdint.h>

#include "lapse/diff.h"

struct lapse_call_node {
    uint32_t parent; /* always smaller than the node's own number */
    uint32_t depth;  /* frames on the stack that ends here: 1 for an outermost frame, 0 for node 0 */
    uint32_t flags;  /* NodeFlag of docs/lapse.proto */
    uint64_t call_site;
    uint64_t function;
};

struct lapse_call_tree;

int lapse_call_tree_create(struct lapse_call_tree **tree, const struct lapse_allocator *allocator);
void lapse_call_tree_destroy(struct lapse_call_tree *tree);

/* Find or make the child. Returns its number, or 0 when there is no memory. */
uint32_t lapse_call_tree_child(struct lapse_call_tree *tree, uint32_t parent, uint64_t call_site,
                               uint64_t function, uint32_t flags);

/* The node array, valid until the next lapse_call_tree_child. */
const struct lapse_call_node *lapse_call_tree_nodes(const struct lapse_call_tree *tree,
                                                    uint32_t *count);

/* Lowest common ancestor. Cost grows with the distance, not with the depth. */
uint32_t lapse_call_tree_common(const struct lapse_call_tree *tree, uint32_t a, uint32_t b);

#endif
