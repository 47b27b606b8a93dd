/* SPDX-License-Identifier: MIT */
/* pprof's profile.proto in gzip. Field numbers below are those of the published schema. A location is
 * a pc with its functions, innermost first; callers have the address of their call, one less than
 * where it returns to. Samples of a thread with the same stack and labels are one.
 * Called by `lapse export --to=pprof`. Offline only; memory: distinct stacks per thread. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "captions.h"
#include "cells.h"
#include "intern.h"
#include "json_writer.h"
#include "wire.h"

enum profile_field {
    SAMPLE_TYPE = 1, SAMPLE = 2, MAPPING = 3, LOCATION = 4, FUNCTION = 5, STRING_TABLE = 6,
    TIME_NANOS = 9, DURATION_NANOS = 10, PERIOD_TYPE = 11, PERIOD = 12, COMMENT = 13,
};

/* What holds for every location of a mapping so far. */
struct mapping { uint32_t id; bool unnamed, without_file, without_line; };

/* Bytes that many samples share: labels of a thread, labels of a set. */
struct piece { size_t at, size; bool made; };

struct pprof {
    const struct lapse_profile *profile;
    struct lapse_ids ids;
    struct lapse_strings strings;
    struct lapse_intern locations; /* chains of (pc, function, line, location of the rest + 1) */
    struct mapping *mappings;      /* by module */
    uint32_t *caller_location;     /* by node: its caller's, location + 1, 0 not made yet */
    uint32_t *location_ids;        /* by chain: id in the file, 0 not written */
    uint32_t location_count, location_capacity;
    struct lapse_cells cells;  /* owned by threads */
    struct lapse_output pieces; /* what `thread_labels` and `set_labels` point into */
    struct piece *thread_labels, *set_labels;
    uint8_t *stack;            /* location list of stack_leaf's stack */
    size_t stack_size, stack_capacity;
    uint32_t stack_leaf;       /* LAPSE_NONE: none yet */
    struct lapse_wire wire;
    z_stream deflate;
    FILE *to;
    int error;
};

#define DEFLATED_BYTES 65536u

static void deflate_some(struct pprof *pprof, const void *bytes, size_t size, int flush)
{
    uint8_t out[DEFLATED_BYTES];
    z_stream *stream = &pprof->deflate;
    stream->next_in = (Bytef *)(uintptr_t)bytes;
    stream->avail_in = (uInt)size;
    do {
        stream->next_out = out;
        stream->avail_out = sizeof out;
        deflate(stream, flush);
        size_t got = sizeof out - stream->avail_out;
        if (got && !pprof->error && fwrite(out, 1, got, pprof->to) != got)
            pprof->error = errno ? -errno : -EIO;
    } while (!stream->avail_out);
}

/* Make sure that a message of this many bytes fits; what is in the buffer goes out before. */
static void begin_message(struct pprof *pprof, size_t size)
{
    if (size + 64 <= pprof->wire.capacity - pprof->wire.size)
        return;
    deflate_some(pprof, pprof->wire.bytes, pprof->wire.size, Z_NO_FLUSH);
    pprof->wire.size = 0;
    if (size + 64 <= pprof->wire.capacity)
        return;
    uint8_t *bytes = realloc(pprof->wire.bytes, size + 64);
    if (!bytes) {
        pprof->error = -ENOMEM;
        return;
    }
    pprof->wire.bytes = bytes;
    pprof->wire.capacity = size + 64;
}

static uint64_t string_number(struct pprof *pprof, const char *text)
{
    uint32_t number =
        lapse_strings_number(&pprof->strings, text ? text : "", text ? strlen(text) : 0);
    if (number == LAPSE_INDEX_NONE) {
        pprof->error = -ENOMEM;
        return 0;
    }
    return number;
}

static void put_value_type(struct pprof *pprof, uint32_t field, const char *type, const char *unit)
{
    begin_message(pprof, 64);
    size_t mark = lapse_wire_begin(&pprof->wire, field);
    lapse_wire_uint(&pprof->wire, 1, string_number(pprof, type));
    lapse_wire_uint(&pprof->wire, 2, string_number(pprof, unit));
    lapse_wire_end(&pprof->wire, mark);
}

