/* SPDX-License-Identifier: MIT */
/* Folded text of a profile: `root;...;leaf weight`, each distinct line once, sorted by bytes, so that
 * equal profiles are equal files. Threads, processes and label sets become frames on request.
 * Called by `lapse export --to=folded` and `lapse record --export=folded`. Offline only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "index.h"
#include "text.h"

#define NAME_BYTES 4096

struct folded {
    struct lapse_profile *profile;
    const struct lapse_export_options *options;
    struct lapse_strings lines, groups;
    uint64_t *weights; /* of lines */
    struct lapse_map group_of; /* thread and label set -> group */
    struct lapse_map cell_of;  /* group and leaf -> cell */
    struct cell { uint32_t group, leaf; uint64_t weight; } *cells;
    uint32_t cell_count;
    char *line;
    size_t line_size, line_capacity;
    int error;
};

static void line_add(struct folded *folded, const char *text, size_t size)
{
    if (!size)
        return;
    if (folded->line_capacity - folded->line_size < size) {
        size_t capacity = (folded->line_capacity + size) * 2;
        char *line = realloc(folded->line, capacity);
        if (!line) {
            folded->error = -ENOMEM;
            return;
        }
        folded->line = line;
        folded->line_capacity = capacity;
    }
    memcpy(folded->line + folded->line_size, text, size);
    folded->line_size += size;
}

static void line_frame(struct folded *folded, const char *name)
{
    char text[NAME_BYTES];
    if (folded->line_size)
        line_add(folded, ";", 1);
    line_add(folded, text, lapse_folded_name(text, sizeof text, name));
}

/* `name` or `name:LINE`; the line belongs to the frame's name, so it goes through the same rules. */
static void line_function(struct folded *folded, uint32_t function, uint32_t line)
{
    const char *name = folded->profile->functions[function].name;
    if (!folded->options->lines || !line) {
        line_frame(folded, name);
        return;
    }
    char text[NAME_BYTES];
    snprintf(text, sizeof text, "%.*s:%u", NAME_BYTES - 16, name, line);
    line_frame(folded, text);
}

static void line_stack(struct folded *folded, const struct lapse_profile_leaf *leaf)
{
    const struct lapse_profile_node *nodes = folded->profile->nodes;
    uint32_t depth = nodes[leaf->node].depth;
    uint32_t *path = malloc((depth + 1) * sizeof *path);
    if (!path) {
        folded->error = -ENOMEM;
        return;
    }
    for (uint32_t node = leaf->node, i = depth; i > 0; node = nodes[node].parent)
        path[--i] = node;
    for (uint32_t i = 0; i < depth; i++)
        line_function(folded, nodes[path[i]].function,
                      i + 1 < depth ? nodes[path[i + 1]].call_line : leaf->line);
    free(path);
}

static void add_line(struct folded *folded, const char *group, const struct lapse_profile_leaf *leaf,
                     uint64_t weight)
{
    uint32_t before = folded->lines.count;
    folded->line_size = 0;
    line_add(folded, group, strlen(group));
    line_stack(folded, leaf);
    if (!folded->line_size) /* an explicit empty stack has no line */
        return;
    uint64_t *weights = lapse_array_grow(folded->weights, before, sizeof *weights);
    uint32_t line = lapse_strings_number(&folded->lines, folded->line, folded->line_size);
    if (weights)
        folded->weights = weights;
    if (!weights || line == LAPSE_INDEX_NONE) {
        folded->error = -ENOMEM;
        return;
    }
    if (line == before)
        weights[line] = 0;
    weights[line] += weight;
}

/* `[KEY=VALUE]` of the innermost label with the key. */
static void group_label(struct folded *folded, uint32_t set, const char *key)
{
    const struct lapse_profile_label_set *labels = &folded->profile->label_sets[set];
    char text[NAME_BYTES];
    for (uint32_t i = labels->count; i-- > 0;)
        if (!strcmp(labels->labels[i].key, key)) {
            snprintf(text, sizeof text, "[%.1000s=%.3000s]", key, labels->labels[i].value);
            line_frame(folded, text);
            return;
        }
}

static void group_labels(struct folded *folded, uint32_t set)
{
    const struct lapse_profile_label_set *labels = &folded->profile->label_sets[set];
    char text[NAME_BYTES];
    size_t size = 0;
    for (uint32_t i = 0; i < labels->count && size < sizeof text; i++)
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s=%s", i ? "," : "[",
                                 labels->labels[i].key, labels->labels[i].value);
    if (size && size < sizeof text - 1)
        strcpy(text + size, "]");
    if (size)
        line_frame(folded, text);
}

