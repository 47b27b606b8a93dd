/* SPDX-License-Identifier: MIT */
/* The call tree by function. Samples are first added up in cells (group and leaf), then each cell's
 * path is walked once; totals go from the leaves up. Called by report, diff and the writers that draw.
 * Cost grows with nodes and cells, not with samples. Offline only. */
#include "view.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "index.h"

#define NAME_BYTES 4096

struct cell { uint32_t group, leaf; uint64_t count, weight_ns; double squares; };

/* What a view needs while it is built, and the names it made up. */
struct lapse_view_source {
    struct lapse_profile *profile;
    const struct lapse_view_options *options;
    struct lapse_strings names; /* of group frames; group g of the cells is number g - 1 */
    struct lapse_map function_of_name;
    struct lapse_map children;  /* parent and function -> node */
    struct lapse_map placed;    /* group and profile node -> node, when grouped */
    struct lapse_map groups;    /* thread and label set -> group */
    struct lapse_map cell_of;   /* group and leaf -> cell */
    struct cell *cells;
    uint32_t cell_count;
    bool *wanted_threads;
    double *squares; /* of the samples at and below each node */
    uint32_t *path;
    uint32_t path_capacity;
};

static bool has_filter(const struct lapse_view_options *options)
{
    return options->threads || options->from_ns || options->until_ns || options->label_key;
}

static bool has_groups(const struct lapse_view_options *options)
{
    return options->group_by_thread || options->group_by_process || options->group_by_label;
}

static const char *label_of(const struct lapse_profile *profile, uint32_t set, const char *key)
{
    const struct lapse_profile_label_set *labels = &profile->label_sets[set];
    for (uint32_t i = labels->count; i-- > 0;) /* of equal keys the innermost counts */
        if (!strcmp(labels->labels[i].key, key))
            return labels->labels[i].value;
    return NULL;
}

static bool is_wanted(const struct lapse_view_source *source,
                      const struct lapse_profile_sample *sample)
{
    const struct lapse_view_options *options = source->options;
    if (source->wanted_threads && !source->wanted_threads[sample->thread])
        return false;
    if (sample->time_ns < options->from_ns ||
        (options->until_ns && sample->time_ns >= options->until_ns))
        return false;
    if (!options->label_key)
        return true;
    const char *value = label_of(source->profile, sample->labels, options->label_key);
    return value && (!options->label_value || !strcmp(value, options->label_value));
}

/* 0 is no group; LAPSE_NONE without memory. */
static uint32_t group_of(struct lapse_view_source *source,
                         const struct lapse_profile_sample *sample)
{
    const struct lapse_profile_thread *thread = &source->profile->threads[sample->thread];
    const struct lapse_profile_process *process = &source->profile->processes[thread->process];
    const struct lapse_view_options *options = source->options;
    uint64_t key = (uint64_t)sample->thread << 32 | sample->labels;
    uint32_t group;
    char name[NAME_BYTES] = "";
    if (!has_groups(options))
        return 0;
    if (lapse_map_get(&source->groups, key, &group))
        return group;
    if (options->group_by_label) {
        const char *value = label_of(source->profile, sample->labels, options->group_by_label);
        snprintf(name, sizeof name, "[%.1000s=%.2000s]", options->group_by_label,
                 value ? value : "");
    } else if (options->group_by_thread) {
        snprintf(name, sizeof name, "[%.3000s tid=%u]",
                 *thread->name ? thread->name : process->name, thread->tid);
    } else {
        snprintf(name, sizeof name, "[%.3000s pid=%u]", process->name, process->pid);
    }
    group = lapse_strings_number(&source->names, name, strlen(name));
    if (group == LAPSE_INDEX_NONE || lapse_map_put(&source->groups, key, group + 1))
        return LAPSE_NONE;
    return group + 1;
}

