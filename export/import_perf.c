/* SPDX-License-Identifier: MIT */
/* Text of `perf script` -> recording. A sample is a line
 *     comm pid/tid [cpu] seconds.fraction: period event:
 * of which all but time or event may be missing, then a line per frame, leaf first,
 *     address symbol+0xoffset (module)
 * with inlined functions marked `(inlined)` before the one they are in, then an empty line; without
 * call chains the one frame ends the first line. Times are kept. Periods of clock events are
 * nanoseconds; those of others are taken as such, with a note. Of several events one is taken: a clock,
 * else the one with most samples. Read twice, once to choose it.
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
#define EVENTS_MAX 32u
#define EVENT_NAME_MAX 128u
#define COMMAND_MAX 1024u /* of a command */
#define BLANKS " \t\r\n\v\f"

struct perf_event { char name[EVENT_NAME_MAX]; uint64_t count; };

struct perf_import {
    struct lapse_importer *importer;
    const struct lapse_import_input *input;
    struct perf_event events[EVENTS_MAX];
    uint32_t event_count;
    const struct perf_event *event; /* whose samples are taken */
    struct lapse_imported_sample sample;
    bool begun;       /* the recording's head is written */
    bool open;        /* a sample's head was read */
    bool flat;        /* its one frame stood in the head's line */
    bool passed_over; /* the lines are those of a sample of another event */
    uint32_t first_pid;
    uint32_t *leaf_first, *root_first;
    uint32_t depth;
    struct lapse_imported_line inlined[INLINES_MAX]; /* innermost first, their function is to come */
    uint32_t inlined_count;
    uint64_t samples, skipped, left_out;
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

/* The `(...)` after a blank that ends a line, and whose text may have more of them; cuts it off. */
static char *take_module(char *line)
{
    size_t size = strlen(line), open, depth = 0;
    char *from = NULL;
    while (size && isspace((unsigned char)line[size - 1]))
        line[--size] = 0;
    if (!size || line[size - 1] != ')')
        return NULL;
    for (open = size; open > 0; open--) {
        depth += line[open - 1] == ')';
        if (line[open - 1] == '(' && !--depth)
            break;
    }
    if (open > 1 && line[open - 2] == ' ')
        from = line + open - 2;
    for (char *at = line; !open && (at = strstr(at, " (")); at++) /* not balanced */
        from = at;
    if (!from)
        return NULL;
    line[size - 1] = 0;
    *from = 0;
    return from + 2;
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
    if (symbol == line || (*symbol && !isspace((unsigned char)*symbol)) || import->depth == DEPTH_MAX) {
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

/* The words of a line; a head has few, of a longer line the first ones count. */
struct word { char *at; size_t size; };
enum { WORDS_MAX = 48 };

static uint32_t split(char *line, struct word *words)
{
    uint32_t count = 0;
    while (count < WORDS_MAX) {
        line += strspn(line, BLANKS);
        if (!*line)
            break;
        words[count] = (struct word){ line, strcspn(line, BLANKS) };
        line += words[count++].size;
    }
    return count;
}

static bool is_all(const struct word *word, const char *characters)
{
    return word->size && strspn(word->at, characters) >= word->size;
}

static bool is_number(const struct word *word) { return is_all(word, "0123456789"); }
static bool is_hex(const struct word *word) { return is_all(word, "0123456789abcdef"); }
static bool is_cpu(const struct word *word)
{
    return word->size > 2 && *word->at == '[' && word->at[word->size - 1] == ']' &&
           strspn(word->at + 1, "0123456789") == word->size - 2;
}

static bool is_time(const struct word *word, uint64_t *time_ns)
{
    const char *after = parse_seconds(word->at, time_ns);
    return after && *after == ':' && after + 1 == word->at + word->size;
}

/* `123` or `123/124`. */
static bool is_ids(const struct word *word, uint32_t *pid, uint32_t *tid)
{
    char *stop;
    if (!isdigit((unsigned char)*word->at))
        return false;
    *pid = *tid = (uint32_t)strtoul(word->at, &stop, 10);
    if (*stop == '/' && isdigit((unsigned char)stop[1]))
        *tid = (uint32_t)strtoul(stop + 1, &stop, 10);
    return stop == word->at + word->size;
}

/* What a sample begins with. The event's name is empty when the fields do not have it. */
struct head { uint32_t pid, tid; uint64_t time_ns, period; struct word name, event; char *rest; };

/* What stands before word `at`: name, ids and cpu, of which any may be missing. */
static bool parse_owner(const struct word *words, uint32_t at, struct head *head)
{
    if (at && is_cpu(&words[at - 1]))
        at--;
    bool has_ids = at && is_ids(&words[at - 1], &head->pid, &head->tid);
    at -= has_ids;
    if (at)
        head->name = (struct word){
            words->at, (size_t)(words[at - 1].at + words[at - 1].size - words->at),
        };
    return has_ids;
}

/* A period and a name that ends with a colon, both optional; `rest` is what follows. */
static void parse_event(const struct word *words, uint32_t count, uint32_t at, struct head *head)
{
    if (at < count && is_number(&words[at]))
        head->period = strtoull(words[at++].at, NULL, 10);
    if (at < count && words[at].at[words[at].size - 1] == ':') {
        head->event = (struct word){ words[at].at, words[at].size - 1 };
        at++;
    }
    head->rest = at < count ? words[at].at : words[count - 1].at + words[count - 1].size;
}

/* The time is the first word that looks like one. Without times the event, which ids must precede,
 * tells a head. */
static bool parse_head(char *line, struct head *head)
{
    struct word words[WORDS_MAX];
    uint32_t count = split(line, words), at = 0;
    *head = (struct head){ .tid = 1, .name.at = line, .event.at = line, .rest = line };
    while (at < count && !is_time(&words[at], &head->time_ns))
        at++;
    if (at < count) {
        head->time_ns++; /* 0 would mean none */
        parse_owner(words, at, head);
        parse_event(words, count, at + 1, head);
        return true;
    }
    head->time_ns = 0;
    for (at = 2; at < count; at++) {
        if (words[at].at[words[at].size - 1] != ':')
            continue;
        struct head with_period = *head;
        if (is_number(&words[at - 1]) && parse_owner(words, at - 1, &with_period) &&
            with_period.name.size) {
            *head = with_period;
            parse_event(words, count, at - 1, head);
            return true;
        }
        if (parse_owner(words, at, head) && head->name.size) {
            parse_event(words, count, at, head);
            return true;
        }
    }
    return false;
}

bool lapse_import_is_perf(char *line)
{
    struct head head;
    return parse_head(line, &head) && !memchr(line, ';', (size_t)(head.rest - line));
}

static bool is_clock(const char *event)
{
    return strstr(event, "cpu-clock") || strstr(event, "task-clock");
}

static bool is_event(const struct perf_event *event, const struct word *name)
{
    return strlen(event->name) == name->size && !memcmp(event->name, name->at, name->size);
}

/* First pass: counts the samples of each event. Those of one are taken: counts of two are no sum. */
static void count_event(struct perf_import *import, const struct word *name)
{
    uint32_t i = 0;
    if (name->size >= EVENT_NAME_MAX)
        return;
    while (i < import->event_count && !is_event(&import->events[i], name))
        i++;
    if (i == EVENTS_MAX)
        return;
    if (i == import->event_count)
        memcpy(import->events[import->event_count++].name, name->at, name->size);
    import->events[i].count++;
}

static void choose_event(struct perf_import *import)
{
    for (uint32_t i = 0; i < import->event_count; i++) {
        const struct perf_event *event = &import->events[i], *best = import->event;
        bool better = !best || (is_clock(event->name) != is_clock(best->name)
                                    ? is_clock(event->name) : event->count > best->count);
        if (better)
            import->event = event;
    }
}

static void begin_recording(struct perf_import *import, const struct head *head, const char *name)
{
    const char *event = import->event->name;
    struct lapse_importer_head recording = {
        .program = name, .pid = head->pid, .period_ns = import->input->period_ns,
        .identity = lapse_hash_bytes(name, strlen(name)),
    };
    lapse_importer_head(import->importer, &recording);
    import->begun = true;
    import->first_pid = head->pid;
    if (head->period && *event && !is_clock(event)) {
        char note[EVENT_NAME_MAX + 64];
        snprintf(note, sizeof note, "weights are counts of %s, shown as nanoseconds", event);
        lapse_importer_note(import->importer, note);
    }
}

static void begin_sample(struct perf_import *import, const struct head *head)
{
    char *name = NULL;
    int size = (int)(head->name.size < COMMAND_MAX ? head->name.size : COMMAND_MAX);
    if (!is_event(import->event, &head->event)) {
        import->left_out++;
        return;
    }
    size = import->first_pid && head->pid && head->pid != import->first_pid
               ? asprintf(&name, "%.*s (pid %u)", size, head->name.at, head->pid)
               : asprintf(&name, "%.*s", size, head->name.at);
    if (size < 0)
        return;
    if (!import->begun)
        begin_recording(import, head, *name ? name : import->input->name);
    import->sample = (struct lapse_imported_sample){
        .thread = lapse_importer_thread(import->importer, head->tid ? head->tid : 1, name),
        .time_ns = head->time_ns, .count = 1,
        .weight_ns = head->period ? head->period : import->input->period_ns,
    };
    free(name);
    import->open = true;
    import->depth = import->inlined_count = 0;
    /* Without call chains the one frame stands behind the event. */
    struct word first = { head->rest, strcspn(head->rest, BLANKS) };
    import->flat = first.size >= 4 && is_hex(&first);
    if (import->flat)
        read_frame(import, head->rest);
}

static void read_line(struct perf_import *import, char *line)
{
    struct head head;
    if (!line[strspn(line, BLANKS)]) {
        close_sample(import);
    } else if (line[0] == '#') {
        return;
    } else if (line[0] != '\t' && parse_head(line, &head)) {
        close_sample(import);
        import->passed_over = false;
        begin_sample(import, &head);
        import->passed_over = !import->open;
    } else if (import->open && isspace((unsigned char)line[0])) {
        if (import->flat)
            import->depth = 0; /* what stood behind the event was no frame */
        import->flat = false;
        read_frame(import, line);
    } else if (!import->passed_over) {
        close_sample(import);
        import->skipped++;
    }
}

static void note_count(struct perf_import *import, uint64_t count, const char *what)
{
    char note[EVENT_NAME_MAX + 128];
    if (!count)
        return;
    snprintf(note, sizeof note, "%llu %s", (unsigned long long)count, what);
    lapse_importer_note(import->importer, note);
}

static int read_all(struct perf_import *import)
{
    char *line = NULL, others[EVENT_NAME_MAX + 64];
    size_t capacity = 0;
    struct head head;
    FILE *from = import->input->from;
    while (getline(&line, &capacity, from) > 0)
        if (line[0] != '\t' && line[0] != '#' && parse_head(line, &head))
            count_event(import, &head.event);
    choose_event(import);
    rewind(from);
    while (import->event && getline(&line, &capacity, from) > 0)
        read_line(import, line);
    free(line);
    if (ferror(from))
        return -EIO;
    if (!import->event)
        return -EBADMSG;
    close_sample(import);
    if (!import->samples)
        return -EBADMSG;
    snprintf(others, sizeof others, "samples of other events than %s were left out",
             import->event->name);
    note_count(import, import->left_out, others);
    note_count(import, import->skipped, "lines were not understood");
    return 0;
}

int lapse_import_perf(struct lapse_importer *importer, const struct lapse_import_input *input,
                      char *error, size_t error_size)
{
    struct perf_import *import = calloc(1, sizeof *import);
    int result = -ENOMEM;
    if (import) {
        *import = (struct perf_import){
            .importer = importer, .input = input,
            .leaf_first = malloc(DEPTH_MAX * sizeof *import->leaf_first),
            .root_first = malloc(DEPTH_MAX * sizeof *import->root_first),
        };
        if (import->leaf_first && import->root_first)
            result = read_all(import);
        free(import->leaf_first);
        free(import->root_first);
    }
    free(import);
    if (result)
        snprintf(error, error_size, "%s: %s", input->name,
                 result == -EBADMSG ? "no sample of `perf script` found: its fields must have times, or "
                                      "command, thread and event" : strerror(-result));
    return result;
}