static const char *cost_name(const struct lapse_profile *profile)
{
    bool wall = profile->process_count && profile->processes[0].clock == LAPSE_RECORDED_WALL;
    return wall ? "wall" : "cpu";
}

static void put_head(struct pprof *pprof)
{
    const struct lapse_profile *profile = pprof->profile;
    uint64_t zero = lapse_profile_zero(profile), end = lapse_profile_end(profile);
    string_number(pprof, "");
    put_value_type(pprof, SAMPLE_TYPE, "samples", "count");
    if (profile->weight_unit == LAPSE_WEIGHT_NS) {
        put_value_type(pprof, SAMPLE_TYPE, cost_name(profile), "nanoseconds");
        put_value_type(pprof, PERIOD_TYPE, cost_name(profile), "nanoseconds");
        lapse_wire_uint(&pprof->wire, PERIOD, profile->period_ns);
    }
    lapse_wire_uint(&pprof->wire, TIME_NANOS, lapse_profile_zero_utc(profile));
    if (end > zero)
        lapse_wire_uint(&pprof->wire, DURATION_NANOS, end - zero);
}

/* The function that has the machine code of a node: the node itself or what it is inlined into. */
static uint32_t real_function(const struct lapse_profile *profile, uint32_t node)
{
    while (profile->nodes[node].flags & LAPSE_NODE_INLINED && profile->nodes[node].parent)
        node = profile->nodes[node].parent;
    return profile->nodes[node].function;
}

/* Number of the chain of lines at `pc` from `node` outwards to the real function, plus one. */
static uint32_t chain(struct pprof *pprof, uint32_t node, uint64_t pc, uint32_t line)
{
    const struct lapse_profile_node *nodes = pprof->profile->nodes;
    uint32_t inlined = 0, rest = 0;
    for (uint32_t at = node; nodes[at].flags & LAPSE_NODE_INLINED && nodes[at].parent; inlined++)
        at = nodes[at].parent;
    /* Outermost line first, so that each chain names the rest of it by number. */
    for (uint32_t level = inlined + 1; level-- > 0;) {
        uint32_t at = node, at_line = line;
        for (uint32_t i = 0; i < level; i++) {
            at_line = nodes[at].call_line;
            at = nodes[at].parent;
        }
        struct lapse_key key = { { pc, nodes[at].function, at_line, rest } };
        uint32_t number = lapse_intern(&pprof->locations, key, NULL);
        if (number == LAPSE_INDEX_NONE) {
            pprof->error = -ENOMEM;
            return 0;
        }
        rest = number + 1;
    }
    return rest;
}

/* Lines of a location; tells the mapping what they lack. */
static void put_lines(struct pprof *pprof, uint32_t number, struct mapping *mapping)
{
    while (number) {
        const uint64_t *word = pprof->locations.keys[number - 1].word;
        const struct lapse_profile_function *function = &pprof->profile->functions[word[1]];
        size_t mark = lapse_wire_begin(&pprof->wire, 4);
        lapse_wire_uint(&pprof->wire, 1, word[1] + 1);
        lapse_wire_uint(&pprof->wire, 2, word[2]);
        lapse_wire_end(&pprof->wire, mark);
        mapping->unnamed |= (function->flags & LAPSE_FUNCTION_UNNAMED) != 0;
        mapping->without_file |= !function->file;
        mapping->without_line |= !word[2];
        number = (uint32_t)word[3];
    }
}

