/* SPDX-License-Identifier: MIT */
/* Merge of folded text: a heap of sorted sources. A source is a sorted file, a spilled part, or the
 * part that is still in memory. See folded_merge.h. */
#include "folded_merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event_text.h"
#include "folded_reader.h"
#include "folded_set.h"

enum { PART_BYTES = 24 << 20, RUNS_MAX = 64 };

struct source {
    struct lapse_lines lines;
    const struct lapse_folded_set *set; /* instead of lines */
    uint32_t set_at;
    struct lapse_folded_line line; /* the current one */
    bool is_run;
};

/* What an input shows of its depth limit. */
struct depths {
    const char *path;
    uint32_t cut, whole; /* deepest stack with a marker (without it), deepest without one */
};

struct lapse_folded_merge {
    struct lapse_folded_merge_options options;
    struct source *sources;
    uint32_t source_count, source_capacity, run_count;
    struct depths *depths;
    uint32_t depths_count;
    struct lapse_folded_set part;
    char *text; /* of a cut stack, or the stack before */
    size_t text_capacity;
    uint64_t bad_lines;
    char error[600];
};

int lapse_folded_merge_create(struct lapse_folded_merge **made,
                              const struct lapse_folded_merge_options *options)
{
    struct lapse_folded_merge *merge = calloc(1, sizeof *merge);
    if (!merge)
        return -ENOMEM;
    merge->options = *options;
    if (!merge->options.part_bytes)
        merge->options.part_bytes = PART_BYTES;
    *made = merge;
    return 0;
}

static void close_source(struct source *source)
{
    int fd = source->is_run ? source->lines.fd : -1;
    if (!source->set)
        lapse_lines_close(&source->lines);
    if (fd >= 0)
        close(fd);
}

void lapse_folded_merge_destroy(struct lapse_folded_merge *merge)
{
    if (!merge)
        return;
    for (uint32_t i = 0; i < merge->source_count; i++)
        close_source(&merge->sources[i]);
    free(merge->sources);
    free(merge->depths);
    free(merge->text);
    lapse_folded_set_free(&merge->part);
    free(merge);
}

static int failed(struct lapse_folded_merge *merge, const char *path, uint64_t line,
                  const char *cause, int error)
{
    if (merge->error[0])
        return error;
    if (line)
        snprintf(merge->error, sizeof merge->error, "%s:%llu: %s", path, (unsigned long long)line,
                 cause);
    else
        snprintf(merge->error, sizeof merge->error, "%s: %s", path, cause);
    return error;
}

static int failed_system(struct lapse_folded_merge *merge, const char *path, int error)
{
    if (error == -EOVERFLOW)
        return failed(merge, path, 0, "the values of a stack add up to more than 64 bits", error);
    return failed(merge, path, 0, strerror(-error), error);
}

static char *text_room(struct lapse_folded_merge *merge, size_t size)
{
    if (size > merge->text_capacity) {
        char *text = realloc(merge->text, size * 2);
        if (!text)
            return NULL;
        merge->text = text;
        merge->text_capacity = size * 2;
    }
    return merge->text;
}

static struct source *add_source(struct lapse_folded_merge *merge)
{
    if (merge->source_count == merge->source_capacity) {
        uint32_t capacity = merge->source_capacity ? merge->source_capacity * 2 : 16;
        void *sources = realloc(merge->sources, capacity * sizeof *merge->sources);
        if (!sources)
            return NULL;
        merge->sources = sources;
        merge->source_capacity = capacity;
    }
    merge->sources[merge->source_count] = (struct source){ .lines.fd = -1 };
    return &merge->sources[merge->source_count++];
}

/* ---- the heap: sources[order[0]] has the first stack ---- */

static int advance(struct source *source)
{
    const char *cause;
    int status;
    if (source->set) {
        const struct lapse_folded_entry *entry = &source->set->entries[source->set_at];
        if (source->set_at == source->set->count)
            return 0;
        source->set_at++;
        source->line = (struct lapse_folded_line){ source->set->bytes + entry->at, entry->size,
                                                   entry->value };
        return 1;
    }
    do /* bad lines were met, and refused or counted, when the file was checked */
        status = lapse_folded_next(&source->lines, &source->line, &cause);
    while (status == -EBADMSG);
    return status;
}

