/* SPDX-License-Identifier: MIT */
/* Folded text of a profile: `root;...;leaf weight`, each distinct line once, sorted by bytes, so that
 * equal profiles are equal files. Threads, processes and label sets become frames on request.
 * Called by `lapse export --to=folded` and `lapse record --export=folded`. Offline only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cells.h"
#include "format.h"
#include "index.h"
#include "line_tree.h"
#include "text.h"

#define NAME_BYTES 4096

struct folded {
    struct lapse_profile *profile;
    const struct lapse_export_options *options;
    struct lapse_line_tree tree;
    struct lapse_map name_of;  /* function and line -> name */
    struct lapse_map group_of; /* thread and label set -> node of the frames before the stack */
    struct lapse_cells cells;  /* owned by groups */
    /* By node of the profile: what its stack is below `group`, itself not included, for `of_group`. */
    struct { uint32_t of_group, node; } *outer;
    int error;
};

static uint32_t child(struct folded *folded, uint32_t parent, uint32_t name)
{
    uint32_t node =
        name == LAPSE_INDEX_NONE ? name : lapse_line_tree_child(&folded->tree, parent, name);
    if (node != LAPSE_INDEX_NONE)
        return node;
    folded->error = -ENOMEM;
    return 0;
}

static uint32_t text_name(struct folded *folded, const char *text)
{
    char name[NAME_BYTES];
    return lapse_line_tree_name(&folded->tree, name, lapse_folded_name(name, sizeof name, text));
}

/* `name` or `name:LINE`; the line belongs to the frame's name, so it goes through the same rules. */
static uint32_t function_name(struct folded *folded, uint32_t function, uint32_t line)
{
    const char *name = folded->profile->functions[function].name;
    uint64_t key = (uint64_t)function << 32 | (folded->options->lines ? line : 0);
    char text[NAME_BYTES];
    uint32_t number;
    if (lapse_map_get(&folded->name_of, key, &number))
        return number;
    if (folded->options->lines && line) {
        snprintf(text, sizeof text, "%.*s:%u", NAME_BYTES - 16, name, line);
        name = text;
    }
    number = text_name(folded, name);
    if (number != LAPSE_INDEX_NONE && lapse_map_put(&folded->name_of, key, number))
        return LAPSE_INDEX_NONE;
    return number;
}

/* Where the functions outside of a node's own end. Each node of the profile is turned once a group. */
static uint32_t outer_node(struct folded *folded, uint32_t group, uint32_t node)
{
    const struct lapse_profile_node *nodes = folded->profile->nodes;
    uint32_t at, above, below = 0;
    /* Up to what is known; the way down again is kept where the answers will be. */
    for (at = node; at && folded->outer[at].of_group != group + 1; at = nodes[at].parent) {
        folded->outer[at].node = below;
        below = at;
    }
    for (at = below; at; at = below) {
        below = folded->outer[at].node;
        above = nodes[at].parent;
        folded->outer[at].node =
            above ? child(folded, folded->outer[above].node,
                          function_name(folded, nodes[above].function, nodes[at].call_line))
                  : group;
        folded->outer[at].of_group = group + 1;
    }
    return folded->outer[node].node;
}

static void add_stack(struct folded *folded, uint32_t group, const struct lapse_profile_leaf *leaf,
                      uint64_t weight)
{
    uint32_t node = group;
    if (leaf->node)
        node =
            child(folded, outer_node(folded, group, leaf->node),
                  function_name(folded, folded->profile->nodes[leaf->node].function, leaf->line));
    if (node) /* an explicit empty stack has no line */
        folded->tree.nodes[node].weight += weight;
}

/* `[KEY=VALUE]` of the innermost label with the key. */
static uint32_t group_label(struct folded *folded, uint32_t group, uint32_t set, const char *key)
{
    const struct lapse_profile_label_set *labels = &folded->profile->label_sets[set];
    char text[NAME_BYTES];
    for (uint32_t i = labels->count; i-- > 0;)
        if (!strcmp(labels->labels[i].key, key)) {
            snprintf(text, sizeof text, "[%.1000s=%.3000s]", key, labels->labels[i].value);
            return child(folded, group, text_name(folded, text));
        }
    return group;
}

