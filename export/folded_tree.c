/* SPDX-License-Identifier: MIT */
/* The call tree of folded text. Sums go from each distinct stack up to its root; a stamp per
 * function tells whether this stack has counted for it already. See folded_tree.h. */
#include "folded_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "call_tree.h"
#include "event_text.h"
#include "heap.h"
#include "index.h"

struct lapse_folded_tree {
    struct lapse_call_tree *tree; /* function: number of the name + 1 */
    struct lapse_strings names;
    struct lapse_folded_tree_node *nodes;
    uint32_t node_count, node_capacity;
    struct lapse_folded_function *functions;
    uint32_t *order, *stamps;
};

int lapse_folded_tree_create(struct lapse_folded_tree **made)
{
    struct lapse_folded_tree *tree = calloc(1, sizeof *tree);
    if (!tree)
        return -ENOMEM;
    tree->nodes = calloc(64, sizeof *tree->nodes);
    tree->node_capacity = 64;
    tree->node_count = 1;
    if (!tree->nodes || lapse_call_tree_create(&tree->tree, &lapse_heap)) {
        lapse_folded_tree_destroy(tree);
        return -ENOMEM;
    }
    *made = tree;
    return 0;
}

void lapse_folded_tree_destroy(struct lapse_folded_tree *tree)
{
    if (!tree)
        return;
    lapse_call_tree_destroy(tree->tree);
    lapse_strings_free(&tree->names);
    free(tree->nodes);
    free(tree->functions);
    free(tree->order);
    free(tree->stamps);
    free(tree);
}

static uint32_t child(struct lapse_folded_tree *tree, uint32_t parent, uint32_t function)
{
    uint32_t node = lapse_call_tree_child(tree->tree, parent, 0, function + 1ull, 0);
    if (!node || node < tree->node_count)
        return node;
    if (node == tree->node_capacity) {
        void *nodes = realloc(tree->nodes, 2ull * node * sizeof *tree->nodes);
        if (!nodes)
            return 0;
        tree->nodes = nodes;
        tree->node_capacity *= 2;
    }
    tree->nodes[node] = (struct lapse_folded_tree_node){ .parent = parent, .function = function };
    tree->node_count++;
    return node;
}

int lapse_folded_tree_add(struct lapse_folded_tree *tree, char *stack, size_t size, uint64_t value)
{
    uint32_t node = 0;
    char *name;
    size_t length;
    while (lapse_stack_next(&stack, &size, &name, &length)) {
        uint32_t function = lapse_strings_number(&tree->names, name, length);
        node = function == LAPSE_INDEX_NONE ? 0 : child(tree, node, function);
        if (!node)
            return -ENOMEM;
    }
    tree->nodes[node].self += value;
    return 0;
}

/* One stack: its functions, each once. Stamps are node numbers, and node 0 has no frames. */
static void sum_stack(struct lapse_folded_tree *tree, uint32_t node)
{
    uint64_t value = tree->nodes[node].self;
    for (uint32_t at = node; at; at = tree->nodes[at].parent) {
        uint32_t function = tree->nodes[at].function;
        if (tree->stamps[function] == node)
            continue;
        tree->stamps[function] = node;
        tree->functions[function].total += value;
    }
    tree->functions[tree->nodes[node].function].self += value;
}

static void mark_recursion(struct lapse_folded_tree *tree, uint32_t node)
{
    uint32_t function = tree->nodes[node].function, at = tree->nodes[node].parent;
    while (at && tree->nodes[at].function != function)
        at = tree->nodes[at].parent;
    tree->nodes[node].recursive = at;
    tree->functions[function].recursive |= tree->nodes[node].recursive;
}

static int by_name(const void *left, const void *right, void *context)
{
    const struct lapse_folded_function *functions = context;
    return strcmp(functions[*(const uint32_t *)left].name,
                  functions[*(const uint32_t *)right].name);
}

int lapse_folded_tree_finish(struct lapse_folded_tree *tree)
{
    uint32_t count = tree->names.count;
    tree->functions = calloc(count + 1ull, sizeof *tree->functions);
    tree->order = calloc(count + 1ull, sizeof *tree->order);
    tree->stamps = calloc(count + 1ull, sizeof *tree->stamps);
    if (!tree->functions || !tree->order || !tree->stamps)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        tree->functions[i].name = tree->names.texts[i];
        tree->order[i] = i;
    }
    for (uint32_t node = 1; node < tree->node_count; node++) {
        mark_recursion(tree, node);
        if (tree->nodes[node].self)
            sum_stack(tree, node);
        tree->nodes[node].total = tree->nodes[node].self;
    }
    for (uint32_t node = tree->node_count; node-- > 1;)
        tree->nodes[tree->nodes[node].parent].total += tree->nodes[node].total;
    if (count)
        qsort_r(tree->order, count, sizeof *tree->order, by_name, tree->functions);
    return 0;
}

const struct lapse_folded_tree_node *lapse_folded_tree_nodes(const struct lapse_folded_tree *tree,
                                                             uint32_t *count)
{
    *count = tree->node_count;
    return tree->nodes;
}

const struct lapse_folded_function *lapse_folded_tree_functions(const struct lapse_folded_tree *tree,
                                                                const uint32_t **order,
                                                                uint32_t *count)
{
    if (order)
        *order = tree->order;
    *count = tree->names.count;
    return tree->functions;
}

static int by_value(const void *left, const void *right, void *context)
{
    const struct lapse_folded_link *a = left, *b = right;
    const struct lapse_folded_function *functions = context;
    if (a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return strcmp(functions[a->function].name, functions[b->function].name);
}

/* Add the value of one stack to everyone who is next to `function` in it. */
static void link_stack(const struct lapse_folded_tree *tree, uint32_t node, uint32_t function,
                       bool callers, uint32_t *stamps, uint64_t *values)
{
    for (uint32_t at = node; at && tree->nodes[at].parent; at = tree->nodes[at].parent) {
        uint32_t below = tree->nodes[at].function;
        uint32_t above = tree->nodes[tree->nodes[at].parent].function;
        uint32_t other = callers ? above : below;
        if ((callers ? below : above) != function || stamps[other] == node)
            continue;
        stamps[other] = node;
        values[other] += tree->nodes[node].self;
    }
}

int lapse_folded_tree_links(const struct lapse_folded_tree *tree, uint32_t function, bool callers,
                            struct lapse_folded_link **links, uint32_t *count)
{
    uint32_t functions = tree->names.count;
    uint32_t *stamps = calloc(functions + 1ull, sizeof *stamps);
    uint64_t *values = calloc(functions + 1ull, sizeof *values);
    *links = calloc(functions + 1ull, sizeof **links);
    *count = 0;
    bool whole = stamps && values && *links;
    for (uint32_t node = 1; whole && node < tree->node_count; node++)
        if (tree->nodes[node].self)
            link_stack(tree, node, function, callers, stamps, values);
    for (uint32_t i = 0; whole && i < functions; i++)
        if (values[i])
            (*links)[(*count)++] = (struct lapse_folded_link){ i, values[i] };
    if (whole && *count)
        qsort_r(*links, *count, sizeof **links, by_value, tree->functions);
    free(stamps);
    free(values);
    return whole ? 0 : -ENOMEM;
}