/* The id of a chain's location, which is written at first use. */
static uint32_t location_id(struct pprof *pprof, uint32_t number, uint32_t function)
{
    if (!number)
        return 0;
    if (number > pprof->location_capacity) {
        uint32_t capacity = pprof->locations.count * 2;
        uint32_t *ids = realloc(pprof->location_ids, capacity * sizeof *ids);
        if (!ids) {
            pprof->error = -ENOMEM;
            return 0;
        }
        memset(ids + pprof->location_capacity, 0,
               (capacity - pprof->location_capacity) * sizeof *ids);
        pprof->location_ids = ids;
        pprof->location_capacity = capacity;
    }
    if (pprof->location_ids[number - 1])
        return pprof->location_ids[number - 1];
    struct mapping none = { 0 }, *mapping = &none;
    if (pprof->profile->functions[function].module != LAPSE_NONE)
        mapping = &pprof->mappings[pprof->profile->functions[function].module];
    size_t size = 64;
    for (uint32_t n = number; n; n = (uint32_t)pprof->locations.keys[n - 1].word[3])
        size += 32;
    begin_message(pprof, size);
    size_t mark = lapse_wire_begin(&pprof->wire, LOCATION);
    lapse_wire_uint(&pprof->wire, 1, ++pprof->location_count);
    lapse_wire_uint(&pprof->wire, 2, mapping->id);
    lapse_wire_uint(&pprof->wire, 3, pprof->locations.keys[number - 1].word[0]);
    put_lines(pprof, number, mapping);
    lapse_wire_end(&pprof->wire, mark);
    return pprof->location_ids[number - 1] = pprof->location_count;
}

/* Location of the function (with what is inlined into it) that called the node's. */
static uint32_t caller_location(struct pprof *pprof, uint32_t node)
{
    const struct lapse_profile_node *n = &pprof->profile->nodes[node];
    if (!pprof->caller_location[node]) {
        uint32_t number = chain(pprof, n->parent, n->call_pc ? n->call_pc - 1 : 0, n->call_line);
        pprof->caller_location[node] =
            location_id(pprof, number, real_function(pprof->profile, n->parent));
    }
    return pprof->caller_location[node];
}

/* Outermost node of the function at `node` and of what is inlined into it. */
static uint32_t group_base(const struct lapse_profile *profile, uint32_t node)
{
    while (profile->nodes[node].flags & LAPSE_NODE_INLINED && profile->nodes[node].parent)
        node = profile->nodes[node].parent;
    return node;
}

/* Write all locations of a leaf's stack; room for its list is made. */
static uint32_t prepare_stack(struct pprof *pprof, const struct lapse_profile_leaf *leaf)
{
    const struct lapse_profile *profile = pprof->profile;
    if (!leaf->node)
        return 0;
    uint32_t number = chain(pprof, leaf->node, leaf->pc, leaf->line);
    uint32_t id = location_id(pprof, number, real_function(profile, leaf->node));
    for (uint32_t node = group_base(profile, leaf->node); profile->nodes[node].parent;
         node = group_base(profile, profile->nodes[node].parent))
        caller_location(pprof, node);
    return id;
}

static void put_label(struct pprof *pprof, struct lapse_wire *wire, const char *key,
                      const char *text, uint64_t number)
{
    size_t mark = lapse_wire_begin(wire, 3);
    lapse_wire_uint(wire, 1, string_number(pprof, key));
    lapse_wire_uint(wire, 2, text ? string_number(pprof, text) : 0);
    lapse_wire_uint(wire, 3, number);
    lapse_wire_end(wire, mark);
}

static bool is_reserved(const char *key)
{
    return !strcmp(key, "thread") || !strcmp(key, "tid") || !strcmp(key, "pid");
}

/* User labels. One value per key: a reader refuses the second. */
static void put_user_labels(struct pprof *pprof, struct lapse_wire *wire,
                            const struct lapse_profile_label_set *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        bool repeated = is_reserved(set->labels[i].key);
        for (uint32_t j = i + 1; j < set->count && !repeated; j++) /* the innermost counts */
            repeated = !strcmp(set->labels[i].key, set->labels[j].key);
        if (!repeated)
            put_label(pprof, wire, set->labels[i].key, set->labels[i].value, 0);
    }
}

