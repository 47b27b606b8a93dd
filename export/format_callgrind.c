/* SPDX-License-Identifier: MIT */
/* Callgrind's text for KCachegrind and callgrind_annotate: self cost of each function by line, and
 * for each pair of caller and callee the samples that had it on their stack, each counted once
 * however deep it recurses. Names are compressed, every number defined before its use.
 * Called by `lapse export --to=callgrind`. Offline only; memory: distinct edges. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "captions.h"
#include "intern.h"
#include "json_writer.h"

struct cost { uint64_t count, weight_ns; };

struct callgrind {
    const struct lapse_profile *profile;
    struct lapse_output output;
    struct lapse_strings names, files, objects;
    uint32_t *identity; /* function -> first function of that name, file and object */
    struct lapse_intern items; /* self: (function, line, NONE, 0); call: (function, line, callee, 1) */
    struct lapse_intern pairs; /* (caller, callee) */
    struct cost *leaf_costs;   /* by leaf, of the thread or of all */
    struct cost *costs;        /* by item */
    uint32_t *pair_leaf;       /* by pair: the leaf that counted it last, plus one */
    uint32_t *pair_of;         /* by node: its pair, plus one */
    uint32_t only_thread;      /* plus one */
    bool *name_sent, *file_sent, *object_sent;
    int error;
};

static struct lapse_key key4(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    return (struct lapse_key){ { a, b, c, d } };
}

static void add_cost(struct callgrind *callgrind, struct lapse_key key, const struct cost *cost)
{
    bool is_new;
    uint32_t item = lapse_intern(&callgrind->items, key, &is_new);
    if (item == LAPSE_INDEX_NONE) {
        callgrind->error = -ENOMEM;
        return;
    }
    if (is_new) {
        struct cost *costs = lapse_array_grow(callgrind->costs, item, sizeof *costs);
        if (!costs) {
            callgrind->error = -ENOMEM;
            return;
        }
        callgrind->costs = costs;
        costs[item] = (struct cost){ 0 };
    }
    callgrind->costs[item].count += cost->count;
    callgrind->costs[item].weight_ns += cost->weight_ns;
}

/* Number of the pair (function of the node's parent, function of the node). */
static uint32_t pair_number(struct callgrind *callgrind, uint32_t node)
{
    const struct lapse_profile_node *nodes = callgrind->profile->nodes;
    if (callgrind->pair_of[node])
        return callgrind->pair_of[node] - 1;
    bool is_new;
    uint32_t pair = lapse_intern(&callgrind->pairs,
                                 key4(callgrind->identity[nodes[nodes[node].parent].function],
                                      callgrind->identity[nodes[node].function], 0, 0), &is_new);
    if (is_new && pair != LAPSE_INDEX_NONE) {
        uint32_t *leaves = lapse_array_grow(callgrind->pair_leaf, pair, sizeof *leaves);
        if (leaves) {
            callgrind->pair_leaf = leaves;
            leaves[pair] = 0;
        } else {
            pair = LAPSE_INDEX_NONE;
        }
    }
    if (pair == LAPSE_INDEX_NONE)
        callgrind->error = -ENOMEM;
    else
        callgrind->pair_of[node] = pair + 1;
    return pair;
}

/* A pair that is on the stack several times counts at its innermost place. */
static void add_leaf(struct callgrind *callgrind, uint32_t leaf_index)
{
    const struct lapse_profile_node *nodes = callgrind->profile->nodes;
    const struct lapse_profile_leaf *leaf = &callgrind->profile->leaves[leaf_index];
    const struct cost *cost = &callgrind->leaf_costs[leaf_index];
    if (!leaf->node || (!cost->count && !cost->weight_ns))
        return;
    uint64_t function = callgrind->identity[nodes[leaf->node].function];
    add_cost(callgrind, key4(function, leaf->line, LAPSE_NONE, 0), cost);
    for (uint32_t node = leaf->node; nodes[node].parent && !callgrind->error;
         node = nodes[node].parent) {
        uint32_t pair = pair_number(callgrind, node);
        if (callgrind->error || callgrind->pair_leaf[pair] == leaf_index + 1)
            continue;
        callgrind->pair_leaf[pair] = leaf_index + 1;
        const uint64_t *ends = callgrind->pairs.keys[pair].word;
        add_cost(callgrind, key4(ends[0], nodes[node].call_line, ends[1], 1), cost);
    }
}

