/* SPDX-License-Identifier: MIT */
/* pprof's profile.proto (in gzip or bare) -> recording. The value of a sample is that of the type
 * whose unit is a time, its count that of `samples/count`; without a time, counts stand for periods.
 * Labels `thread` and `tid` name the thread, other text labels are kept. Every number in the file may
 * be wrong: dangling ids and indexes are dropped and counted.
 * Called by `lapse import`. Offline only; memory: the file, unpacked. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "importer.h"
#include "index.h"
#include "wire.h"

#define DEPTH_MAX 65536u
#define LABELS_MAX 64u
#define TYPES_MAX 64u
#define LINES_MAX 1024u

struct slice { const uint8_t *at, *end; };
struct value_type { uint64_t type, unit; };
struct mapping { uint64_t path, build_id; };
struct function { uint64_t name, system_name, file, line; };
struct location { struct slice body; uint32_t imported; }; /* imported: number + 1, 0 not yet */

struct pprof_import {
    struct lapse_importer *importer;
    const struct lapse_import_input *input;
    char *bytes;
    size_t size;
    char **strings;
    uint32_t string_count;
    struct value_type types[TYPES_MAX], period_type;
    uint32_t type_count;
    struct mapping *mappings;
    struct function *functions;
    struct location *locations;
    uint32_t mapping_count, function_count, location_count;
    struct lapse_map mapping_of, function_of, location_of; /* id -> index */
    uint64_t period, time_nanos, default_type;
    uint64_t *comments; /* indexes of strings */
    uint32_t comment_count;
    int count_type, time_type; /* indexes of types, -1 none */
    uint64_t time_scale;
    uint64_t dangling, negative;
    uint32_t *leaf_first, *root_first;
};

static const char *text(struct pprof_import *import, uint64_t index)
{
    if (index < import->string_count)
        return import->strings[index];
    import->dangling++;
    return "";
}

typedef int each_field(struct pprof_import *import, void *to, uint32_t field, uint64_t value,
                       struct lapse_wire_reader *body);

static int each(struct pprof_import *import, struct lapse_wire_reader reader, each_field *call,
                void *to)
{
    uint32_t field;
    uint64_t value;
    struct lapse_wire_reader body;
    int more;
    while ((more = lapse_wire_next(&reader, &field, &value, &body)) > 0) {
        int error = call(import, to, field, value, &body);
        if (error)
            return error;
    }
    return more;
}

static int on_value_type(struct pprof_import *import, void *to, uint32_t field, uint64_t value,
                         struct lapse_wire_reader *body)
{
    (void)import, (void)body;
    if (field == 1)
        ((struct value_type *)to)->type = value;
    if (field == 2)
        ((struct value_type *)to)->unit = value;
    return 0;
}

/* Fields of a table's entry by number; the id is field 1 of all. */
struct entry { uint64_t fields[8]; };

static int on_entry(struct pprof_import *import, void *to, uint32_t field, uint64_t value,
                    struct lapse_wire_reader *body)
{
    (void)import, (void)body;
    if (field < 8)
        ((struct entry *)to)->fields[field] = value;
    return 0;
}

static int add_string(struct pprof_import *import, const struct lapse_wire_reader *body)
{
    char **strings = lapse_array_grow(import->strings, import->string_count, sizeof *strings);
    if (strings)
        import->strings = strings;
    char *copy = strndup((const char *)body->at, (size_t)(body->end - body->at));
    if (!strings || !copy) {
        free(copy);
        return -ENOMEM;
    }
    strings[import->string_count++] = copy;
    return 0;
}

static int add_mapping(struct pprof_import *import, const struct lapse_wire_reader *body)
{
    struct entry entry = { 0 };
    int error = each(import, *body, on_entry, &entry);
    struct mapping *mappings =
        lapse_array_grow(import->mappings, import->mapping_count, sizeof *mappings);
    if (!mappings || lapse_map_put(&import->mapping_of, entry.fields[1], import->mapping_count))
        return -ENOMEM;
    import->mappings = mappings;
    mappings[import->mapping_count++] = (struct mapping){ entry.fields[5], entry.fields[6] };
    return error;
}

static int add_function(struct pprof_import *import, const struct lapse_wire_reader *body)
{
    struct entry entry = { 0 };
    int error = each(import, *body, on_entry, &entry);
    struct function *functions =
        lapse_array_grow(import->functions, import->function_count, sizeof *functions);
    if (!functions || lapse_map_put(&import->function_of, entry.fields[1], import->function_count))
        return -ENOMEM;
    import->functions = functions;
    functions[import->function_count++] =
        (struct function){ entry.fields[2], entry.fields[3], entry.fields[4], entry.fields[5] };
    return error;
}