static void put_thread_labels(struct pprof *pprof, struct lapse_wire *wire, uint32_t thread)
{
    const struct lapse_profile *profile = pprof->profile;
    put_label(pprof, wire, "thread", lapse_caption_thread(profile, thread), 0);
    put_label(pprof, wire, "tid", NULL, pprof->ids.threads[thread]);
    put_label(pprof, wire, "pid", NULL, pprof->ids.processes[profile->threads[thread].process]);
}

enum { LABEL_BYTES = 64 }; /* of one, with its lengths: three numbers */

/* The labels of a thread, or of a set when it is not NULL, made at first use. */
static const struct piece *piece_of(struct pprof *pprof, struct piece *piece, uint32_t thread,
                                    const struct lapse_profile_label_set *set)
{
    if (piece->made)
        return piece;
    size_t room = LABEL_BYTES * (set ? set->count + 1u : 3u);
    struct lapse_wire wire = {
        .bytes = (uint8_t *)lapse_output_room(&pprof->pieces, room), .capacity = room,
    };
    if (!wire.bytes) {
        pprof->error = -ENOMEM;
        return piece;
    }
    if (set)
        put_user_labels(pprof, &wire, set);
    else
        put_thread_labels(pprof, &wire, thread);
    *piece = (struct piece){ pprof->pieces.size, wire.size, true };
    pprof->pieces.size += wire.size;
    if (wire.overflow)
        pprof->error = -EMSGSIZE;
    return piece;
}

static void put_piece(struct pprof *pprof, const struct piece *piece)
{
    memcpy(pprof->wire.bytes + pprof->wire.size, pprof->pieces.bytes + piece->at, piece->size);
    pprof->wire.size += piece->size;
}

/* The list of a leaf's locations, which the cells of the leaf share. */
static void load_stack(struct pprof *pprof, uint32_t leaf_index)
{
    const struct lapse_profile *profile = pprof->profile;
    const struct lapse_profile_leaf *leaf = &profile->leaves[leaf_index];
    if (pprof->stack_leaf == leaf_index)
        return;
    uint32_t first = prepare_stack(pprof, leaf);
    size_t wanted = 5 * ((size_t)profile->nodes[leaf->node].depth + 1);
    if (wanted > pprof->stack_capacity) {
        uint8_t *stack = realloc(pprof->stack, wanted * 2);
        if (!stack) {
            pprof->error = -ENOMEM;
            return;
        }
        pprof->stack = stack;
        pprof->stack_capacity = wanted * 2;
    }
    struct lapse_wire list = { .bytes = pprof->stack, .capacity = pprof->stack_capacity };
    if (first)
        lapse_wire_varint(&list, first);
    for (uint32_t node = group_base(profile, leaf->node); node && profile->nodes[node].parent;
         node = group_base(profile, profile->nodes[node].parent))
        lapse_wire_varint(&list, pprof->caller_location[node]);
    pprof->stack_size = list.size;
    pprof->stack_leaf = leaf_index;
}

/* The owner is the thread, or LAPSE_NONE. */
static void put_sample(struct pprof *pprof, const struct lapse_cell *cell)
{
    static const struct piece none = { 0 };
    const struct lapse_profile *profile = pprof->profile;
    const struct piece *thread = &none, *set = &none;
    load_stack(pprof, cell->leaf);
    if (cell->owner != LAPSE_NONE) {
        thread = piece_of(pprof, &pprof->thread_labels[cell->owner], cell->owner, NULL);
        set = piece_of(pprof, &pprof->set_labels[cell->labels], 0,
                       &profile->label_sets[cell->labels]);
    }
    begin_message(pprof, 128 + pprof->stack_size + thread->size + set->size);
    if (pprof->error)
        return;
    size_t sample = lapse_wire_begin(&pprof->wire, SAMPLE);
    lapse_wire_bytes(&pprof->wire, 1, pprof->stack, pprof->stack_size);
    size_t list = lapse_wire_begin(&pprof->wire, 2);
    lapse_wire_varint(&pprof->wire, cell->count);
    if (profile->weight_unit == LAPSE_WEIGHT_NS)
        lapse_wire_varint(&pprof->wire, cell->weight_ns);
    lapse_wire_end(&pprof->wire, list);
    put_piece(pprof, thread);
    put_piece(pprof, set);
    lapse_wire_end(&pprof->wire, sample);
    if (pprof->wire.overflow)
        pprof->error = -EMSGSIZE;
}

