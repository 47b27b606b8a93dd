/* SPDX-License-Identifier: MIT */
/* Builds the merged tree of two sides with one column of sums per run, then compares column means. */
#include "comparison.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "distributions.h"
#include "estimate.h"
#include "index.h"
#include "run_sums.h"

struct lapse_comparison_tables {
    struct lapse_strings names;
    struct lapse_map children; /* (parent, name) to node */
    uint32_t *node_names;
    struct lapse_run_sums base, new;
    char **paths;
    uint32_t path_count;
};

/* ---- the merged tree ---- */

/* Node of that name under a parent, made when it is not there; 0 without memory. */
static uint32_t node_of(struct lapse_comparison *c, uint32_t parent, uint32_t name)
{
    struct lapse_comparison_tables *t = c->tables;
    uint64_t key = (uint64_t)parent << 32 | name;
    uint32_t node;
    if (lapse_map_get(&t->children, key, &node))
        return node;
    void *nodes = lapse_array_grow(c->nodes, c->node_count, sizeof *c->nodes);
    c->nodes = nodes ? nodes : c->nodes;
    void *names = lapse_array_grow(t->node_names, c->node_count, sizeof *t->node_names);
    t->node_names = names ? names : t->node_names;
    if (!nodes || !names || lapse_map_put(&t->children, key, c->node_count))
        return 0;
    c->nodes[c->node_count] = (struct lapse_comparison_node){
        .parent = parent, .name = t->names.texts[name], .change = LAPSE_NONE };
    t->node_names[c->node_count] = name;
    return c->node_count++;
}

/* Merged node of each node of a profile, or NULL without memory. */
static uint32_t *map_nodes(struct lapse_comparison *c, const struct lapse_profile *profile)
{
    uint32_t *map = calloc(profile->node_count + 1, sizeof *map);
    uint32_t *names = calloc(profile->function_count + 1, sizeof *names);
    bool whole = map && names;
    for (uint32_t i = 0; whole && i < profile->function_count; i++) {
        const char *name = profile->functions[i].name;
        names[i] = lapse_strings_number(&c->tables->names, name, strlen(name));
        whole = names[i] != LAPSE_INDEX_NONE;
    }
    for (uint32_t i = 1; whole && i < profile->node_count; i++) {
        const struct lapse_profile_node *node = &profile->nodes[i];
        map[i] = node_of(c, map[node->parent], names[node->function]);
        whole = map[i] != 0;
    }
    free(names);
    if (!whole) {
        free(map);
        return NULL;
    }
    return map;
}

/* ---- functions and paths ---- */

/* By name number: a function itself, and with what it calls; by node: it and everything under it. */
struct function_sums { struct lapse_run_cell *self, *total, *below; };

static void add_cells(struct lapse_run_cell *to, const struct lapse_run_cell *from, uint32_t columns)
{
    for (uint32_t i = 0; i < columns; i++) {
        to[i].weight += from[i].weight;
        to[i].squares += from[i].squares;
        to[i].count += from[i].count;
    }
}

/* Is the function of a node above it as well? Then its samples are counted up there. By one walk through the tree
 * that knows how often each function is open: stacks can be very deep. Returns a flag for each node, or NULL. */
static bool *find_recursive(const struct lapse_comparison *c)
{
    const uint32_t *names = c->tables->node_names;
    size_t nodes = c->node_count + (size_t)1;
    bool *recursive = calloc(nodes, sizeof *recursive);
    uint32_t *rest = calloc(2 * nodes + c->tables->names.count, sizeof *rest);
    if (!recursive || !rest) {
        free(recursive);
        free(rest);
        return NULL;
    }
    uint32_t *next = rest + nodes, *open = next + nodes; /* rest: the first child not yet walked */
    for (uint32_t i = c->node_count; i-- > 1;) {
        next[i] = rest[c->nodes[i].parent];
        rest[c->nodes[i].parent] = i;
    }
    for (uint32_t node = 0, child; (child = rest[node]) || node;) {
        if (child) {
            rest[node] = next[child];
            recursive[child] = open[names[child]]++ > 0;
            node = child;
        } else {
            open[names[node]]--;
            node = c->nodes[node].parent;
        }
    }
    free(rest);
    return recursive;
}