static int add_location(struct pprof_import *import, const struct lapse_wire_reader *body)
{
    struct entry entry = { 0 };
    int error = each(import, *body, on_entry, &entry);
    struct location *locations =
        lapse_array_grow(import->locations, import->location_count, sizeof *locations);
    if (!locations || lapse_map_put(&import->location_of, entry.fields[1], import->location_count))
        return -ENOMEM;
    import->locations = locations;
    locations[import->location_count++] = (struct location){ .body = { body->at, body->end } };
    return error;
}

typedef int each_value(struct pprof_import *import, void *to, uint64_t value);

/* Repeated numbers come packed or one by one. */
static int each_number(struct pprof_import *import, const struct lapse_wire_reader *body,
                       uint64_t value, each_value *call, void *to)
{
    struct lapse_wire_reader list = *body;
    if (list.at == list.end)
        return call(import, to, value);
    while (list.at != list.end) {
        int error = lapse_wire_read_varint(&list, &value) ? -EBADMSG : call(import, to, value);
        if (error)
            return error;
    }
    return 0;
}

static int add_comment(struct pprof_import *import, void *to, uint64_t value)
{
    (void)to;
    uint64_t *comments = lapse_array_grow(import->comments, import->comment_count, sizeof *comments);
    if (!comments)
        return -ENOMEM;
    import->comments = comments;
    comments[import->comment_count++] = value;
    return 0;
}

/* First pass: everything but the samples. */
static int on_profile(struct pprof_import *import, void *to, uint32_t field, uint64_t value,
                      struct lapse_wire_reader *body)
{
    (void)to;
    switch (field) {
    case 1:
        return import->type_count == TYPES_MAX
                   ? -E2BIG
                   : each(import, *body, on_value_type, &import->types[import->type_count++]);
    case 3: return add_mapping(import, body);
    case 4: return add_location(import, body);
    case 5: return add_function(import, body);
    case 6: return add_string(import, body);
    case 9: import->time_nanos = value; break;
    case 11: return each(import, *body, on_value_type, &import->period_type);
    case 12: import->period = value; break;
    case 13: return each_number(import, body, value, add_comment, NULL);
    case 14: import->default_type = value; break;
    default: break;
    }
    return 0;
}

/* Nanoseconds in one unit of time, 0 for other units. */
static uint64_t unit_ns(const char *unit)
{
    static const struct { const char *name; uint64_t ns; } units[] = {
        { "nanoseconds", 1 }, { "ns", 1 }, { "nanosecond", 1 }, { "microseconds", 1000 }, { "us", 1000 },
        { "microsecond", 1000 }, { "milliseconds", 1000000 }, { "ms", 1000000 },
        { "millisecond", 1000000 }, { "seconds", 1000000000 }, { "s", 1000000000 },
        { "second", 1000000000 },
    };
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(unit, units[i].name))
            return units[i].ns;
    return 0;
}

/* Whether another type counts rather than `before`: as in pprof the one that is named as the default, else
 * the last one. `preferred` is better than either. */
static bool is_better(struct pprof_import *import, int before, const char *preferred)
{
    if (before < 0)
        return true;
    uint64_t type = import->types[before].type;
    return strcmp(text(import, type), preferred) && (!type || type != import->default_type);
}

static void choose_types(struct pprof_import *import)
{
    import->count_type = import->time_type = -1;
    for (uint32_t i = 0; i < import->type_count; i++) {
        uint64_t scale = unit_ns(text(import, import->types[i].unit));
        if (scale && is_better(import, import->time_type, "")) {
            import->time_type = (int)i;
            import->time_scale = scale;
        } else if (!scale && is_better(import, import->count_type, "samples")) {
            import->count_type = (int)i;
        }
    }
}

static int on_line(struct pprof_import *import, void *to, uint32_t field, uint64_t value,
                   struct lapse_wire_reader *body)
{
    (void)import, (void)body;
    if (field == 1 || field == 2)
        ((uint64_t *)to)[field - 1] = value;
    return 0;
}

struct lines { uint64_t function_ids[LINES_MAX], lines[LINES_MAX]; uint32_t count; uint64_t mapping, address; };

static int on_location(struct pprof_import *import, void *to, uint32_t field, uint64_t value,
                       struct lapse_wire_reader *body)
{
    struct lines *lines = to;
    uint64_t line[2] = { 0, 0 };
    if (field == 2)
        lines->mapping = value;
    if (field == 3)
        lines->address = value;
    if (field != 4 || lines->count == LINES_MAX)
        return 0;
    int error = each(import, *body, on_line, line);
    lines->function_ids[lines->count] = line[0];
    lines->lines[lines->count++] = line[1];
    return error;
}