static int add_sample(void *context, const struct lapse_profile_sample *sample)
{
    struct pprof *pprof = context;
    return lapse_cells_add(&pprof->cells, sample->leaf, sample->thread, sample->labels,
                           sample->weight_ns);
}

static int put_samples(struct pprof *pprof, struct lapse_profile *profile)
{
    for (uint32_t i = 0; !profile->has_times && i < profile->leaf_count && !pprof->error; i++) {
        struct lapse_cell cell = {
            .count = profile->leaves[i].count, .weight_ns = profile->leaves[i].weight_ns,
            .owner = LAPSE_NONE, .leaf = i,
        };
        if (cell.count || cell.weight_ns)
            put_sample(pprof, &cell);
    }
    int error = profile->has_times ? lapse_profile_each_sample(profile, add_sample, pprof) : 0;
    if (!error)
        lapse_cells_list(&pprof->cells, false);
    for (uint32_t i = 0; i < pprof->cells.count && !error && !pprof->error; i++)
        put_sample(pprof, &pprof->cells.cells[i]);
    return error ? error : pprof->error;
}

static void put_functions(struct pprof *pprof)
{
    for (uint32_t i = 0; i < pprof->profile->function_count; i++) {
        const struct lapse_profile_function *function = &pprof->profile->functions[i];
        const char *system = function->system_name;
        if (system && !strcmp(system, function->name))
            system = NULL; /* equal names would be taken for mangled ones and cut */
        begin_message(pprof, 64);
        size_t mark = lapse_wire_begin(&pprof->wire, FUNCTION);
        lapse_wire_uint(&pprof->wire, 1, i + 1u);
        lapse_wire_uint(&pprof->wire, 2, string_number(pprof, function->name));
        lapse_wire_uint(&pprof->wire, 3, string_number(pprof, system));
        lapse_wire_uint(&pprof->wire, 4, string_number(pprof, function->file));
        lapse_wire_uint(&pprof->wire, 5, function->line);
        lapse_wire_end(&pprof->wire, mark);
    }
}

static void put_mapping(struct pprof *pprof, uint32_t module)
{
    const struct lapse_profile_module *m = &pprof->profile->modules[module];
    const struct mapping *mapping = &pprof->mappings[module];
    begin_message(pprof, 128);
    size_t mark = lapse_wire_begin(&pprof->wire, MAPPING);
    lapse_wire_uint(&pprof->wire, 1, mapping->id);
    lapse_wire_uint(&pprof->wire, 2, m->start);
    lapse_wire_uint(&pprof->wire, 3, m->end);
    lapse_wire_uint(&pprof->wire, 4, m->file_offset);
    lapse_wire_uint(&pprof->wire, 5, string_number(pprof, m->path));
    lapse_wire_uint(&pprof->wire, 6, string_number(pprof, m->build_id));
    lapse_wire_uint(&pprof->wire, 7, !mapping->unnamed);
    lapse_wire_uint(&pprof->wire, 8, !mapping->without_file);
    lapse_wire_uint(&pprof->wire, 9, !mapping->without_line);
    lapse_wire_uint(&pprof->wire, 10, !mapping->without_line);
    lapse_wire_end(&pprof->wire, mark);
}

/* The program itself is the first mapping: its name and build id head pprof's reports. */
static uint32_t main_module(const struct lapse_profile *profile)
{
    for (uint32_t i = 0; profile->process_count && i < profile->module_count; i++)
        if (!strcmp(profile->modules[i].path, profile->processes[0].program))
            return i;
    return 0;
}

static void put_mappings(struct pprof *pprof)
{
    uint32_t first = main_module(pprof->profile);
    if (pprof->profile->module_count)
        put_mapping(pprof, first);
    for (uint32_t i = 0; i < pprof->profile->module_count; i++)
        if (i != first)
            put_mapping(pprof, i);
}