/* Sums per function (by name number) of one side, and the totals of the merged tree. */
static int sum_functions(struct lapse_comparison *c, const struct lapse_run_sums *side,
                         struct function_sums *sums, bool is_base)
{
    uint32_t columns = side->columns, names = c->tables->names.count;
    size_t cells = (size_t)columns * sizeof(struct lapse_run_cell);
    struct lapse_run_cell *below = sums->below = malloc(c->node_count * cells + 1);
    sums->self = calloc((size_t)names * columns + 1, sizeof(struct lapse_run_cell));
    sums->total = calloc((size_t)names * columns + 1, sizeof(struct lapse_run_cell));
    bool *recursive = find_recursive(c);
    if (!below || !sums->self || !sums->total || !recursive) {
        free(recursive);
        return -ENOMEM;
    }
    memcpy(below, side->self, c->node_count * cells);
    for (uint32_t i = c->node_count; i-- > 1;) {
        uint32_t name = c->tables->node_names[i], parent = c->nodes[i].parent;
        add_cells(sums->self + (size_t)name * columns, side->self + (size_t)i * columns, columns);
        if (!recursive[i])
            add_cells(sums->total + (size_t)name * columns, below + (size_t)i * columns, columns);
        add_cells(below + (size_t)parent * columns, below + (size_t)i * columns, columns);
    }
    free(recursive);
    for (uint32_t i = 0; i < c->node_count; i++)
        for (uint32_t column = 0; column < columns; column++)
            *(is_base ? &c->nodes[i].base_ns : &c->nodes[i].new_ns) +=
                below[(size_t)i * columns + column].weight * side->scale[column] / columns;
    return 0;
}

static char *path_text(const struct lapse_comparison *c, uint32_t node)
{
    size_t size = 1;
    for (uint32_t i = node; i; i = c->nodes[i].parent)
        size += strlen(c->nodes[i].name) + 1;
    char *text = malloc(size), *end = text ? text + size - 1 : NULL;
    if (!text)
        return NULL;
    *end = '\0';
    for (uint32_t i = node; i; i = c->nodes[i].parent) {
        size_t length = strlen(c->nodes[i].name);
        if (*end)
            *--end = ';';
        memcpy(end -= length, c->nodes[i].name, length);
    }
    memmove(text, end, strlen(end) + 1);
    return text;
}

/* Nothing where nothing was sampled. A call path (name NULL) gets its text only then: the paths of a deep
 * stack are as many as it is deep. */
static int add_change(struct lapse_comparison *c, enum lapse_change_kind kind, const char *name, uint32_t node,
                      const struct lapse_run_cell *base, const struct lapse_run_cell *new)
{
    struct lapse_comparison_tables *t = c->tables;
    struct lapse_change change = { .kind = kind, .name = name, .node = node };
    change.base = lapse_run_estimate(&t->base, base, c->exact_totals);
    change.new = lapse_run_estimate(&t->new, new, c->exact_totals);
    if (!change.base.samples && !change.new.samples)
        return 0;
    if (!name && !(change.name = t->paths[t->path_count++] = path_text(c, node)))
        return -ENOMEM;
    lapse_change_compare(&change, c->level);
    c->changes[c->change_count++] = change;
    return 0;
}

/* Every call path with what is called from it. */
static int compare_calls(struct lapse_comparison *c, const struct function_sums *base, const struct function_sums *new)
{
    const struct lapse_comparison_tables *t = c->tables;
    c->calls = calloc(c->node_count, sizeof *c->calls);
    if (!c->calls)
        return -ENOMEM;
    for (uint32_t i = 0; i < c->node_count; i++) {
        c->calls[i] = (struct lapse_change){ .kind = LAPSE_CHANGE_PATH, .name = c->nodes[i].name, .node = i };
        c->calls[i].base = lapse_run_estimate(&t->base, base->below + (size_t)i * t->base.columns, c->exact_totals);
        c->calls[i].new = lapse_run_estimate(&t->new, new->below + (size_t)i * t->new.columns, c->exact_totals);
        lapse_change_compare(&c->calls[i], c->level);
    }
    return 0;
}

