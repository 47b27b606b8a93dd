/* SPDX-License-Identifier: MIT */
/* Call trees as text, TSV and nested JSON: the whole, or what is around one function. Around a function
 * each sample counts once, at its outermost call of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "index.h"
#include "report.h"

#define INDENT_MAX 60u /* deeper calls say their depth in digits */

struct tree_node {
    uint32_t parent, function, first_child, next_sibling, depth, flags;
    uint64_t self, total;
};

struct tree {
    const struct lapse_table *table;
    struct tree_node *nodes;
    uint32_t count;
    struct lapse_map children; /* parent and function -> node */
};

static uint32_t add_node(struct tree *tree, uint32_t parent, uint32_t function, uint32_t flags)
{
    uint64_t key = (uint64_t)parent << 32 | function;
    uint32_t number;
    if (tree->count && lapse_map_get(&tree->children, key, &number)) {
        tree->nodes[number].flags &= flags;
        return number;
    }
    struct tree_node *nodes = lapse_array_grow(tree->nodes, tree->count, sizeof *nodes);
    if (!nodes || (tree->count && lapse_map_put(&tree->children, key, tree->count)))
        return LAPSE_NONE;
    tree->nodes = nodes;
    nodes[tree->count] = (struct tree_node){
        .parent = parent, .function = function, .flags = flags, .first_child = LAPSE_NONE,
        .next_sibling = LAPSE_NONE, .depth = tree->count ? nodes[parent].depth + 1 : 0,
    };
    return tree->count++;
}

/* Paths upwards from each outermost call, with the weight of all below it. */
static int build_callers(struct tree *tree, uint32_t function)
{
    const struct lapse_view *view = tree->table->view;
    for (uint32_t i = 1; i < view->node_count; i++) {
        uint32_t at = 0;
        if (view->nodes[i].function != function || view->nodes[i].recursive)
            continue;
        for (uint32_t up = i; up; up = view->nodes[up].parent) {
            at = add_node(tree, at, view->nodes[up].function, up == i ? 0 : view->nodes[up].flags);
            if (at == LAPSE_NONE)
                return -ENOMEM;
            tree->nodes[at].total += view->nodes[i].total_ns;
        }
        tree->nodes[at].self += view->nodes[i].total_ns;
        tree->nodes[0].total += view->nodes[i].total_ns;
    }
    return 0;
}

/* The view's nodes come parents first, so each finds the place of its parent already made. Places of
 * nodes that are not below the function are LAPSE_NONE. */
static int build_below(struct tree *tree, const struct lapse_tree_options *options)
{
    const struct lapse_view *view = tree->table->view;
    uint32_t *places = malloc(view->node_count * sizeof *places);
    bool whole = options->kind == LAPSE_TREE_WHOLE;
    int error = places ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < view->node_count && !error; i++) {
        const struct lapse_view_node *node = &view->nodes[i];
        uint32_t parent = i ? places[node->parent] : LAPSE_NONE;
        bool starts = !whole && i && node->function == options->function && !node->recursive;
        places[i] = i ? LAPSE_NONE : whole ? 0 : LAPSE_NONE;
        if (parent == LAPSE_NONE && !starts)
            continue;
        places[i] = add_node(tree, starts ? 0 : parent, node->function, node->flags);
        if (places[i] == LAPSE_NONE) {
            error = -ENOMEM;
            break;
        }
        tree->nodes[places[i]].self += node->self_ns;
        tree->nodes[places[i]].total += node->total_ns;
        if (starts || (whole && !node->parent))
            tree->nodes[0].total += node->total_ns;
    }
    free(places);
    return error;
}

static int by_place(const void *a, const void *b, void *context)
{
    const struct tree *tree = context;
    const struct tree_node *left = &tree->nodes[*(const uint32_t *)a];
    const struct tree_node *right = &tree->nodes[*(const uint32_t *)b];
    if (left->parent != right->parent)
        return left->parent < right->parent ? -1 : 1;
    if (left->total != right->total)
        return left->total > right->total ? -1 : 1;
    return strcmp(tree->table->view->functions[left->function].name,
                  tree->table->view->functions[right->function].name);
}

static int chain(struct tree *tree)
{
    uint32_t *order = malloc((tree->count + 1) * sizeof *order);
    if (!order)
        return -ENOMEM;
    for (uint32_t i = 1; i < tree->count; i++)
        order[i - 1] = i;
    qsort_r(order, tree->count - 1, sizeof *order, by_place, tree);
    for (uint32_t i = tree->count - 1; i-- > 0;) {
        struct tree_node *node = &tree->nodes[order[i]];
        node->next_sibling = tree->nodes[node->parent].first_child;
        tree->nodes[node->parent].first_child = order[i];
    }
    free(order);
    return 0;
}

