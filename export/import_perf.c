/* SPDX-License-Identifier: MIT */
/* Text of `perf script` -> recording. A sample is a line
 *     comm pid/tid [cpu] seconds.fraction: period event:
 * (pid, cpu and period may be missing), then a line per frame, leaf first,
 *     address symbol+0xoffset (module)
 * with inlined functions marked `(inlined)` before the one they are in, then an empty line. Times are
 * kept. Periods of clock events are nanoseconds; those of others are taken as such, with a note.
 * Called by `lapse import`. Offline only. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "importer.h"
#include "index.h"

#define DEPTH_MAX 65536u
#define INLINES_MAX 256u

struct perf_import {
    struct lapse_importer *importer;
    const struct lapse_import_input *input;
    struct lapse_imported_sample sample;
    bool open;            /* a sample's head was read */
    uint32_t first_pid;
    uint32_t *leaf_first, *root_first;
    uint32_t depth;
    struct lapse_imported_line inlined[INLINES_MAX]; /* innermost first, their function is to come */
    uint32_t inlined_count;
    uint64_t period_sum, samples, skipped;
    bool noted_unit;
};

/* Seconds with up to nine decimals, exact. Returns where the number ends, NULL for none. */
static const char *parse_seconds(const char *text, uint64_t *time_ns)
{
    uint64_t seconds = 0, fraction = 0, scale = 1000000000;
    const char *at = text;
    for (; isdigit((unsigned char)*at) && seconds < 1000000000000; at++)
        seconds = seconds * 10 + (uint64_t)(*at - '0');
    if (at == text || *at != '.' || seconds > 9000000000)
        return NULL;
    for (at++; isdigit((unsigned char)*at); at++)
        if (scale > 1) {
            fraction = fraction * 10 + (uint64_t)(*at - '0');
            scale /= 10;
        }
    *time_ns = seconds * 1000000000 + fraction * scale;
    return at;
}

/* The word before `end` that is a number or two with a slash; *start is where it begins. */
static bool parse_ids(const char *line, const char *end, uint32_t *pid, uint32_t *tid,
                      const char **start)
{
    while (end > line && isspace((unsigned char)end[-1]))
        end--;
    const char *at = end;
    while (at > line && (isdigit((unsigned char)at[-1]) || at[-1] == '/'))
        at--;
    if (at == end || at == line || !isspace((unsigned char)at[-1]))
        return false;
    char *stop;
    *pid = *tid = (uint32_t)strtoul(at, &stop, 10);
    if (*stop == '/')
        *tid = (uint32_t)strtoul(stop + 1, &stop, 10);
    *start = at;
    return stop == end;
}

/* Find `seconds:` from the left; what is before it are cpu, ids and the command's name. */
static const char *parse_head(struct perf_import *import, char *line, uint32_t *pid)
{
    for (const char *at = line; *at; at++) {
        uint64_t time_ns;
        uint32_t tid;
        const char *after, *ids_end = at, *name_end;
        if (!isdigit((unsigned char)*at) || at == line || !isspace((unsigned char)at[-1]))
            continue;
        after = parse_seconds(at, &time_ns);
        if (!after || *after != ':')
            continue;
        while (ids_end > line && isspace((unsigned char)ids_end[-1]))
            ids_end--;
        if (ids_end > line && ids_end[-1] == ']') /* [cpu] */
            while (ids_end > line && *--ids_end != '[') {}
        if (!parse_ids(line, ids_end, pid, &tid, &name_end))
            continue;
        while (name_end > line && isspace((unsigned char)name_end[-1]))
            name_end--;
        while (isspace((unsigned char)*line) && line < name_end)
            line++;
        char *name = strndup(line, (size_t)(name_end - line));
        if (!name)
            return NULL;
        if (import->first_pid && *pid != import->first_pid) {
            char *longer = NULL;
            if (asprintf(&longer, "%s (pid %u)", name, *pid) > 0) {
                free(name);
                name = longer;
            }
        }
        if (!import->first_pid) {
            struct lapse_importer_head head = {
                .program = name, .pid = *pid, .period_ns = import->input->period_ns,
                .identity = lapse_hash_bytes(line, strlen(line)),
            };
            import->first_pid = *pid ? *pid : 1;
            lapse_importer_head(import->importer, &head);
        }
        import->sample.thread = lapse_importer_thread(import->importer, tid ? tid : 1, name);
        import->sample.time_ns = time_ns + 1; /* 0 would mean none */
        free(name);
        return after + 1;
    }
    return NULL;
}

/* `period event:` or `event:`. */
static void parse_event(struct perf_import *import, const char *text)
{
    char *end;
    while (isspace((unsigned char)*text))
        text++;
    uint64_t period = strtoull(text, &end, 10);
    bool has_period = end > text && isspace((unsigned char)*end);
    while (has_period && isspace((unsigned char)*end))
        end++;
    const char *event = has_period ? end : text;
    bool is_clock = strstr(event, "cpu-clock") || strstr(event, "task-clock");
    import->sample.weight_ns = has_period && period ? period : import->input->period_ns;
    if (has_period && !is_clock && !import->noted_unit && *event) {
        char note[256];
        size_t size = strcspn(event, ": \t\n");
        snprintf(note, sizeof note, "weights are counts of %.*s, shown as nanoseconds",
                 size < 128 ? (int)size : 128, event);
        lapse_importer_note(import->importer, note);
        import->noted_unit = true;
    }
}

