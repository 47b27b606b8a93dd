/* SPDX-License-Identifier: MIT */
/* speedscope JSON -> recording: each profile of the file becomes a thread. Sampled profiles are put on
 * the axis of their weights; of evented ones each stretch between two events is a sample as long as
 * it. Files of lapse's own hold the same samples three times: only those by thread are taken.
 * Called by `lapse import`. Offline only; memory: the file as a tree (libjansson bounds its depth). */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "importer.h"
#include "index.h"

#define DEPTH_MAX 65536u

struct speedscope_import {
    struct lapse_importer *importer;
    const struct lapse_import_input *input;
    uint32_t *locations; /* by frame */
    size_t frame_count;
    uint32_t *stack;
    uint64_t scale_ns; /* of the profile's unit */
    bool counts; /* any profile's unit is none of time */
};

static const char *string_of(json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static uint32_t line_of(json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 && value < UINT32_MAX ? (uint32_t)value : 0;
}

static int read_frames(struct speedscope_import *import, json_t *frames)
{
    size_t index;
    json_t *frame;
    import->frame_count = json_array_size(frames);
    import->locations = malloc((import->frame_count + 1) * sizeof *import->locations);
    if (!import->locations)
        return -ENOMEM;
    json_array_foreach(frames, index, frame) {
        const char *file = string_of(frame, "file");
        struct lapse_imported_function function = {
            .name = string_of(frame, "name"), .file = *file ? file : NULL,
            .line = line_of(frame, "line"), .module = LAPSE_INDEX_NONE,
        };
        struct lapse_imported_line line = {
            .function = lapse_importer_function(import->importer, &function),
        };
        import->locations[index] = lapse_importer_location(import->importer, &line, 1);
        if (import->locations[index] == LAPSE_INDEX_NONE)
            return -ENOMEM;
    }
    return 0;
}

static bool frame_at(const struct speedscope_import *import, json_t *value, uint32_t *location)
{
    json_int_t frame = json_is_integer(value) ? json_integer_value(value) : -1;
    if (frame < 0 || (uint64_t)frame >= import->frame_count)
        return false;
    *location = import->locations[frame];
    return true;
}

/* Nanoseconds of a number in the profile's unit, whole numbers exactly; false for what is none, is
 * negative or too large. */
static bool number_ns(const struct speedscope_import *import, json_t *value, uint64_t *ns)
{
    if (json_is_integer(value))
        return json_integer_value(value) >= 0 && !__builtin_mul_overflow(
            (uint64_t)json_integer_value(value), import->scale_ns, ns);
    double number = json_is_real(value) ? json_real_value(value) * (double)import->scale_ns : -1;
    if (!(number >= 0 && number < 9e18))
        return false;
    *ns = (uint64_t)(number + 0.5);
    return true;
}

static void set_unit(struct speedscope_import *import, const char *unit)
{
    static const struct { const char *name; uint64_t ns; } units[] = {
        { "nanoseconds", 1 }, { "microseconds", 1000 }, { "milliseconds", 1000000 },
        { "seconds", 1000000000 },
    };
    import->scale_ns = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(unit, units[i].name))
            import->scale_ns = units[i].ns;
    if (!import->scale_ns) {
        import->counts = true;
        import->scale_ns = import->input->period_ns ? import->input->period_ns : 1;
    }
}

static int read_sampled(struct speedscope_import *import, json_t *profile, uint32_t thread)
{
    json_t *samples = json_object_get(profile, "samples"), *stack;
    json_t *weights = json_object_get(profile, "weights");
    uint64_t at = 0, weight;
    size_t index, depth;
    if (!json_is_array(samples) || json_array_size(samples) != json_array_size(weights))
        return -EBADMSG;
    json_array_foreach(samples, index, stack) {
        struct lapse_imported_sample sample = { .locations = import->stack, .thread = thread };
        if (!number_ns(import, json_array_get(weights, index), &weight) ||
            json_array_size(stack) > DEPTH_MAX)
            return -EBADMSG;
        for (depth = 0; depth < json_array_size(stack); depth++)
            if (!frame_at(import, json_array_get(stack, depth), &import->stack[depth]))
                return -EBADMSG;
        sample.depth = (uint32_t)depth;
        sample.weight_ns = weight;
        sample.time_ns = at + 1;
        if (__builtin_add_overflow(at, weight, &at) || at > INT64_MAX)
            return -EBADMSG;
        lapse_importer_sample(import->importer, &sample);
    }
    return 0;
}

/* The stretch that ends at `now` is a sample of the stack that was open during it. */
static void add_stretch(struct speedscope_import *import, uint32_t thread, uint32_t depth,
                        uint64_t from, uint64_t now)
{
    struct lapse_imported_sample sample = {
        .locations = import->stack, .depth = depth, .thread = thread, .time_ns = from + 1,
        .weight_ns = now - from,
    };
    if (depth && sample.weight_ns)
        lapse_importer_sample(import->importer, &sample);
}