static bool comes_first(const struct source *a, const struct source *b)
{
    return lapse_folded_compare(a->line.stack, a->line.size, b->line.stack, b->line.size) < 0;
}

static void sink(struct source **heap, uint32_t count, uint32_t at)
{
    struct source *moved = heap[at];
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= count)
            break;
        if (child + 1 < count && comes_first(heap[child + 1], heap[child]))
            child++;
        if (!comes_first(heap[child], moved))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

/* Sources with a first line, as a heap. */
static int make_heap(struct lapse_folded_merge *merge, struct source **heap, uint32_t *count,
                     bool runs_only)
{
    *count = 0;
    for (uint32_t i = 0; i < merge->source_count; i++) {
        struct source *source = &merge->sources[i];
        if (runs_only && !source->is_run)
            continue;
        int status = advance(source);
        if (status < 0)
            return failed_system(merge, source->lines.path, status);
        if (status)
            heap[(*count)++] = source;
    }
    for (uint32_t i = *count / 2; i-- > 0;)
        sink(heap, *count, i);
    return 0;
}

static int merge_heap(struct lapse_folded_merge *merge, struct source **heap, uint32_t count,
                      struct lapse_output *output)
{
    size_t size = 0;
    uint64_t value = 0;
    bool any = false;
    while (count) {
        struct source *first = heap[0];
        const struct lapse_folded_line *line = &first->line;
        if (any && line->size == size && !memcmp(line->stack, merge->text, size)) {
            if (__builtin_add_overflow(value, line->value, &value))
                return failed_system(merge, "merge", -EOVERFLOW);
        } else {
            if (any)
                lapse_folded_write_line(output, merge->text, size, value);
            if (!text_room(merge, line->size))
                return failed_system(merge, "merge", -ENOMEM);
            memcpy(merge->text, line->stack, line->size);
            size = line->size;
            value = line->value;
            any = true;
        }
        int status = advance(first);
        if (status < 0)
            return failed_system(merge, first->lines.path, status);
        if (!status)
            heap[0] = heap[--count];
        if (count)
            sink(heap, count, 0);
    }
    if (any)
        lapse_folded_write_line(output, merge->text, size, value);
    return 0;
}

static int merge_sources(struct lapse_folded_merge *merge, bool runs_only,
                         struct lapse_output *output)
{
    struct source **heap = malloc((merge->source_count + 1) * sizeof *heap);
    uint32_t count;
    int error = heap ? make_heap(merge, heap, &count, runs_only) : -ENOMEM;
    if (!error)
        error = merge_heap(merge, heap, count, output);
    free(heap);
    return error;
}

/* ---- parts that do not fit ---- */

/* An unlinked file in TMPDIR that `write` fills; becomes a source. */
static int add_run(struct lapse_folded_merge *merge,
                   int (*write)(struct lapse_folded_merge *, struct lapse_output *))
{
    const char *folder = getenv("TMPDIR");
    char path[512];
    struct lapse_output output;
    snprintf(path, sizeof path, "%s/lapse-merge-XXXXXX", folder && *folder ? folder : "/tmp");
    int fd = mkstemp(path), copy = fd < 0 ? -1 : dup(fd);
    FILE *file = copy < 0 ? NULL : fdopen(copy, "w");
    int error = file ? 0 : -errno;
    if (fd >= 0)
        unlink(path);
    if (!error)
        error = lapse_output_init(&output, file);
    if (!error) {
        error = write(merge, &output);
        int finished = lapse_output_finish(&output);
        error = error ? error : finished;
        lapse_output_fini(&output);
    }
    if (file && fclose(file) && !error)
        error = -errno;
    struct source *source = error ? NULL : add_source(merge);
    if (!error && (!source || lseek(fd, 0, SEEK_SET) < 0))
        error = -ENOMEM;
    if (!error)
        error = lapse_lines_attach(&source->lines, fd, "temporary file");
    if (error) {
        if (fd >= 0)
            close(fd);
        return failed_system(merge, path, error);
    }
    source->is_run = true;
    merge->run_count++;
    return 0;
}