static struct cell *add_cell(struct lapse_view_source *source, uint32_t group, uint32_t leaf)
{
    struct cell *cells = lapse_array_grow(source->cells, source->cell_count, sizeof *cells);
    if (!cells)
        return NULL;
    source->cells = cells;
    cells[source->cell_count] = (struct cell){ .group = group, .leaf = leaf };
    return &cells[source->cell_count++];
}

static int add_sample(void *context, const struct lapse_profile_sample *sample)
{
    struct lapse_view_source *source = context;
    uint32_t number;
    if (!is_wanted(source, sample))
        return 0;
    uint32_t group = group_of(source, sample);
    uint64_t key = (uint64_t)group << 32 | sample->leaf;
    if (group == LAPSE_NONE)
        return -ENOMEM;
    if (!lapse_map_get(&source->cell_of, key, &number)) {
        number = source->cell_count;
        if (!add_cell(source, group, sample->leaf) || lapse_map_put(&source->cell_of, key, number))
            return -ENOMEM;
    }
    source->cells[number].count++;
    source->cells[number].weight_ns += sample->weight_ns;
    source->cells[number].squares += (double)sample->weight_ns * (double)sample->weight_ns;
    return 0;
}

static int collect_cells(struct lapse_view_source *source)
{
    struct lapse_profile *profile = source->profile;
    const struct lapse_view_options *options = source->options;
    if (!has_filter(options) && !has_groups(options)) {
        for (uint32_t i = 0; i < profile->leaf_count; i++) {
            const struct lapse_profile_leaf *leaf = &profile->leaves[i];
            struct cell *cell = leaf->count ? add_cell(source, 0, i) : NULL;
            if (leaf->count && !cell)
                return -ENOMEM;
            if (cell)
                *cell = (struct cell){ 0, i, leaf->count, leaf->weight_ns, leaf->squares };
        }
        return 0;
    }
    if (options->threads) {
        source->wanted_threads = calloc(profile->thread_count + 1, 1);
        if (!source->wanted_threads)
            return -ENOMEM;
        for (uint32_t i = 0; i < options->thread_count; i++)
            if (options->threads[i] < profile->thread_count)
                source->wanted_threads[options->threads[i]] = true;
    }
    return lapse_profile_each_sample(profile, add_sample, source);
}

/* Function of the view by name. The strings of a set are unique, so the pointer is the name. */
static uint32_t view_function(struct lapse_view *view, const char *name, uint32_t function)
{
    struct lapse_view_source *source = view->source;
    uint32_t number;
    if (lapse_map_get(&source->function_of_name, (uintptr_t)name, &number))
        return number;
    struct lapse_view_function *functions = lapse_array_grow(view->functions, view->function_count,
                                                             sizeof *functions);
    if (!functions ||
        lapse_map_put(&source->function_of_name, (uintptr_t)name, view->function_count))
        return LAPSE_NONE;
    view->functions = functions;
    functions[view->function_count] =
        (struct lapse_view_function){ .function = function, .name = name };
    return view->function_count++;
}

static uint32_t view_child(struct lapse_view *view, uint32_t parent, uint32_t function,
                           uint32_t flags)
{
    struct lapse_view_source *source = view->source;
    uint64_t key = (uint64_t)parent << 32 | function;
    uint32_t number;
    if (function == LAPSE_NONE)
        return LAPSE_NONE;
    if (source->options->collapse_recursion && parent && view->nodes[parent].function == function)
        return parent;
    if (lapse_map_get(&source->children, key, &number)) {
        view->nodes[number].flags &= flags;
        return number;
    }
    struct lapse_view_node *nodes = lapse_array_grow(view->nodes, view->node_count, sizeof *nodes);
    if (!nodes || lapse_map_put(&source->children, key, view->node_count))
        return LAPSE_NONE;
    view->nodes = nodes;
    nodes[view->node_count] = (struct lapse_view_node){
        .parent = parent,
        .function = function,
        .first_child = LAPSE_NONE,
        .next_sibling = LAPSE_NONE,
        .depth = parent == LAPSE_NONE ? 0 : nodes[parent].depth + 1,
        .flags = flags,
    };
    return view->node_count++;
}