static uint32_t import_module(struct pprof_import *import, uint64_t id)
{
    uint32_t index;
    if (!id || !lapse_map_get(&import->mapping_of, id, &index))
        return LAPSE_INDEX_NONE;
    const char *path = text(import, import->mappings[index].path);
    return *path ? lapse_importer_module(import->importer, path,
                                         text(import, import->mappings[index].build_id))
                 : LAPSE_INDEX_NONE;
}

/* Lines are innermost first in the file. Without a line the address is the name. */
static uint32_t import_location(struct pprof_import *import, struct location *location)
{
    struct lines lines = { .count = 0 };
    struct lapse_imported_line imported[LINES_MAX];
    char unnamed[32];
    if (location->imported)
        return location->imported - 1;
    struct lapse_wire_reader body = { location->body.at, location->body.end };
    if (each(import, body, on_location, &lines))
        return LAPSE_INDEX_NONE;
    uint32_t module = import_module(import, lines.mapping), count = 0;
    snprintf(unnamed, sizeof unnamed, "0x%llx", (unsigned long long)lines.address);
    for (uint32_t i = lines.count ? lines.count : 1; i-- > 0;) {
        uint32_t index;
        struct lapse_imported_function function = { .name = unnamed, .module = module };
        if (lines.count && lapse_map_get(&import->function_of, lines.function_ids[i], &index)) {
            const struct function *from = &import->functions[index];
            function.name = text(import, from->name);
            function.system_name = from->system_name ? text(import, from->system_name) : NULL;
            function.file = from->file ? text(import, from->file) : NULL;
            function.line = from->line < UINT32_MAX ? (uint32_t)from->line : 0;
        } else if (lines.count) {
            import->dangling++;
        }
        imported[count].function = lapse_importer_function(import->importer, &function);
        if (imported[count].function == LAPSE_INDEX_NONE)
            return LAPSE_INDEX_NONE;
        imported[count++].line =
            lines.count && lines.lines[i] < UINT32_MAX ? (uint32_t)lines.lines[i] : 0;
    }
    uint32_t number = lapse_importer_location(import->importer, imported, count);
    location->imported = number + 1;
    return number;
}

struct sample {
    uint32_t depth, value_count, label_count;
    int64_t values[TYPES_MAX];
    const char *pairs[2 * LABELS_MAX];
    const char *thread;
    uint64_t tid;
};

static int add_frame(struct pprof_import *import, void *to, uint64_t id)
{
    struct sample *sample = to;
    uint32_t index;
    if (!lapse_map_get(&import->location_of, id, &index)) {
        import->dangling += id != 0; /* an empty list reads as one 0 */
        return 0;
    }
    if (sample->depth == DEPTH_MAX)
        return -E2BIG;
    import->leaf_first[sample->depth] = import_location(import, &import->locations[index]);
    if (import->leaf_first[sample->depth++] == LAPSE_INDEX_NONE)
        return -EBADMSG;
    return 0;
}

static int on_label(struct pprof_import *import, void *to, uint32_t field, uint64_t value,
                    struct lapse_wire_reader *body)
{
    (void)import, (void)body;
    if (field < 4)
        ((uint64_t *)to)[field] = value;
    return 0;
}

static int add_label(struct pprof_import *import, struct sample *sample,
                     struct lapse_wire_reader *body)
{
    uint64_t label[4] = { 0 };
    int error = each(import, *body, on_label, label);
    const char *key = text(import, label[1]);
    if (error || !*key)
        return error;
    if (!strcmp(key, "thread") && label[2])
        sample->thread = text(import, label[2]);
    else if (!strcmp(key, "tid") || !strcmp(key, "thread_id"))
        sample->tid = label[3];
    else if (label[2] && sample->label_count < LABELS_MAX) {
        sample->pairs[2 * sample->label_count] = key;
        sample->pairs[2 * sample->label_count++ + 1] = text(import, label[2]);
    }
    return 0;
}

static int add_value(struct pprof_import *import, void *to, uint64_t value)
{
    struct sample *sample = to;
    (void)import;
    if (sample->value_count < TYPES_MAX)
        sample->values[sample->value_count++] = (int64_t)value;
    return 0;
}

static int on_sample(struct pprof_import *import, void *to, uint32_t field, uint64_t value,
                     struct lapse_wire_reader *body)
{
    struct sample *sample = to;
    if (field == 3)
        return add_label(import, sample, body);
    if (field != 1 && field != 2)
        return 0;
    return each_number(import, body, value, field == 1 ? add_frame : add_value, sample);
}

static uint64_t value_of(struct pprof_import *import, const struct sample *sample, int type)
{
    if (type < 0 || (uint32_t)type >= sample->value_count)
        return 0;
    import->negative += sample->values[type] < 0;
    return sample->values[type] < 0 ? 0 : (uint64_t)sample->values[type];
}