static int write_part(struct lapse_folded_merge *merge, struct lapse_output *output)
{
    lapse_folded_set_sort(&merge->part);
    lapse_folded_set_write(&merge->part, output);
    lapse_folded_set_clear(&merge->part);
    return 0;
}

static int write_runs(struct lapse_folded_merge *merge, struct lapse_output *output)
{
    return merge_sources(merge, true, output);
}

/* Many runs become one, so that neither descriptors nor buffers grow with the input. */
static int join_runs(struct lapse_folded_merge *merge)
{
    uint32_t old_count = merge->source_count, kept = 0;
    int error = add_run(merge, write_runs);
    if (error)
        return error;
    for (uint32_t i = 0; i < merge->source_count; i++) {
        if (i < old_count && merge->sources[i].is_run)
            close_source(&merge->sources[i]);
        else
            merge->sources[kept++] = merge->sources[i];
    }
    merge->source_count = kept;
    merge->run_count = 1;
    return 0;
}

static int spill(struct lapse_folded_merge *merge)
{
    int error = add_run(merge, write_part);
    if (!error && merge->run_count >= RUNS_MAX)
        error = join_runs(merge);
    return error;
}

static void note_depth(struct depths *depths, const char *stack, size_t size)
{
    uint32_t depth = lapse_folded_depth(stack, size);
    uint32_t *deepest = lapse_folded_marker(stack, size) ? &depths->cut : &depths->whole;
    if (depth > *deepest)
        *deepest = depth;
}

int lapse_folded_merge_input(struct lapse_folded_merge *merge, const char *path)
{
    struct depths *depths = realloc(merge->depths, (merge->depths_count + 1) * sizeof *depths);
    if (!depths)
        return failed_system(merge, path, -ENOMEM);
    merge->depths = depths;
    depths[merge->depths_count++] = (struct depths){ .path = path };
    return 0;
}

int lapse_folded_merge_stack(struct lapse_folded_merge *merge, const char *stack, size_t size,
                             uint64_t value)
{
    if (merge->depths_count)
        note_depth(&merge->depths[merge->depths_count - 1], stack, size);
    size_t cut = merge->options.depth ? lapse_folded_innermost(stack, size, merge->options.depth)
                                      : 0;
    if (cut) {
        size_t marker = strlen(LAPSE_TRUNCATED_NAME ";");
        char *text = text_room(merge, marker + size - cut);
        if (!text)
            return failed_system(merge, "merge", -ENOMEM);
        memcpy(text, LAPSE_TRUNCATED_NAME ";", marker);
        memcpy(text + marker, stack + cut, size - cut);
        stack = text;
        size = marker + size - cut;
    }
    int error = lapse_folded_set_add(&merge->part, stack, size, value);
    if (!error && lapse_folded_set_weight(&merge->part) > merge->options.part_bytes)
        return spill(merge);
    return error ? failed_system(merge, "merge", error) : 0;
}

/* ---- files ---- */

/* Bad lines are refused or counted here. Returns 0 to pass over it. */
static int bad_line(struct lapse_folded_merge *merge, const struct lapse_lines *lines,
                    const char *cause)
{
    if (!merge->options.skip_bad)
        return failed(merge, lines->path, lines->number, cause, -EBADMSG);
    merge->bad_lines++;
    return 0;
}

/* The next good line: 1, 0 at the end, or a negative errno. */
static int next_line(struct lapse_folded_merge *merge, struct lapse_lines *lines,
                     struct lapse_folded_line *line)
{
    const char *cause;
    int status;
    do
        status = lapse_folded_next(lines, line, &cause);
    while (status == -EBADMSG && !bad_line(merge, lines, cause));
    return status < 0 ? failed_system(merge, lines->path, status) : status;
}