static uint32_t child_for(struct lapse_view *view, uint32_t parent,
                          const struct lapse_profile_node *node)
{
    const char *name = view->source->profile->functions[node->function].name;
    return view_child(view, parent, view_function(view, name, node->function), node->flags);
}

static uint32_t group_node(struct lapse_view *view, uint32_t group)
{
    if (!group)
        return 0;
    return view_child(view, 0,
                      view_function(view, view->source->names.texts[group - 1], LAPSE_NONE), 0);
}

static bool get_placed(const struct lapse_view *view, uint32_t group, uint32_t node,
                       uint32_t *number)
{
    if (!view->node_of_profile_node)
        return lapse_map_get(&view->source->placed, (uint64_t)group << 32 | node, number);
    *number = view->node_of_profile_node[node];
    return *number != LAPSE_NONE;
}

static int set_placed(struct lapse_view *view, uint32_t group, uint32_t node, uint32_t number)
{
    if (!view->node_of_profile_node)
        return lapse_map_put(&view->source->placed, (uint64_t)group << 32 | node, number);
    view->node_of_profile_node[node] = number;
    return 0;
}

static int reserve_path(struct lapse_view_source *source, uint32_t depth)
{
    if (depth < source->path_capacity)
        return 0;
    uint32_t *path = realloc(source->path, 2 * (size_t)(depth + 1) * sizeof *path);
    if (!path)
        return -ENOMEM;
    source->path = path;
    source->path_capacity = 2 * (depth + 1);
    return 0;
}

/* Root first: go up to the first node that has its place, then down again. */
static uint32_t place(struct lapse_view *view, uint32_t group, uint32_t node)
{
    const struct lapse_profile_node *nodes = view->source->profile->nodes;
    uint32_t depth = 0, number = 0;
    if (reserve_path(view->source, nodes[node].depth))
        return LAPSE_NONE;
    for (; node; node = nodes[node].parent) {
        if (get_placed(view, group, node, &number))
            break;
        view->source->path[depth++] = node;
    }
    if (!node)
        number = group_node(view, group);
    while (depth-- > 0 && number != LAPSE_NONE) {
        node = view->source->path[depth];
        number = child_for(view, number, &nodes[node]);
        if (number != LAPSE_NONE && set_placed(view, group, node, number))
            return LAPSE_NONE;
    }
    return number;
}

/* Leaf first. */
static uint32_t place_inverted(struct lapse_view *view, uint32_t group, uint32_t node)
{
    const struct lapse_profile_node *nodes = view->source->profile->nodes;
    uint32_t number = group_node(view, group);
    for (; node && number != LAPSE_NONE; node = nodes[node].parent)
        number = child_for(view, number, &nodes[node]);
    return number;
}

static void add_self(struct lapse_view *view, const struct cell *cell, uint32_t number)
{
    const struct lapse_profile *profile = view->source->profile;
    uint32_t leaf_node = profile->leaves[cell->leaf].node, function = LAPSE_NONE;
    struct lapse_view_node *node = &view->nodes[number];
    node->self_count += cell->count;
    node->self_ns += cell->weight_ns;
    view->count += cell->count;
    view->weight_ns += cell->weight_ns;
    view->squares += cell->squares;
    if (leaf_node)
        lapse_map_get(&view->source->function_of_name,
                      (uintptr_t)profile->functions[profile->nodes[leaf_node].function].name,
                      &function);
    if (function == LAPSE_NONE)
        return;
    view->functions[function].self_count += cell->count;
    view->functions[function].self_ns += cell->weight_ns;
    view->functions[function].self_squares += cell->squares;
}