static int add_sample(struct pprof_import *import, struct lapse_wire_reader body)
{
    struct sample sample = { .depth = 0 };
    int error = each(import, body, on_sample, &sample);
    if (error)
        return error;
    for (uint32_t i = 0; i < sample.depth; i++)
        import->root_first[i] = import->leaf_first[sample.depth - 1 - i];
    uint64_t time = value_of(import, &sample, import->time_type), weight_ns;
    if (__builtin_mul_overflow(time, import->time_scale, &weight_ns))
        return -EOVERFLOW;
    struct lapse_imported_sample imported = {
        .locations = import->root_first, .depth = sample.depth,
        .thread = lapse_importer_thread(import->importer, sample.tid < UINT32_MAX && sample.tid
                                                              ? (uint32_t)sample.tid : 1,
                                        sample.thread ? sample.thread : ""),
        .labels = lapse_importer_labels(import->importer, sample.pairs, sample.label_count),
        .count = value_of(import, &sample, import->count_type),
        .weight_ns = weight_ns,
    };
    if (import->time_type >= 0 && import->count_type < 0)
        imported.count = imported.weight_ns ? 1 : 0;
    lapse_importer_sample(import->importer, &imported);
    return 0;
}

static int on_second_pass(struct pprof_import *import, void *to, uint32_t field, uint64_t value,
                          struct lapse_wire_reader *body)
{
    (void)to, (void)value;
    return field == 2 ? add_sample(import, *body) : 0;
}

static void note_count(struct pprof_import *import, uint64_t count, const char *what)
{
    char note[96];
    snprintf(note, sizeof note, "%llu %s", (unsigned long long)count, what);
    if (count)
        lapse_importer_note(import->importer, note);
}

static void put_notes(struct pprof_import *import)
{
    const struct value_type *counted =
        import->time_type < 0 && import->count_type >= 0 ? &import->types[import->count_type] : NULL;
    for (uint32_t i = 0; i < import->comment_count; i++)
        lapse_importer_note(import->importer, text(import, import->comments[i]));
    if (counted && strcmp(text(import, counted->type), "samples")) {
        char note[256];
        snprintf(note, sizeof note, "weights are %.100s (%.50s), each shown as a period",
                 text(import, counted->type), text(import, counted->unit));
        lapse_importer_note(import->importer, note);
    }
    note_count(import, import->negative, "negative values in the input were left out");
    note_count(import, import->dangling, "references in the input led nowhere");
}

static int run(struct pprof_import *import)
{
    struct lapse_wire_reader all = { (const uint8_t *)import->bytes,
                                     (const uint8_t *)import->bytes + import->size };
    int error = each(import, all, on_profile, NULL);
    if (error || !import->type_count || !import->string_count)
        return error ? error : -EBADMSG;
    choose_types(import);
    uint64_t scale = unit_ns(text(import, import->period_type.unit));
    const char *program = import->mapping_count ? text(import, import->mappings[0].path) : "";
    struct lapse_importer_head head = {
        .program = *program ? program : import->input->name,
        .period_ns = scale && import->period && import->period < UINT64_MAX / scale
                         ? import->period * scale : import->input->period_ns,
        .start_realtime_ns = import->time_nanos,
        .wall = import->time_type >= 0 &&
                !strcmp(text(import, import->types[import->time_type].type), "wall"),
        .counts = import->time_type < 0,
        .identity = lapse_hash_bytes(import->bytes, import->size),
    };
    lapse_importer_head(import->importer, &head);
    error = each(import, all, on_second_pass, NULL);
    if (!error)
        put_notes(import);
    return error;
}

int lapse_import_pprof(struct lapse_importer *importer, const struct lapse_import_input *input,
                       char *error, size_t error_size)
{
    struct pprof_import import = { .importer = importer, .input = input };
    int result = lapse_import_slurp(input->from, &import.bytes, &import.size);
    import.leaf_first = malloc(DEPTH_MAX * sizeof *import.leaf_first);
    import.root_first = malloc(DEPTH_MAX * sizeof *import.root_first);
    if (!result)
        result = import.leaf_first && import.root_first ? run(&import) : -ENOMEM;
    if (result)
        snprintf(error, error_size, "%s: %s", input->name,
                 result == -EBADMSG ? "not a pprof profile, or a damaged one" : strerror(-result));
    for (uint32_t i = 0; i < import.string_count; i++)
        free(import.strings[i]);
    free(import.strings);
    free(import.mappings);
    free(import.functions);
    free(import.locations);
    free(import.comments);
    lapse_map_free(&import.mapping_of);
    lapse_map_free(&import.function_of);
    lapse_map_free(&import.location_of);
    free(import.leaf_first);
    free(import.root_first);
    free(import.bytes);
    return result;
}
