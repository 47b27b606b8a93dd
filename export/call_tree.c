/* SPDX-License-Identifier: MIT */
/* The call tree: a flat array of nodes and an open-addressed index from (parent, call site,
 * function) to node. Called by the drain thread inside the host and by everything offline, never
 * from a signal handler. Memory comes from the allocator alone, and only while growing. */
#include "call_tree.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum { FIRST_NODES = 256, FIRST_SLOTS = 512 };

struct lapse_call_tree {
    struct lapse_allocator allocator;
    struct lapse_call_node *nodes;
    uint32_t *slots; /* node number, 0 free: node 0 is never looked for */
    uint32_t node_count, node_capacity;
    uint32_t slot_count; /* power of two, at least twice the nodes */
};

static void *resize(struct lapse_call_tree *tree, void *old, size_t old_size, size_t new_size)
{
    return tree->allocator.resize(tree->allocator.context, old, old_size, new_size);
}

static uint32_t hash(uint32_t parent, uint64_t call_site, uint64_t function)
{
    uint64_t mixed = function * 0x9e3779b97f4a7c15u ^ (call_site + parent) * 0xc2b2ae3d27d4eb4fu;
    mixed ^= mixed >> 32;
    mixed *= 0xd6e8feb86659fd93u;
    return (uint32_t)(mixed >> 32);
}

int lapse_call_tree_create(struct lapse_call_tree **made, const struct lapse_allocator *allocator)
{
    struct lapse_call_tree *tree = allocator->resize(allocator->context, NULL, 0, sizeof *tree);
    if (!tree)
        return -ENOMEM;
    *tree = (struct lapse_call_tree){ .allocator = *allocator, .node_capacity = FIRST_NODES,
                                      .slot_count = FIRST_SLOTS, .node_count = 1 };
    tree->nodes = resize(tree, NULL, 0, FIRST_NODES * sizeof *tree->nodes);
    tree->slots = resize(tree, NULL, 0, FIRST_SLOTS * sizeof *tree->slots);
    if (!tree->nodes || !tree->slots) {
        lapse_call_tree_destroy(tree);
        return -ENOMEM;
    }
    tree->nodes[0] = (struct lapse_call_node){ 0 };
    memset(tree->slots, 0, FIRST_SLOTS * sizeof *tree->slots);
    *made = tree;
    return 0;
}

void lapse_call_tree_destroy(struct lapse_call_tree *tree)
{
    if (!tree)
        return;
    if (tree->nodes)
        resize(tree, tree->nodes, tree->node_capacity * sizeof *tree->nodes, 0);
    if (tree->slots)
        resize(tree, tree->slots, tree->slot_count * sizeof *tree->slots, 0);
    resize(tree, tree, sizeof *tree, 0);
}

/* Slot of the node with this key, or the free slot where it belongs. */
static uint32_t *find(const struct lapse_call_tree *tree, uint32_t parent, uint64_t call_site,
                      uint64_t function)
{
    uint32_t mask = tree->slot_count - 1;
    for (uint32_t at = hash(parent, call_site, function) & mask;; at = (at + 1) & mask) {
        const struct lapse_call_node *node = &tree->nodes[tree->slots[at]];
        if (!tree->slots[at] || (node->parent == parent && node->call_site == call_site &&
                                 node->function == function))
            return &tree->slots[at];
    }
}

static bool grow_slots(struct lapse_call_tree *tree)
{
    uint32_t old_count = tree->slot_count, count = old_count * 2;
    uint32_t *slots = count ? resize(tree, NULL, 0, count * sizeof *slots) : NULL;
    if (!slots)
        return false;
    resize(tree, tree->slots, old_count * sizeof *slots, 0);
    memset(slots, 0, count * sizeof *slots);
    tree->slots = slots;
    tree->slot_count = count;
    for (uint32_t number = 1; number < tree->node_count; number++) {
        const struct lapse_call_node *node = &tree->nodes[number];
        *find(tree, node->parent, node->call_site, node->function) = number;
    }
    return true;
}

static bool grow_nodes(struct lapse_call_tree *tree)
{
    size_t size = tree->node_capacity * sizeof *tree->nodes;
    if (tree->node_capacity > UINT32_MAX / 2)
        return false;
    struct lapse_call_node *nodes = resize(tree, tree->nodes, size, size * 2);
    if (!nodes)
        return false;
    tree->nodes = nodes;
    tree->node_capacity *= 2;
    return true;
}

uint32_t lapse_call_tree_child(struct lapse_call_tree *tree, uint32_t parent, uint64_t call_site,
                               uint64_t function, uint32_t flags)
{
    uint32_t *slot = find(tree, parent, call_site, function);
    if (*slot)
        return *slot;
    if (tree->node_count == tree->node_capacity && !grow_nodes(tree))
        return 0;
    if (tree->node_count >= tree->slot_count / 2) {
        if (!grow_slots(tree))
            return 0;
        slot = find(tree, parent, call_site, function);
    }
    *slot = tree->node_count;
    tree->nodes[tree->node_count] = (struct lapse_call_node){
        .parent = parent, .depth = tree->nodes[parent].depth + 1, .flags = flags,
        .call_site = call_site, .function = function,
    };
    return tree->node_count++;
}

const struct lapse_call_node *lapse_call_tree_nodes(const struct lapse_call_tree *tree,
                                                    uint32_t *count)
{
    *count = tree->node_count;
    return tree->nodes;
}

/* A parent's number is smaller than its child's. So of two different nodes the one with the greater
 * number cannot be the common ancestor, and stepping up from it never steps over that. */
uint32_t lapse_call_tree_common(const struct lapse_call_tree *tree, uint32_t a, uint32_t b)
{
    while (a != b) {
        if (a > b)
            a = tree->nodes[a].parent;
        else
            b = tree->nodes[b].parent;
    }
    return a;
}