static void close_sample(struct perf_import *import)
{
    if (!import->open)
        return;
    for (uint32_t i = 0; i < import->depth; i++)
        import->root_first[i] = import->leaf_first[import->depth - 1 - i];
    import->sample.locations = import->root_first;
    import->sample.depth = import->depth;
    lapse_importer_sample(import->importer, &import->sample);
    import->open = false;
    import->samples++;
}

/* The last `(...)` of a line; cuts it off. */
static char *take_module(char *line)
{
    size_t size = strlen(line);
    while (size && isspace((unsigned char)line[size - 1]))
        line[--size] = 0;
    if (!size || line[size - 1] != ')')
        return NULL;
    char *open = strrchr(line, '('), *spaced = NULL;
    for (char *at = line; (at = strstr(at, " (")); at++)
        spaced = at;
    if (spaced)
        open = spaced + 1;
    if (!open)
        return NULL;
    line[size - 1] = 0;
    *open = 0;
    return open + 1;
}

/* Cut `+0x1f` and blanks off the end of a symbol. */
static void trim_symbol(char *symbol)
{
    char *plus = strrchr(symbol, '+');
    if (plus && !strncmp(plus, "+0x", 3))
        *plus = 0;
    size_t size = strlen(symbol);
    while (size && isspace((unsigned char)symbol[size - 1]))
        symbol[--size] = 0;
}

static void read_frame(struct perf_import *import, char *line)
{
    char *symbol, *module = take_module(line), unknown[64];
    while (isspace((unsigned char)*line))
        line++;
    unsigned long long address = strtoull(line, &symbol, 16);
    if (symbol == line || import->depth == DEPTH_MAX) {
        import->skipped++;
        return;
    }
    while (isspace((unsigned char)*symbol))
        symbol++;
    trim_symbol(symbol);
    bool is_inlined = module && !strcmp(module, "inlined");
    bool has_module = module && *module && !is_inlined && strcmp(module, "[unknown]");
    if (!strcmp(symbol, "[unknown]") || !*symbol) {
        snprintf(unknown, sizeof unknown, "0x%llx", address);
        symbol = has_module ? "[unknown]" : unknown;
    }
    struct lapse_imported_function function = {
        .name = symbol,
        .module =
            has_module ? lapse_importer_module(import->importer, module, NULL) : LAPSE_INDEX_NONE,
    };
    struct lapse_imported_line real = { .function =
                                            lapse_importer_function(import->importer, &function) };
    if (is_inlined && import->inlined_count < INLINES_MAX) {
        import->inlined[import->inlined_count++] = real;
        return;
    }
    struct lapse_imported_line lines[INLINES_MAX + 1] = { real };
    uint32_t count = 1;
    while (import->inlined_count)
        lines[count++] = import->inlined[--import->inlined_count];
    import->leaf_first[import->depth++] = lapse_importer_location(import->importer, lines, count);
}

static void read_line(struct perf_import *import, char *line)
{
    uint32_t pid;
    if (!line[strspn(line, " \t\r\n")]) {
        close_sample(import);
        return;
    }
    if (line[0] == '#')
        return;
    if (import->open && isspace((unsigned char)line[0])) {
        read_frame(import, line);
        return;
    }
    close_sample(import);
    const char *event = parse_head(import, line, &pid);
    if (!event) {
        import->skipped++;
        return;
    }
    import->open = true;
    import->depth = import->inlined_count = 0;
    parse_event(import, event);
}

int lapse_import_perf(struct lapse_importer *importer, const struct lapse_import_input *input,
                      char *error, size_t error_size)
{
    struct perf_import *import = calloc(1, sizeof *import);
    char *line = NULL, note[96];
    size_t capacity = 0;
    int result = import ? 0 : -ENOMEM;
    if (import) {
        *import = (struct perf_import){
            .importer = importer, .input = input,
            .leaf_first = malloc(DEPTH_MAX * sizeof *import->leaf_first),
            .root_first = malloc(DEPTH_MAX * sizeof *import->root_first),
        };
        if (!import->leaf_first || !import->root_first)
            result = -ENOMEM;
    }
    while (!result && getline(&line, &capacity, input->from) > 0)
        read_line(import, line);
    if (!result)
        close_sample(import);
    if (!result && ferror(input->from))
        result = -EIO;
    if (!result && !import->samples)
        result = -EBADMSG;
    if (!result && import->skipped) {
        snprintf(note, sizeof note, "%llu lines were not understood",
                 (unsigned long long)import->skipped);
        lapse_importer_note(importer, note);
    }
    if (result)
        snprintf(error, error_size, "%s: %s", input->name,
                 result == -EBADMSG ? "no sample of `perf script` found" : strerror(-result));
    free(line);
    if (import) {
        free(import->leaf_first);
        free(import->root_first);
    }
    free(import);
    return result;
}