static int place_cells(struct lapse_view *view)
{
    struct lapse_view_source *source = view->source;
    uint32_t *numbers = malloc((source->cell_count + 1) * sizeof *numbers);
    if (!numbers)
        return -ENOMEM;
    int error = 0;
    for (uint32_t i = 0; i < source->cell_count && !error; i++) {
        uint32_t node = source->profile->leaves[source->cells[i].leaf].node;
        numbers[i] = source->options->inverted ? place_inverted(view, source->cells[i].group, node)
                                               : place(view, source->cells[i].group, node);
        error = numbers[i] == LAPSE_NONE ? -ENOMEM : 0;
    }
    if (!error && !(source->squares = calloc(view->node_count, sizeof *source->squares)))
        error = -ENOMEM;
    for (uint32_t i = 0; i < source->cell_count && !error; i++) {
        add_self(view, &source->cells[i], numbers[i]);
        source->squares[numbers[i]] += source->cells[i].squares;
    }
    free(numbers);
    return error;
}

static void sum_totals(struct lapse_view *view)
{
    for (uint32_t i = view->node_count; i-- > 0;) {
        struct lapse_view_node *node = &view->nodes[i], *parent = &view->nodes[node->parent];
        node->total_count += node->self_count;
        node->total_ns += node->self_ns;
        if (!i)
            break;
        parent->total_count += node->total_count;
        parent->total_ns += node->total_ns;
        view->source->squares[node->parent] += view->source->squares[i];
    }
}

static int by_total(const void *a, const void *b, void *context)
{
    const struct lapse_view *view = context;
    const struct lapse_view_node *left = &view->nodes[*(const uint32_t *)a];
    const struct lapse_view_node *right = &view->nodes[*(const uint32_t *)b];
    if (left->total_ns != right->total_ns)
        return left->total_ns > right->total_ns ? -1 : 1;
    return strcmp(view->functions[left->function].name, view->functions[right->function].name);
}

/* Children of one parent side by side, then sorted, then chained. */
static int chain_children(struct lapse_view *view)
{
    uint32_t count = view->node_count;
    uint32_t *starts = calloc(count + 2, sizeof *starts),
             *order = malloc((count + 1) * sizeof *order);
    if (!starts || !order) {
        free(starts);
        free(order);
        return -ENOMEM;
    }
    for (uint32_t i = 1; i < count; i++)
        starts[view->nodes[i].parent + 2]++;
    for (uint32_t i = 2; i <= count; i++)
        starts[i] += starts[i - 1];
    for (uint32_t i = 1; i < count; i++)
        order[starts[view->nodes[i].parent + 1]++] = i;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t first = starts[i], number = starts[i + 1] - first;
        if (number > 1)
            qsort_r(order + first, number, sizeof *order, by_total, view);
        for (uint32_t k = 0; k < number; k++)
            view->nodes[order[first + k]].next_sibling =
                k + 1 < number ? order[first + k + 1] : LAPSE_NONE;
        view->nodes[i].first_child = number ? order[first] : LAPSE_NONE;
    }
    free(starts);
    free(order);
    return 0;
}

static void enter(struct lapse_view *view, struct lapse_view_node *node, uint32_t *open)
{
    struct lapse_view_function *function = &view->functions[node->function];
    node->recursive = open[node->function]++ > 0;
    if (node->recursive) {
        function->recursive = true;
        return;
    }
    function->total_count += node->total_count;
    function->total_ns += node->total_ns;
    function->total_squares += view->source->squares[node - view->nodes];
}

/* Depth first; a function's total is that of its nodes with no node of the same function above. */
static int sum_functions(struct lapse_view *view)
{
    uint32_t *open = calloc(view->function_count + 1, sizeof *open);
    uint32_t at = 0;
    if (!open)
        return -ENOMEM;
    for (;;) {
        uint32_t next = view->nodes[at].first_child;
        while (next == LAPSE_NONE && at) {
            open[view->nodes[at].function]--;
            next = view->nodes[at].next_sibling;
            at = view->nodes[at].parent;
        }
        if (next == LAPSE_NONE)
            break;
        at = next;
        enter(view, &view->nodes[at], open);
    }
    free(open);
    return 0;
}

