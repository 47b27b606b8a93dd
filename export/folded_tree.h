/* SPDX-License-Identifier: MIT */
/* The call tree of folded text: self and total of nodes and of functions, callers and callees.
 * A function counts once per stack however deep it recurses. Offline only. */
#ifndef LAPSE_EXPORT_FOLDED_TREE_H
#define LAPSE_EXPORT_FOLDED_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lapse_folded_tree_node {
    uint32_t parent; /* smaller than the own number; node 0 is the root of all and no frame */
    uint32_t function;
    uint64_t self, total;
    bool recursive; /* the same function is above it */
};

struct lapse_folded_function {
    const char *name;
    uint64_t self, total;
    bool recursive; /* somewhere it is above itself */
};

struct lapse_folded_link { uint32_t function; uint64_t value; };

struct lapse_folded_tree;

int lapse_folded_tree_create(struct lapse_folded_tree **tree);
void lapse_folded_tree_destroy(struct lapse_folded_tree *tree);

/* Add a stack; its bytes are written to (escapes are undone in place). 0 or -ENOMEM. */
int lapse_folded_tree_add(struct lapse_folded_tree *tree, char *stack, size_t size,
                          uint64_t value);
/* Sum up. After it nothing can be added, and the lists below can be asked for. */
int lapse_folded_tree_finish(struct lapse_folded_tree *tree);

const struct lapse_folded_tree_node *lapse_folded_tree_nodes(const struct lapse_folded_tree *tree,
                                                             uint32_t *count);
/* Functions by number; `order`, if not NULL, gets their numbers sorted by name. */
const struct lapse_folded_function *lapse_folded_tree_functions(const struct lapse_folded_tree *tree,
                                                                const uint32_t **order,
                                                                uint32_t *count);
/* Who calls `function`, or whom it calls, with the value of the stacks in which that happens, each
 * stack once. Greatest first, then by name. `links` is freed by the caller. 0 or -ENOMEM. */
int lapse_folded_tree_links(const struct lapse_folded_tree *tree, uint32_t function, bool callers,
                            struct lapse_folded_link **links, uint32_t *count);

#endif