/* Names without control characters, "(unknown)" for none. */
static void put_name(struct callgrind *callgrind, struct lapse_strings *strings, bool *sent,
                     const char *text)
{
    struct lapse_output *output = &callgrind->output;
    uint32_t number = lapse_strings_number(strings, text, strlen(text));
    if (number == LAPSE_INDEX_NONE) {
        callgrind->error = -ENOMEM;
        return;
    }
    lapse_output_char(output, '(');
    lapse_output_uint(output, number + 1u);
    lapse_output_char(output, ')');
    if (!sent[number]) {
        sent[number] = true;
        lapse_output_char(output, ' ');
        while (*text) {
            size_t size = lapse_utf8_sequence(text);
            if (!size)
                lapse_output_text(output, "\xef\xbf\xbd");
            else if (size == 1 && ((unsigned char)*text < 0x20 || *text == 0x7f))
                lapse_output_char(output, ' ');
            else
                lapse_output_bytes(output, text, size);
            text += size ? size : 1;
        }
    }
    lapse_output_char(output, '\n');
}

static const char *object_of(const struct callgrind *callgrind, uint32_t function)
{
    uint32_t module = callgrind->profile->functions[function].module;
    return module == LAPSE_NONE ? "(none)" : callgrind->profile->modules[module].path;
}

static const char *file_of(const struct callgrind *callgrind, uint32_t function)
{
    const char *file = callgrind->profile->functions[function].file;
    return file && *file ? file : "(unknown)";
}

/* Object, file and function, all three each time: a reader must not guess what stays. */
static void put_function(struct callgrind *callgrind, uint32_t function, bool callee)
{
    const char *name = callgrind->profile->functions[function].name;
    lapse_output_text(&callgrind->output, callee ? "cob=" : "ob=");
    put_name(callgrind, &callgrind->objects, callgrind->object_sent,
             object_of(callgrind, function));
    lapse_output_text(&callgrind->output, callee ? "cfi=" : "fl=");
    put_name(callgrind, &callgrind->files, callgrind->file_sent, file_of(callgrind, function));
    lapse_output_text(&callgrind->output, callee ? "cfn=" : "fn=");
    put_name(callgrind, &callgrind->names, callgrind->name_sent, *name ? name : "(unknown)");
}

static void put_costs(struct callgrind *callgrind, uint64_t line, const struct cost *cost)
{
    struct lapse_output *output = &callgrind->output;
    lapse_output_uint(output, line);
    lapse_output_char(output, ' ');
    lapse_output_uint(output, cost->count);
    if (callgrind->profile->weight_unit == LAPSE_WEIGHT_NS) {
        lapse_output_char(output, ' ');
        lapse_output_uint(output, cost->weight_ns);
    }
    lapse_output_char(output, '\n');
}

static int by_key(const void *a, const void *b, void *context)
{
    const struct lapse_key *keys = context, *left = &keys[*(const uint32_t *)a],
                           *right = &keys[*(const uint32_t *)b];
    static const int order[] = { 0, 3, 1, 2 }; /* function, self before calls, line, callee */
    for (int i = 0; i < 4; i++)
        if (left->word[order[i]] != right->word[order[i]])
            return left->word[order[i]] < right->word[order[i]] ? -1 : 1;
    return 0;
}