static int by_self(const void *a, const void *b, void *context)
{
    const struct lapse_view *view = context;
    const struct lapse_view_function *left = &view->functions[*(const uint32_t *)a];
    const struct lapse_view_function *right = &view->functions[*(const uint32_t *)b];
    if (left->self_ns != right->self_ns)
        return left->self_ns > right->self_ns ? -1 : 1;
    if (left->total_ns != right->total_ns)
        return left->total_ns > right->total_ns ? -1 : 1;
    return strcmp(left->name, right->name);
}

static int sort_functions(struct lapse_view *view)
{
    uint32_t count = view->function_count;
    uint32_t *order = malloc((count + 1) * sizeof *order),
             *rank = malloc((count + 1) * sizeof *rank);
    struct lapse_view_function *sorted = malloc((count + 1) * sizeof *sorted);
    if (order && rank && sorted) {
        for (uint32_t i = 0; i < count; i++)
            order[i] = i;
        qsort_r(order, count, sizeof *order, by_self, view);
        for (uint32_t i = 0; i < count; i++) {
            sorted[i] = view->functions[order[i]];
            rank[order[i]] = i;
        }
        for (uint32_t i = 1; i < view->node_count; i++)
            view->nodes[i].function = rank[view->nodes[i].function];
        free(view->functions);
        view->functions = sorted;
    } else {
        free(sorted);
        sorted = NULL;
    }
    free(order);
    free(rank);
    return sorted ? 0 : -ENOMEM;
}

static void free_scratch(struct lapse_view_source *source)
{
    lapse_map_free(&source->function_of_name);
    lapse_map_free(&source->children);
    lapse_map_free(&source->placed);
    lapse_map_free(&source->groups);
    lapse_map_free(&source->cell_of);
    free(source->cells);
    free(source->wanted_threads);
    free(source->squares);
    free(source->path);
    source->cells = NULL;
    source->wanted_threads = NULL;
    source->squares = NULL;
    source->path = NULL;
}

static int build(struct lapse_view *view)
{
    struct lapse_view_source *source = view->source;
    uint32_t nodes = source->profile->node_count;
    int error = collect_cells(source);
    if (error)
        return error;
    if (!(view->nodes = lapse_array_grow(NULL, 0, sizeof *view->nodes)))
        return -ENOMEM;
    view->nodes[view->node_count++] = (struct lapse_view_node){
        .function = LAPSE_NONE, .first_child = LAPSE_NONE, .next_sibling = LAPSE_NONE,
    };
    if (!source->options->inverted && !has_groups(source->options)) {
        view->node_of_profile_node = malloc(nodes * sizeof *view->node_of_profile_node);
        if (!view->node_of_profile_node)
            return -ENOMEM;
        memset(view->node_of_profile_node, 0xff, nodes * sizeof *view->node_of_profile_node);
        view->node_of_profile_node[0] = 0;
    }
    error = place_cells(view);
    if (error)
        return error;
    sum_totals(view);
    error = chain_children(view);
    if (!error)
        error = sum_functions(view);
    return error ? error : sort_functions(view);
}

int lapse_view_create(struct lapse_view **out, struct lapse_profile *profile,
                      const struct lapse_view_options *options)
{
    static const struct lapse_view_options defaults;
    struct lapse_view *view = calloc(1, sizeof *view);
    *out = NULL;
    if (!view || !(view->source = calloc(1, sizeof *view->source))) {
        free(view);
        return -ENOMEM;
    }
    view->source->profile = profile;
    view->source->options = options ? options : &defaults;
    int error = build(view);
    free_scratch(view->source);
    view->source->options = NULL; /* the caller's, for as long as this call */
    if (error)
        lapse_view_destroy(view);
    else
        *out = view;
    return error;
}

void lapse_view_destroy(struct lapse_view *view)
{
    if (!view)
        return;
    lapse_strings_free(&view->source->names);
    free(view->source);
    free(view->nodes);
    free(view->functions);
    free(view->node_of_profile_node);
    free(view);
}