static uint32_t group_labels(struct folded *folded, uint32_t group, uint32_t set)
{
    const struct lapse_profile_label_set *labels = &folded->profile->label_sets[set];
    char text[NAME_BYTES];
    size_t size = 0;
    for (uint32_t i = 0; i < labels->count && size < sizeof text; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s=%s", i ? "," : "[",
                                 labels->labels[i].key, labels->labels[i].value);
    if (size && size < sizeof text - 1)
        strcpy(text + size, "]");
    return size ? child(folded, group, text_name(folded, text)) : group;
}

/* The frames in front of the stack. */
static uint32_t group_make(struct folded *folded, uint32_t thread_index, uint32_t labels)
{
    const struct lapse_profile_thread *thread = &folded->profile->threads[thread_index];
    const struct lapse_profile_process *process = &folded->profile->processes[thread->process];
    char text[NAME_BYTES];
    uint32_t group = 0;
    if (folded->options->processes) {
        snprintf(text, sizeof text, "[%.4000s pid=%u]", process->name, process->pid);
        group = child(folded, group, text_name(folded, text));
    }
    if (folded->options->threads) {
        snprintf(text, sizeof text, "[%.4000s tid=%u]",
                 *thread->name ? thread->name : process->name, thread->tid);
        group = child(folded, group, text_name(folded, text));
    }
    if (folded->options->labels)
        group = group_labels(folded, group, labels);
    if (folded->options->label_root)
        group = group_label(folded, group, labels, folded->options->label_root);
    return group;
}

static int add_sample(void *context, const struct lapse_profile_sample *sample)
{
    struct folded *folded = context;
    uint64_t key = (uint64_t)sample->thread << 32 | sample->labels;
    uint32_t group;
    if (!lapse_map_get(&folded->group_of, key, &group)) {
        group = group_make(folded, sample->thread, sample->labels);
        if (folded->error || lapse_map_put(&folded->group_of, key, group))
            return -ENOMEM;
    }
    return lapse_cells_add(&folded->cells, sample->leaf, group, 0, sample->weight_ns);
}

static int collect(struct folded *folded)
{
    struct lapse_profile *profile = folded->profile;
    const struct lapse_export_options *options = folded->options;
    folded->outer = calloc(profile->node_count + 1u, sizeof *folded->outer);
    if (!folded->outer)
        return -ENOMEM;
    if ((options->threads || options->processes || options->labels ||
         options->label_root) && profile->has_times) {
        int error = lapse_profile_each_sample(profile, add_sample, folded);
        lapse_cells_list(&folded->cells, true);
        for (uint32_t i = 0; i < folded->cells.count && !error && !folded->error; i++) {
            const struct lapse_cell *cell = &folded->cells.cells[i];
            add_stack(folded, cell->owner, &profile->leaves[cell->leaf], cell->weight_ns);
        }
        return error ? error : folded->error;
    }
    for (uint32_t i = 0; i < profile->leaf_count && !folded->error; i++)
        if (profile->leaves[i].weight_ns)
            add_stack(folded, 0, &profile->leaves[i], profile->leaves[i].weight_ns);
    return folded->error;
}

/* Rounded to the nearest; a line that was seen never becomes 0. */
static uint64_t in_unit(const void *context, uint64_t weight)
{
    const struct folded *folded = context;
    uint64_t divisor = folded->profile->period_ns;
    if (folded->profile->weight_unit == LAPSE_WEIGHT_COUNT)
        return weight;
    if (folded->options->unit == LAPSE_UNIT_US)
        divisor = 1000;
    if (folded->options->unit == LAPSE_UNIT_NS || !divisor)
        divisor = 1;
    uint64_t value = weight / divisor + (weight % divisor >= divisor - divisor / 2);
    return value ? value : 1;
}

int lapse_write_folded(struct lapse_profile *profile, FILE *to,
                       const struct lapse_export_options *options, char *error, size_t error_size)
{
    struct folded folded = { .profile = profile, .options = options };
    struct lapse_output output;
    int result = lapse_output_init(&output, to);
    if (!result)
        result = collect(&folded);
    if (!result)
        result = lapse_line_tree_write(&folded.tree, &output, in_unit, &folded);
    if (!result)
        result = lapse_output_finish(&output);
    if (result)
        snprintf(error, error_size, "folded: %s", strerror(-result));
    lapse_output_fini(&output);
    lapse_line_tree_free(&folded.tree);
    lapse_map_free(&folded.name_of);
    lapse_map_free(&folded.group_of);
    lapse_cells_free(&folded.cells);
    free(folded.outer);
    return result;
}