static int put_body(struct callgrind *callgrind)
{
    uint32_t count = callgrind->items.count;
    uint64_t open = UINT64_MAX;
    uint32_t *order = malloc((count + 1u) * sizeof *order);
    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++)
        order[i] = i;
    qsort_r(order, count, sizeof *order, by_key, callgrind->items.keys);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t *word = callgrind->items.keys[order[i]].word;
        const struct cost *cost = &callgrind->costs[order[i]];
        if (word[0] != open) {
            lapse_output_char(&callgrind->output, '\n');
            put_function(callgrind, (uint32_t)word[0], false);
        }
        open = word[0];
        if (word[3]) {
            put_function(callgrind, (uint32_t)word[2], true);
            lapse_output_text(&callgrind->output, "calls=");
            lapse_output_uint(&callgrind->output, cost->count);
            lapse_output_char(&callgrind->output, ' ');
            lapse_output_uint(&callgrind->output, callgrind->profile->functions[word[2]].line);
            lapse_output_char(&callgrind->output, '\n');
        }
        put_costs(callgrind, word[1], cost);
    }
    free(order);
    return callgrind->error;
}

/* A header line; control characters would end it early. */
static void put_header(struct callgrind *callgrind, const char *key, const char *value)
{
    lapse_output_text(&callgrind->output, key);
    for (; *value; value++)
        lapse_output_char(&callgrind->output, (unsigned char)*value < 0x20 ? ' ' : *value);
    lapse_output_char(&callgrind->output, '\n');
}

static void put_loss(void *context, const char *name, uint64_t value)
{
    char text[128];
    snprintf(text, sizeof text, "%s: %llu", name, (unsigned long long)value);
    put_header(context, "desc: ", text);
}

static void put_head(struct callgrind *callgrind, const struct cost *whole)
{
    const struct lapse_profile *profile = callgrind->profile;
    bool has_time = profile->weight_unit == LAPSE_WEIGHT_NS;
    lapse_output_text(&callgrind->output,
                      "# callgrind format\nversion: 1\ncreator: lapse " LAPSE_VERSION "\n");
    if (profile->process_count == 1) {
        lapse_output_text(&callgrind->output, "pid: ");
        lapse_output_uint(&callgrind->output, profile->processes[0].pid);
        lapse_output_char(&callgrind->output, '\n');
    }
    if (profile->process_count)
        put_header(callgrind, "cmd: ", profile->processes[0].command);
    lapse_output_text(&callgrind->output, "part: 1\n");
    if (callgrind->only_thread) {
        lapse_output_text(&callgrind->output, "thread: ");
        lapse_output_uint(&callgrind->output, callgrind->only_thread);
        lapse_output_char(&callgrind->output, '\n');
        put_header(callgrind,
                   "desc: Thread: ", lapse_caption_thread(profile, callgrind->only_thread - 1));
    }
    for (uint32_t i = 0; i < profile->note_count; i++)
        put_header(callgrind, "desc: ", profile->notes[i]);
    lapse_each_loss(profile, callgrind, put_loss);
    lapse_output_text(&callgrind->output, "positions: line\nevent: samples : Samples\n");
    lapse_output_text(&callgrind->output, has_time
                                              ? "event: ns : CPU time [ns]\nevents: samples ns\n"
                                              : "events: samples\n");
    lapse_output_text(&callgrind->output, "summary: ");
    lapse_output_uint(&callgrind->output, whole->count);
    if (has_time) {
        lapse_output_char(&callgrind->output, ' ');
        lapse_output_uint(&callgrind->output, whole->weight_ns);
    }
    lapse_output_char(&callgrind->output, '\n');
}

/* Functions that are the same to a reader become one. */
static int unify(struct callgrind *callgrind)
{
    const struct lapse_profile *profile = callgrind->profile;
    struct lapse_intern functions = { 0 };
    uint32_t *first = calloc(profile->function_count + 1u, sizeof *first);
    int error = first ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < profile->function_count && !error; i++) {
        const char *name = profile->functions[i].name, *file = file_of(callgrind, i),
                   *object = object_of(callgrind, i);
        bool is_new;
        uint32_t number = lapse_intern(&functions,
            key4(lapse_strings_number(&callgrind->names, name, strlen(name)),
                 lapse_strings_number(&callgrind->files, file, strlen(file)),
                 lapse_strings_number(&callgrind->objects, object, strlen(object)), 0), &is_new);
        if (number == LAPSE_INDEX_NONE)
            error = -ENOMEM;
        else if (is_new)
            first[number] = i;
        if (!error)
            callgrind->identity[i] = first[number];
    }
    lapse_strings_number(&callgrind->names, "(unknown)", 9);
    free(first);
    lapse_intern_fini(&functions);
    return error;
}