/* Does the file hold its stacks in order? 1, 0, or a negative errno. */
static int check_order(struct lapse_folded_merge *merge, struct lapse_lines *lines)
{
    struct depths *depths = &merge->depths[merge->depths_count - 1];
    struct lapse_folded_line line;
    size_t before = 0;
    int status;
    while ((status = next_line(merge, lines, &line)) > 0) {
        if (lapse_folded_compare(line.stack, line.size, merge->text, before) < 0)
            return 0;
        if (!text_room(merge, line.size))
            return failed_system(merge, lines->path, -ENOMEM);
        memcpy(merge->text, line.stack, line.size);
        before = line.size;
        note_depth(depths, line.stack, line.size);
    }
    return status ? status : 1;
}

static int take_all(struct lapse_folded_merge *merge, struct lapse_lines *lines)
{
    struct lapse_folded_line line;
    int status, error = 0;
    while (!error && (status = next_line(merge, lines, &line)) > 0)
        error = lapse_folded_merge_stack(merge, line.stack, line.size, line.value);
    return error ? error : status;
}

static int reopen(struct lapse_lines *lines, const char *path)
{
    lapse_lines_close(lines);
    return lapse_lines_open(lines, path);
}

/* A file that can be read again: streamed when it is sorted. */
static int add_file(struct lapse_folded_merge *merge, struct lapse_lines *lines, const char *path)
{
    uint64_t bad_before = merge->bad_lines;
    int sorted = text_room(merge, 1) ? check_order(merge, lines) : -ENOMEM;
    if (sorted < 0)
        return sorted;
    int error = reopen(lines, path);
    if (error)
        return failed_system(merge, path, error);
    if (!sorted) {
        merge->bad_lines = bad_before;
        return take_all(merge, lines);
    }
    struct source *source = add_source(merge);
    if (!source)
        return failed_system(merge, path, -ENOMEM);
    source->lines = *lines;
    *lines = (struct lapse_lines){ .fd = -1, .ended = true };
    return 0;
}

int lapse_folded_merge_file(struct lapse_folded_merge *merge, const char *path)
{
    struct lapse_lines lines;
    int error = lapse_lines_open(&lines, path);
    if (error)
        return failed_system(merge, path, error);
    error = lapse_folded_merge_input(merge, path);
    if (!error)
        error = merge->options.depth ? take_all(merge, &lines) : add_file(merge, &lines, path);
    lapse_lines_close(&lines);
    return error;
}

int lapse_folded_merge_lines(struct lapse_folded_merge *merge, struct lapse_lines *lines)
{
    int error = lapse_folded_merge_input(merge, lines->path);
    return error ? error : take_all(merge, lines);
}

int lapse_folded_merge_write(struct lapse_folded_merge *merge, struct lapse_output *output)
{
    lapse_folded_set_sort(&merge->part);
    if (merge->part.count) {
        struct source *source = add_source(merge);
        if (!source)
            return failed_system(merge, "merge", -ENOMEM);
        source->set = &merge->part;
    }
    return merge_sources(merge, false, output);
}

const char *lapse_folded_merge_error(const struct lapse_folded_merge *merge)
{
    return merge->error;
}

uint64_t lapse_folded_merge_bad_lines(const struct lapse_folded_merge *merge)
{
    return merge->bad_lines;
}

/* The lowest limit against an input that reaches deeper, cut or not. */
bool lapse_folded_merge_limits(const struct lapse_folded_merge *merge,
                               struct lapse_folded_limits *limits)
{
    const struct depths *low = NULL;
    for (uint32_t i = 0; i < merge->depths_count; i++)
        if (merge->depths[i].cut && (!low || merge->depths[i].cut < low->cut))
            low = &merge->depths[i];
    for (uint32_t i = 0; low && i < merge->depths_count; i++) {
        const struct depths *high = &merge->depths[i];
        uint32_t deepest = high->cut > high->whole ? high->cut : high->whole;
        if (high == low || deepest <= low->cut)
            continue;
        *limits = (struct lapse_folded_limits){ low->path, high->path, low->cut, high->cut };
        return true;
    }
    return false;
}