/* The frames in front of the stack, as text that ends before the first `;` of the stack. */
static uint32_t group_make(struct folded *folded, uint32_t thread_index, uint32_t labels)
{
    const struct lapse_profile_thread *thread = &folded->profile->threads[thread_index];
    const struct lapse_profile_process *process = &folded->profile->processes[thread->process];
    char text[NAME_BYTES];
    folded->line_size = 0;
    if (folded->options->processes) {
        snprintf(text, sizeof text, "[%.4000s pid=%u]", process->name, process->pid);
        line_frame(folded, text);
    }
    if (folded->options->threads) {
        snprintf(text, sizeof text, "[%.4000s tid=%u]", *thread->name ? thread->name : process->name,
                 thread->tid);
        line_frame(folded, text);
    }
    if (folded->options->labels)
        group_labels(folded, labels);
    if (folded->options->label_root)
        group_label(folded, labels, folded->options->label_root);
    return lapse_strings_number(&folded->groups, folded->line ? folded->line : "",
                                folded->line_size);
}

static int add_sample(void *context, const struct lapse_profile_sample *sample)
{
    struct folded *folded = context;
    uint64_t key = (uint64_t)sample->thread << 32 | sample->labels;
    uint32_t group, cell;
    if (!lapse_map_get(&folded->group_of, key, &group)) {
        group = group_make(folded, sample->thread, sample->labels);
        if (group == LAPSE_INDEX_NONE || lapse_map_put(&folded->group_of, key, group))
            return -ENOMEM;
    }
    key = (uint64_t)group << 32 | sample->leaf;
    if (!lapse_map_get(&folded->cell_of, key, &cell)) {
        struct cell *cells = lapse_array_grow(folded->cells, folded->cell_count, sizeof *cells);
        if (!cells || lapse_map_put(&folded->cell_of, key, cell = folded->cell_count))
            return -ENOMEM;
        folded->cells = cells;
        cells[folded->cell_count++] = (struct cell){ group, sample->leaf, 0 };
    }
    folded->cells[cell].weight += sample->weight_ns;
    return folded->error;
}

static int collect(struct folded *folded)
{
    struct lapse_profile *profile = folded->profile;
    const struct lapse_export_options *options = folded->options;
    if ((options->threads || options->processes || options->labels ||
         options->label_root) && profile->has_times) {
        int error = lapse_profile_each_sample(profile, add_sample, folded);
        for (uint32_t i = 0; i < folded->cell_count && !error && !folded->error; i++)
            add_line(folded, folded->groups.texts[folded->cells[i].group],
                     &profile->leaves[folded->cells[i].leaf], folded->cells[i].weight);
        return error ? error : folded->error;
    }
    for (uint32_t i = 0; i < profile->leaf_count && !folded->error; i++)
        if (profile->leaves[i].weight_ns)
            add_line(folded, "", &profile->leaves[i], profile->leaves[i].weight_ns);
    return folded->error;
}

/* Rounded to the nearest; a line that was seen never becomes 0. */
static uint64_t in_unit(const struct folded *folded, uint64_t weight)
{
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

static int by_line(const void *a, const void *b, void *context)
{
    const struct lapse_strings *lines = &((struct folded *)context)->lines;
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    size_t size = lines->sizes[left] < lines->sizes[right] ? lines->sizes[left] : lines->sizes[right];
    int order = memcmp(lines->texts[left], lines->texts[right], size);
    /* As the whole lines compare: what follows the shorter text is the space before its weight. */
    if (!order && lines->sizes[left] != lines->sizes[right])
        order = lines->sizes[left] == size ? ' ' - (unsigned char)lines->texts[right][size]
                                           : (unsigned char)lines->texts[left][size] - ' ';
    return order ? order : (lines->sizes[left] > lines->sizes[right]) - (lines->sizes[left] < lines->sizes[right]);
}

static int write_lines(struct folded *folded, FILE *to)
{
    uint32_t count = folded->lines.count;
    uint32_t *order = malloc((count + 1) * sizeof *order);
    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, by_line, folded);
    for (uint32_t i = 0; i < count && !ferror(to); i++) {
        fwrite(folded->lines.texts[order[i]], 1, folded->lines.sizes[order[i]], to);
        fprintf(to, " %llu\n", (unsigned long long)in_unit(folded, folded->weights[order[i]]));
    }
    free(order);
    return 0;
}

int lapse_write_folded(struct lapse_profile *profile, FILE *to,
                       const struct lapse_export_options *options, char *error, size_t error_size)
{
    struct folded folded = { .profile = profile, .options = options };
    int result = collect(&folded);
    if (!result)
        result = write_lines(&folded, to);
    if (result)
        snprintf(error, error_size, "folded: %s", strerror(-result));
    lapse_strings_free(&folded.lines);
    lapse_strings_free(&folded.groups);
    lapse_map_free(&folded.group_of);
    lapse_map_free(&folded.cell_of);
    free(folded.weights);
    free(folded.cells);
    free(folded.line);
    return result;
}