static int prepare(struct callgrind *callgrind, FILE *to)
{
    const struct lapse_profile *profile = callgrind->profile;
    int error = lapse_output_init(&callgrind->output, to);
    callgrind->identity = calloc(profile->function_count + 1u, sizeof *callgrind->identity);
    callgrind->leaf_costs = calloc(profile->leaf_count + 1u, sizeof *callgrind->leaf_costs);
    callgrind->pair_of = calloc(profile->node_count + 1u, sizeof *callgrind->pair_of);
    if (!error)
        error = callgrind->identity && callgrind->pair_of && callgrind->leaf_costs
                    ? unify(callgrind)
                    : -ENOMEM;
    callgrind->name_sent = calloc(callgrind->names.count + 1u, 1);
    callgrind->file_sent = calloc(callgrind->files.count + 1u, 1);
    callgrind->object_sent = calloc(callgrind->objects.count + 1u, 1);
    if (!callgrind->name_sent || !callgrind->file_sent || !callgrind->object_sent)
        error = -ENOMEM;
    return error;
}

static int add_sample(void *context, const struct lapse_profile_sample *sample)
{
    struct callgrind *callgrind = context;
    if (sample->thread + 1 == callgrind->only_thread) {
        callgrind->leaf_costs[sample->leaf].count++;
        callgrind->leaf_costs[sample->leaf].weight_ns += sample->weight_ns;
    }
    return 0;
}

static int collect(struct callgrind *callgrind, struct lapse_profile *profile)
{
    if (callgrind->only_thread)
        return lapse_profile_each_sample(profile, add_sample, callgrind);
    for (uint32_t i = 0; i < profile->leaf_count; i++)
        callgrind->leaf_costs[i] =
            (struct cost){ profile->leaves[i].count, profile->leaves[i].weight_ns };
    return 0;
}

static int write_all(struct callgrind *callgrind, struct lapse_profile *profile)
{
    struct cost whole = { profile->count, profile->weight_ns };
    if (callgrind->only_thread) {
        const struct lapse_profile_thread *thread = &profile->threads[callgrind->only_thread - 1];
        whole = (struct cost){ thread->count, thread->weight_ns };
    }
    int collected = collect(callgrind, profile);
    if (collected)
        return collected;
    for (uint32_t i = 0; i < callgrind->profile->leaf_count && !callgrind->error; i++)
        add_leaf(callgrind, i);
    if (callgrind->error)
        return callgrind->error;
    put_head(callgrind, &whole);
    int error = put_body(callgrind);
    return error ? error : lapse_output_finish(&callgrind->output);
}

int lapse_write_callgrind(struct lapse_profile *profile, FILE *to,
                          const struct lapse_export_options *options, char *error,
                          size_t error_size)
{
    struct callgrind callgrind = { .profile = profile, .only_thread = options->only_thread };
    int result = prepare(&callgrind, to);
    if (!result)
        result = write_all(&callgrind, profile);
    if (result)
        lapse_export_failed(error, error_size, "callgrind", result);
    lapse_output_fini(&callgrind.output);
    lapse_strings_free(&callgrind.names);
    lapse_strings_free(&callgrind.files);
    lapse_strings_free(&callgrind.objects);
    lapse_intern_fini(&callgrind.items);
    lapse_intern_fini(&callgrind.pairs);
    free(callgrind.identity);
    free(callgrind.leaf_costs);
    free(callgrind.costs);
    free(callgrind.pair_leaf);
    free(callgrind.pair_of);
    free(callgrind.name_sent);
    free(callgrind.file_sent);
    free(callgrind.object_sent);
    return result;
}