static int add_changes(struct lapse_comparison *c, const struct function_sums *base, const struct function_sums *new)
{
    struct lapse_comparison_tables *t = c->tables;
    c->changes = calloc(2 * (size_t)t->names.count + c->node_count + 1, sizeof *c->changes);
    t->paths = calloc(c->node_count + 1, sizeof *t->paths);
    if (!c->changes || !t->paths)
        return -ENOMEM;
    for (uint32_t i = 0; i < t->names.count; i++) {
        size_t b = (size_t)i * t->base.columns, n = (size_t)i * t->new.columns;
        add_change(c, LAPSE_CHANGE_SELF, t->names.texts[i], 0, base->self + b, new->self + n);
        add_change(c, LAPSE_CHANGE_CUMULATIVE, t->names.texts[i], 0, base->total + b, new->total + n);
    }
    for (uint32_t i = 1; i < c->node_count; i++)
        if (add_change(c, LAPSE_CHANGE_PATH, NULL, i, t->base.self + (size_t)i * t->base.columns,
                       t->new.self + (size_t)i * t->new.columns))
            return -ENOMEM;
    return 0;
}

static enum lapse_verdict verdict(const struct lapse_change *change, double alpha, uint64_t min_samples)
{
    if (change->base.samples + change->new.samples < min_samples)
        return LAPSE_TOO_FEW;
    if (change->adjusted_p <= alpha) {
        if (change->difference_ns > 0)
            return change->base.samples ? LAPSE_SLOWER : LAPSE_APPEARED;
        return change->new.samples ? LAPSE_FASTER : LAPSE_VANISHED;
    }
    return change->share_p <= alpha ? LAPSE_SHARE_ONLY : LAPSE_SAME;
}

/* Correct the p-values of one kind for the number of things tested, and judge. */
static int judge(struct lapse_comparison *c, struct lapse_change *changes, uint32_t count, uint64_t min_samples)
{
    double *p = calloc(2 * (size_t)count + 1, sizeof *p), *share_p = p + count;
    unsigned *order = calloc(count + 1, sizeof *order), tested = 0;
    if (!p || !order) {
        free(p);
        free(order);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++)
        if (changes[i].base.samples + changes[i].new.samples >= min_samples) {
            p[tested] = changes[i].p;
            share_p[tested++] = changes[i].share_p;
        }
    lapse_adjust_p_values(p, order, tested);
    lapse_adjust_p_values(share_p, order, tested);
    tested = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (changes[i].base.samples + changes[i].new.samples >= min_samples) {
            changes[i].adjusted_p = p[tested];
            changes[i].share_p = share_p[tested++];
        }
        changes[i].verdict = verdict(&changes[i], 1 - c->level, min_samples);
    }
    free(p);
    free(order);
    return 0;
}