static void write_text(const struct tree *tree, const struct tree_node *node)
{
    const struct lapse_table *table = tree->table;
    const struct lapse_view_function *function = &table->view->functions[node->function];
    const char *module = lapse_table_module(table->profile, function->function);
    double whole = table->view->weight_ns ? (double)table->view->weight_ns : 1;
    uint32_t indent = node->depth - 1 < INDENT_MAX ? node->depth - 1 : INDENT_MAX;
    fprintf(table->to, "%6.2f %% %6.2f %%  %*s", 100 * (double)node->total / whole,
            100 * (double)node->self / whole, (int)indent, "");
    if (node->depth - 1 > INDENT_MAX)
        fprintf(table->to, "(%u) ", node->depth);
    lapse_table_name(table->to, LAPSE_FORM_TEXT, function->name);
    fputs(node->flags & LAPSE_NODE_INLINED ? " (inlined)" : "", table->to);
    if (*module && strncmp(function->name, module, strlen(module))) {
        fputs(table->colour ? "  \033[2m[" : "  [", table->to);
        lapse_table_name(table->to, LAPSE_FORM_TEXT, module);
        fputs(table->colour ? "]\033[0m" : "]", table->to);
    }
    fputc('\n', table->to);
}

static void write_tsv(const struct tree *tree, const struct tree_node *node)
{
    const struct lapse_table *table = tree->table;
    const struct lapse_view_function *function = &table->view->functions[node->function];
    double whole = table->view->weight_ns ? (double)table->view->weight_ns : 1;
    fprintf(table->to, "%u\t", node->depth);
    lapse_table_name(table->to, LAPSE_FORM_TSV, function->name);
    fputc('\t', table->to);
    lapse_table_name(table->to, LAPSE_FORM_TSV,
                     lapse_table_module(table->profile, function->function));
    fprintf(table->to, "\t%.6f\t%.6f\t%" PRIu64 "\t%" PRIu64 "\n", (double)node->total / whole,
            (double)node->self / whole, node->total, node->self);
}

static void open_json(const struct tree *tree, const struct tree_node *node, bool first)
{
    const struct lapse_table *table = tree->table;
    fputs(first ? "{\"function\":" : ",\n{\"function\":", table->to);
    lapse_table_name(table->to, LAPSE_FORM_JSON, table->view->functions[node->function].name);
    fprintf(table->to, ",\"total\":%" PRIu64 ",\"self\":%" PRIu64 ",\"children\":[", node->total,
            node->self);
}

/* Depth first, without recursion: stacks can be deeper than ours. */
static void write_nodes(const struct tree *tree, double minimum)
{
    const struct lapse_table *table = tree->table;
    double least = minimum * (double)table->view->weight_ns;
    uint32_t at = 0, next = tree->nodes[0].first_child, hidden = 0;
    bool json = table->form == LAPSE_FORM_JSON, first = true;
    for (;;) {
        while (next != LAPSE_NONE && (double)tree->nodes[next].total < least) {
            next = tree->nodes[next].next_sibling; /* sorted: the rest is no larger */
            hidden++;
        }
        if (next == LAPSE_NONE && !at)
            break;
        if (next == LAPSE_NONE) {
            fputs(json ? "]}" : "", table->to);
            first = false;
            next = tree->nodes[at].next_sibling;
            at = tree->nodes[at].parent;
            continue;
        }
        at = next;
        if (json)
            open_json(tree, &tree->nodes[at], first);
        else if (table->form == LAPSE_FORM_TSV)
            write_tsv(tree, &tree->nodes[at]);
        else
            write_text(tree, &tree->nodes[at]);
        first = true;
        next = tree->nodes[at].first_child;
    }
    if (hidden && table->form == LAPSE_FORM_TEXT)
        fprintf(table->to, "  ... %u calls below %.2f %% (--minimum=0 shows all)\n", hidden,
                100 * minimum);
}

int lapse_report_tree(const struct lapse_table *table, const struct lapse_tree_options *options)
{
    struct tree tree = { .table = table };
    int error = add_node(&tree, 0, LAPSE_NONE, 0) == LAPSE_NONE ? -ENOMEM : 0;
    if (!error)
        error = options->kind == LAPSE_TREE_CALLERS ? build_callers(&tree, options->function)
                                                    : build_below(&tree, options);
    if (!error)
        error = chain(&tree);
    if (!error) {
        if (table->form == LAPSE_FORM_TEXT)
            fputs("   total      self  function\n", table->to);
        else if (table->form == LAPSE_FORM_TSV)
            fputs("depth\tfunction\tmodule\ttotal\tself\ttotal_weight\tself_weight\n", table->to);
        else
            fprintf(table->to, "{\"weight\":%" PRIu64 ",\"children\":[", table->view->weight_ns);
        write_nodes(&tree, options->minimum);
        fputs(table->form == LAPSE_FORM_JSON ? "]}\n" : "", table->to);
    }
    lapse_map_free(&tree.children);
    free(tree.nodes);
    return error;
}