static int read_evented(struct speedscope_import *import, json_t *profile, uint32_t thread)
{
    json_t *events = json_object_get(profile, "events"), *event;
    uint64_t start, last = 0, at;
    uint32_t depth = 0;
    size_t index;
    if (!json_is_array(events))
        return -EBADMSG;
    if (!number_ns(import, json_object_get(profile, "startValue"), &start))
        start = 0;
    json_array_foreach(events, index, event) {
        uint32_t location;
        if (!number_ns(import, json_object_get(event, "at"), &at) || at < start + last || !frame_at(import, json_object_get(event, "frame"), &location))
            return -EBADMSG;
        at -= start;
        if (at > last)
            add_stretch(import, thread, depth, last, at);
        last = at;
        if (!strcmp(string_of(event, "type"), "O")) {
            if (depth == DEPTH_MAX)
                return -E2BIG;
            import->stack[depth++] = location;
        } else if (!depth || import->stack[--depth] != location) {
            return -EBADMSG; /* closes what is not open on top */
        }
    }
    return 0;
}

static bool is_type(json_t *profile, const char *type)
{
    return !strcmp(string_of(profile, "type"), type);
}

/* lapse's own files: the merged profile comes first, then the threads' samples, then their calls. */
static bool is_wanted(json_t *root, json_t *profiles, size_t index)
{
    if (strncmp(string_of(root, "exporter"), "lapse ", 6) || json_array_size(profiles) == 1)
        return true;
    return index && is_type(json_array_get(profiles, index), "sampled");
}

/* The name without the `(TID)` that lapse puts behind it. */
static uint32_t thread_of(struct speedscope_import *import, json_t *profile, size_t index)
{
    const char *name = string_of(profile, "name"), *open = strrchr(name, '(');
    char *end = NULL;
    unsigned long tid = open && open > name ? strtoul(open + 1, &end, 10) : 0;
    if (!tid || tid > UINT32_MAX || *end != ')' || end[1] || open[-1] != ' ')
        return lapse_importer_thread(import->importer, (uint32_t)index + 1, name);
    char *text = strndup(name, (size_t)(open - name) - 1);
    uint32_t thread = lapse_importer_thread(import->importer, (uint32_t)tid, text ? text : "");
    free(text);
    return thread;
}

static int read_profiles(struct speedscope_import *import, json_t *root)
{
    json_t *profiles = json_object_get(root, "profiles"), *profile;
    size_t index;
    int error = json_is_array(profiles) ? 0 : -EBADMSG;
    json_array_foreach(profiles, index, profile) {
        if (error || !is_wanted(root, profiles, index))
            continue;
        set_unit(import, string_of(profile, "unit"));
        uint32_t thread = thread_of(import, profile, index);
        if (is_type(profile, "sampled"))
            error = read_sampled(import, profile, thread);
        else if (is_type(profile, "evented"))
            error = read_evented(import, profile, thread);
        else
            error = -EBADMSG;
    }
    return error;
}

static int run(struct speedscope_import *import, const char *bytes, size_t size, char *detail,
               size_t detail_size)
{
    json_error_t where;
    json_t *root = json_loadb(bytes, size, JSON_ALLOW_NUL, &where);
    if (!root) {
        snprintf(detail, detail_size, "line %d: %s", where.line, where.text);
        return -EBADMSG;
    }
    const char *name = string_of(root, "name");
    struct lapse_importer_head head = {
        .program = *name ? name : import->input->name, .period_ns = import->input->period_ns,
        .identity = lapse_hash_bytes(bytes, size),
    };
    lapse_importer_head(import->importer, &head);
    lapse_importer_note(import->importer, "times are those of the profiles' own axes");
    int error = read_frames(import, json_object_get(json_object_get(root, "shared"), "frames"));
    if (!error)
        error = read_profiles(import, root);
    if (!error && import->counts)
        lapse_importer_note(import->importer,
                            "weights without a unit of time: each is shown as a period");
    json_decref(root);
    return error;
}

int lapse_import_speedscope(struct lapse_importer *importer, const struct lapse_import_input *input,
                            char *error, size_t error_size)
{
    struct speedscope_import import = { .importer = importer, .input = input };
    char *bytes = NULL,
         detail[JSON_ERROR_TEXT_LENGTH + 32] = "not a speedscope file, or a damaged one";
    size_t size = 0;
    int result = lapse_import_slurp(input->from, &bytes, &size);
    import.stack = malloc(DEPTH_MAX * sizeof *import.stack);
    if (!result)
        result = import.stack ? run(&import, bytes, size, detail, sizeof detail) : -ENOMEM;
    if (result)
        snprintf(error, error_size, "%s: %s", input->name,
                 result == -EBADMSG ? detail : strerror(-result));
    free(import.locations);
    free(import.stack);
    free(bytes);
    return result;
}