static int by_kind_and_size(const void *a, const void *b)
{
    const struct lapse_change *x = a, *y = b;
    double dx = fabs(x->difference_ns), dy = fabs(y->difference_ns);
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (dx != dy)
        return dx > dy ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int judge_all(struct lapse_comparison *c, uint64_t min_samples)
{
    if (c->change_count)
        qsort(c->changes, c->change_count, sizeof *c->changes, by_kind_and_size);
    for (uint32_t first = 0, end; first < c->change_count; first = end) {
        for (end = first; end < c->change_count && c->changes[end].kind == c->changes[first].kind;)
            end++;
        int result = judge(c, c->changes + first, end - first, min_samples);
        if (result)
            return result;
    }
    for (uint32_t i = 0; i < c->change_count; i++)
        if (c->changes[i].kind == LAPSE_CHANGE_PATH)
            c->nodes[c->changes[i].node].change = i;
    c->total = (struct lapse_change){ .kind = LAPSE_CHANGE_TOTAL, .name = "total",
        .base = lapse_run_estimate(&c->tables->base, NULL, c->exact_totals),
        .new = lapse_run_estimate(&c->tables->new, NULL, c->exact_totals) };
    lapse_change_compare(&c->total, c->level);
    c->total.share_p = 1;
    c->total.verdict = verdict(&c->total, 1 - c->level, min_samples);
    c->calls[0] = c->total;
    return judge(c, c->calls + 1, c->node_count - 1, min_samples);
}

/* ---- making ---- */

static int open_tables(struct lapse_comparison *c)
{
    struct lapse_comparison_tables *t = c->tables = calloc(1, sizeof *c->tables);
    if (!t)
        return -ENOMEM;
    c->nodes = lapse_array_grow(NULL, 0, sizeof *c->nodes);
    t->node_names = lapse_array_grow(NULL, 0, sizeof *t->node_names);
    if (!c->nodes || !t->node_names)
        return -ENOMEM;
    t->node_names[0] = LAPSE_INDEX_NONE;
    c->nodes[c->node_count++] = (struct lapse_comparison_node){ .name = "", .change = LAPSE_NONE };
    return 0;
}

/* Both sides through the merged tree. */
static int fill(struct lapse_comparison *c, const struct lapse_comparison_options *options)
{
    struct lapse_comparison_tables *t = c->tables;
    uint32_t blocks = options && options->blocks ? options->blocks : 20, inputs = t->base.input_count + t->new.input_count;
    uint64_t min_samples = options && options->min_samples ? options->min_samples : 10;
    struct function_sums base = { 0 }, new = { 0 };
    uint32_t **maps = calloc(inputs + 1, sizeof *maps);
    int result = maps ? 0 : -ENOMEM;
    for (uint32_t i = 0; !result && i < inputs; i++) {
        const struct lapse_run_sums *side = i < t->base.input_count ? &t->base : &t->new;
        maps[i] = map_nodes(c, side->inputs[side == &t->base ? i : i - t->base.input_count].profile);
        result = maps[i] ? 0 : -ENOMEM;
    }
    if (!result)
        result = lapse_run_sums_fill(&t->base, maps, c->node_count, blocks);
    if (!result)
        result = lapse_run_sums_fill(&t->new, maps + t->base.input_count, c->node_count, blocks);
    if (!result)
        result = sum_functions(c, &t->base, &base, true);
    if (!result)
        result = sum_functions(c, &t->new, &new, false);
    if (!result)
        result = add_changes(c, &base, &new);
    if (!result)
        result = compare_calls(c, &base, &new);
    if (!result)
        result = judge_all(c, min_samples);
    struct lapse_run_cell *sums[] = { base.self, base.total, base.below, new.self, new.total, new.below };
    for (unsigned i = 0; i < sizeof sums / sizeof *sums; i++)
        free(sums[i]);
    for (uint32_t i = 0; maps && i < inputs; i++)
        free(maps[i]);
    free(maps);
    return result;
}

static int build(struct lapse_comparison *c, const struct lapse_comparison_options *options, char *error, size_t size)
{
    struct lapse_comparison_tables *t = c->tables;
    int result = lapse_run_sums_count(&t->base);
    if (!result)
        result = lapse_run_sums_count(&t->new);
    if (result)
        return result;
    if (!t->base.run_count || !t->new.run_count) {
        snprintf(error, size, "no run of the %s side in the recording", t->base.run_count ? "new" : "base");
        return -EINVAL;
    }
    /* Exact on one side only would compare two different things. */
    c->exact_totals = lapse_run_sums_know_totals(&t->base) && lapse_run_sums_know_totals(&t->new);
    if (!c->exact_totals) {
        lapse_run_sums_forget_totals(&t->base);
        lapse_run_sums_forget_totals(&t->new);
    }
    result = fill(c, options);
    c->base_runs = t->base.run_count;
    c->new_runs = t->new.run_count;
    c->base_blocks = t->base.blocks;
    c->new_blocks = t->new.blocks;
    return result;
}

int lapse_comparison_create(struct lapse_comparison **comparison,
                            const struct lapse_comparison_input *base, uint32_t base_count,
                            const struct lapse_comparison_input *new, uint32_t new_count,
                            const struct lapse_comparison_options *options, char *error, size_t size)
{
    struct lapse_comparison *c = calloc(1, sizeof *c);
    int result = c ? open_tables(c) : -ENOMEM;
    if (!result) {
        c->level = options && options->level > 0 ? options->level : 0.95;
        c->tables->base = (struct lapse_run_sums){ .inputs = base, .input_count = base_count };
        c->tables->new = (struct lapse_run_sums){ .inputs = new, .input_count = new_count };
        for (uint32_t i = 0; i < base_count; i++)
            c->counts |= base[i].profile->weight_unit == LAPSE_WEIGHT_COUNT;
        result = build(c, options, error, size);
    }
    if (result == -ENOMEM)
        snprintf(error, size, "not enough memory");
    if (result) {
        lapse_comparison_destroy(c);
        c = NULL;
    }
    *comparison = c;
    return result;
}

void lapse_comparison_destroy(struct lapse_comparison *c)
{
    if (!c)
        return;
    struct lapse_comparison_tables *t = c->tables;
    if (t) {
        lapse_run_sums_fini(&t->base);
        lapse_run_sums_fini(&t->new);
        for (uint32_t i = 0; i < t->path_count; i++)
            free(t->paths[i]);
        free(t->paths);
        free(t->node_names);
        lapse_strings_free(&t->names);
        lapse_map_free(&t->children);
        free(t);
    }
    free(c->nodes);
    free(c->changes);
    free(c->calls);
    free(c);
}