static void put_comment(struct pprof *pprof, const char *text)
{
    begin_message(pprof, 16);
    lapse_wire_uint(&pprof->wire, COMMENT, string_number(pprof, text));
}

static void put_loss(void *context, const char *name, uint64_t value)
{
    char text[128];
    snprintf(text, sizeof text, "%s: %llu", name, (unsigned long long)value);
    put_comment(context, text);
}

/* Proto strings are UTF-8: some readers refuse a file for one bad byte. */
static void put_strings(struct pprof *pprof)
{
    struct lapse_output text;
    if (lapse_output_init(&text, NULL)) {
        pprof->error = -ENOMEM;
        return;
    }
    for (uint32_t i = 0; i < pprof->strings.count; i++) {
        text.size = 0;
        lapse_output_utf8(&text, pprof->strings.texts[i]);
        begin_message(pprof, text.size);
        lapse_wire_bytes(&pprof->wire, STRING_TABLE, text.bytes, text.size);
    }
    if (text.error)
        pprof->error = text.error;
    lapse_output_fini(&text);
}

static int prepare(struct pprof *pprof)
{
    const struct lapse_profile *profile = pprof->profile;
    uint32_t first = main_module(profile);
    pprof->wire.capacity = 65536;
    pprof->wire.bytes = malloc(pprof->wire.capacity);
    pprof->mappings = calloc(profile->module_count + 1u, sizeof *pprof->mappings);
    pprof->caller_location = calloc(profile->node_count + 1u, sizeof *pprof->caller_location);
    pprof->thread_labels = calloc(profile->thread_count + 1u, sizeof *pprof->thread_labels);
    pprof->set_labels = calloc(profile->label_set_count + 1u, sizeof *pprof->set_labels);
    pprof->stack_leaf = LAPSE_NONE;
    int pieces = lapse_output_init(&pprof->pieces, NULL);
    if (!pprof->wire.bytes || !pprof->mappings || !pprof->caller_location ||
        !pprof->thread_labels || !pprof->set_labels || pieces)
        return -ENOMEM;
    for (uint32_t i = 0; i < profile->module_count; i++)
        pprof->mappings[i].id = i == first ? 1 : i < first ? i + 2 : i + 1;
    return lapse_ids_init(&pprof->ids, profile);
}

static int write_all(struct pprof *pprof, struct lapse_profile *profile)
{
    /* gzip; zlib leaves time and name out of its head: equal input gives equal bytes. The fastest
     * level, as Go's own writer: a better one takes longer than all else. */
    if (deflateInit2(&pprof->deflate, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return -ENOMEM;
    put_head(pprof);
    int error = put_samples(pprof, profile);
    if (!error) {
        put_functions(pprof);
        put_mappings(pprof);
        for (uint32_t i = 0; i < profile->note_count; i++)
            put_comment(pprof, profile->notes[i]);
        lapse_each_loss(profile, pprof, put_loss);
        put_strings(pprof);
        deflate_some(pprof, pprof->wire.bytes, pprof->wire.size, Z_FINISH);
    }
    deflateEnd(&pprof->deflate);
    return error ? error : pprof->error;
}

int lapse_write_pprof(struct lapse_profile *profile, FILE *to,
                      const struct lapse_export_options *options, char *error, size_t error_size)
{
    struct pprof pprof = { .profile = profile, .to = to };
    (void)options;
    int result = prepare(&pprof);
    if (!result)
        result = write_all(&pprof, profile);
    if (result)
        lapse_export_failed(error, error_size, "pprof", result);
    lapse_ids_fini(&pprof.ids);
    lapse_strings_free(&pprof.strings);
    lapse_intern_fini(&pprof.locations);
    lapse_cells_free(&pprof.cells);
    lapse_output_fini(&pprof.pieces);
    free(pprof.thread_labels);
    free(pprof.set_labels);
    free(pprof.stack);
    free(pprof.location_ids);
    free(pprof.caller_location);
    free(pprof.mappings);
    free(pprof.wire.bytes);
    return result;
}
