/* SPDX-License-Identifier: MIT */
/* See line_tree.h. A node can stand in two places below its parent, as the end of its own line (a space
 * follows the name) and as the beginning of others (a semicolon does). These are its two *items*. All
 * items are put in order at once: there are few names, so names are sorted with each of the two endings,
 * and items are dealt out by the rank of theirs. */
#include "line_tree.h"

#include <errno.h>
#include <stdlib.h>

enum { NO_ITEM = LAPSE_INDEX_NONE };

struct order {
    const struct lapse_line_tree *tree;
    uint32_t *ranks;      /* by name and ending: name * 2 + whether lines go on */
    uint32_t *first_item; /* by node: of what is below it */
    uint32_t *next_item;  /* by item: node * 2 + whether lines go on */
};

uint32_t lapse_line_tree_name(struct lapse_line_tree *tree, const char *text, size_t size)
{
    return lapse_strings_number(&tree->names, text, size);
}

static uint32_t add_node(struct lapse_line_tree *tree, uint32_t parent, uint32_t name)
{
    struct lapse_line_node *nodes = lapse_array_grow(tree->nodes, tree->node_count, sizeof *nodes);
    if (!nodes)
        return LAPSE_INDEX_NONE;
    tree->nodes = nodes;
    nodes[tree->node_count] = (struct lapse_line_node){ .parent = parent, .name = name };
    return tree->node_count++;
}

uint32_t lapse_line_tree_child(struct lapse_line_tree *tree, uint32_t parent, uint32_t name)
{
    uint64_t key = (uint64_t)parent << 32 | name;
    uint32_t node;
    if (lapse_map_get(&tree->children, key, &node))
        return node;
    if (!tree->node_count && add_node(tree, 0, 0) == LAPSE_INDEX_NONE)
        return LAPSE_INDEX_NONE;
    node = add_node(tree, parent, name);
    if (node != LAPSE_INDEX_NONE && lapse_map_put(&tree->children, key, node))
        return LAPSE_INDEX_NONE;
    return node;
}

/* As lines compare that go on so. No name holds a semicolon; where a name goes on with a space as the
 * other ends, the shorter one is first. */
static int by_ending(const void *a, const void *b, void *context)
{
    const struct lapse_strings *names = context;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    size_t left_size = names->sizes[left / 2], right_size = names->sizes[right / 2];
    const char *left_text = names->texts[left / 2], *right_text = names->texts[right / 2];
    size_t size = left_size < right_size ? left_size : right_size;
    int order = memcmp(left_text, right_text, size);
    if (order)
        return order;
    unsigned char left_next = (unsigned char)(left_size > size ? left_text[size]
                                              : left % 2       ? ';'
                                                               : ' ');
    unsigned char right_next = (unsigned char)(right_size > size ? right_text[size]
                                               : right % 2       ? ';'
                                                                 : ' ');
    return left_next != right_next ? left_next - right_next
                                   : (left_size > right_size) - (left_size < right_size);
}

/* Items of one rank hang below ranked[rank] until they are dealt out, the last rank first. */
static void deal(struct order *order, uint32_t *ranked, const bool *goes_on)
{
    const struct lapse_line_tree *tree = order->tree;
    for (uint32_t i = 0; i < tree->names.count * 2; i++)
        ranked[i] = NO_ITEM;
    for (uint32_t node = 0; node < tree->node_count; node++)
        order->first_item[node] = NO_ITEM;
    for (uint32_t item = 2; item < tree->node_count * 2; item++) {
        const struct lapse_line_node *node = &tree->nodes[item / 2];
        if (item % 2 ? !goes_on[item / 2] : !node->weight)
            continue;
        uint32_t rank = order->ranks[node->name * 2 + item % 2];
        order->next_item[item] = ranked[rank];
        ranked[rank] = item;
    }
    for (uint32_t rank = tree->names.count * 2; rank-- > 0;)
        for (uint32_t item = ranked[rank], next; item != NO_ITEM; item = next) {
            uint32_t *first = &order->first_item[tree->nodes[item / 2].parent];
            next = order->next_item[item];
            order->next_item[item] = *first;
            *first = item;
        }
}

static int sort(struct order *order)
{
    const struct lapse_line_tree *tree = order->tree;
    uint32_t count = tree->names.count * 2;
    uint32_t *endings = malloc((count + 1) * sizeof *endings);
    bool *goes_on = calloc(tree->node_count + 1u, sizeof *goes_on);
    order->ranks = malloc((count + 1) * sizeof *order->ranks);
    order->first_item = malloc((tree->node_count + 1u) * sizeof *order->first_item);
    order->next_item = malloc((tree->node_count + 1u) * 2 * sizeof *order->next_item);
    bool ready = endings && goes_on && order->ranks && order->first_item && order->next_item;
    for (uint32_t i = 0; ready && i < count; i++)
        endings[i] = i;
    if (ready && count)
        qsort_r(endings, count, sizeof *endings, by_ending, (void *)(uintptr_t)&tree->names);
    for (uint32_t i = 0; ready && i < count; i++)
        order->ranks[endings[i]] = i;
    for (uint32_t i = 1; ready && i < tree->node_count; i++)
        goes_on[tree->nodes[i].parent] = true;
    if (ready)
        deal(order, endings, goes_on); /* endings are done with */
    free(endings);
    free(goes_on);
    return ready ? 0 : -ENOMEM;
}

static void put_name(struct lapse_output *to, const struct lapse_line_tree *tree, uint32_t node)
{
    uint32_t name = tree->nodes[node].name;
    lapse_output_bytes(to, tree->names.texts[name], tree->names.sizes[name]);
}

/* Depth first; `line` holds what the lines below the current node begin with. */
static void write_lines(const struct order *order, struct lapse_output *output,
                        struct lapse_output *line,
                        uint64_t (*value)(const void *context, uint64_t weight),
                        const void *context)
{
    const struct lapse_line_tree *tree = order->tree;
    uint32_t item = order->first_item[0], open = 0;
    while (item != NO_ITEM || open) {
        if (item == NO_ITEM) {
            line->size -= tree->names.sizes[tree->nodes[open].name] + 1u;
            item = order->next_item[open * 2 + 1];
            open = tree->nodes[open].parent;
        } else if (item % 2) {
            open = item / 2;
            put_name(line, tree, open);
            lapse_output_char(line, ';');
            if (line->error)
                return;
            item = order->first_item[open];
        } else {
            lapse_output_bytes(output, line->bytes, line->size);
            put_name(output, tree, item / 2);
            lapse_output_char(output, ' ');
            lapse_output_uint(output, value(context, tree->nodes[item / 2].weight));
            lapse_output_char(output, '\n');
            item = order->next_item[item];
        }
    }
}

int lapse_line_tree_write(const struct lapse_line_tree *tree, struct lapse_output *output,
                          uint64_t (*value)(const void *context, uint64_t weight),
                          const void *context)
{
    struct order order = { .tree = tree };
    struct lapse_output line;
    int error = lapse_output_init(&line, NULL);
    if (!error && tree->node_count)
        error = sort(&order);
    if (!error && tree->node_count)
        write_lines(&order, output, &line, value, context);
    if (!error)
        error = line.error;
    free(order.ranks);
    free(order.first_item);
    free(order.next_item);
    lapse_output_fini(&line);
    return error;
}

void lapse_line_tree_free(struct lapse_line_tree *tree)
{
    lapse_strings_free(&tree->names);
    lapse_map_free(&tree->children);
    free(tree->nodes);
    *tree = (struct lapse_line_tree){ 0 };
}
