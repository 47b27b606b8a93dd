/* SPDX-License-Identifier: MIT */
/* Addresses of one file to names, for the comparison with other symbolizers (bench/symbols.sh) and
 * for the tests: reads hexadecimal addresses, one a line, from standard input; writes per address
 * the frames, innermost first, as `llvm-symbolizer` does: function line, file:line, empty line.
 * With --stable the addresses are named in the order given instead of sorted. */
#include "offline.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAMES = 64 };

struct query {
    uint64_t address;
    size_t position, first;
    uint32_t count;
};

static int by_address(const void *a, const void *b)
{
    const struct query *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static int by_position(const void *a, const void *b)
{
    const struct query *x = a, *y = b;
    return x->position < y->position ? -1 : x->position > y->position;
}

static size_t read_queries(struct query **queries)
{
    char line[64];
    size_t count = 0, capacity = 0;
    while (fgets(line, sizeof line, stdin)) {
        if (count == capacity)
            *queries = reallocarray(*queries, capacity = capacity ? 2 * capacity : 1024,
                                    sizeof **queries);
        if (!*queries)
            abort();
        (*queries)[count] = (struct query){ .address = strtoull(line, NULL, 16),
                                            .position = count };
        count++;
    }
    return count;
}

static void print(const struct query *query, const struct lapse_inline_frame *frames)
{
    if (!query->count)
        puts("??\n??:0");
    for (uint32_t i = query->count; i-- > 0;)
        printf("%s\n%s:%u\n", frames[i].name ? frames[i].name : "??",
               frames[i].file ? frames[i].file : "??", frames[i].line);
    putchar('\n');
}

static void show_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)context, (void)total;
    fprintf(stderr, "\r\033[K%s %" PRIu64, what, done);
}

int main(int count, char **arguments)
{
    struct lapse_offline_options options = { .demangle = LAPSE_DEMANGLE_FULL,
                                             .no_debuginfod = true };
    struct lapse_offline *offline;
    struct query *queries = NULL;
    struct lapse_inline_frame *frames = NULL;
    size_t used = 0, capacity = 0;
    const char *file = NULL, *debug_dir = NULL;
    bool stable = false;
    for (int i = 1; i < count; i++) {
        if (!strcmp(arguments[i], "--mangled"))
            options.demangle = LAPSE_DEMANGLE_NONE;
        else if (!strcmp(arguments[i], "--stable"))
            stable = true;
        else if (!strcmp(arguments[i], "--debug-dir") && i + 1 < count)
            debug_dir = arguments[++i];
        else
            file = arguments[i];
    }
    char whole[PATH_MAX]; /* modules of recordings have absolute paths */
    if (file && realpath(file, whole))
        file = whole;
    if (!file) {
        fprintf(
            stderr,
            "usage: lapse-addresses [--mangled] [--stable] [--debug-dir DIR] FILE < ADDRESSES\n");
        return 2;
    }
    if (!stable)
        options.cache_bytes = 32 << 20; /* in order, a unit is not asked for twice */
    options.debug_dirs = &debug_dir;
    options.debug_dir_count = debug_dir ? 1 : 0;
    if (isatty(2))
        options.progress = show_progress;
    size_t total = read_queries(&queries);
    if (lapse_offline_create(&offline, &options))
        return 1;
    if (!stable)
        qsort(queries, total, sizeof *queries, by_address);
    for (size_t i = 0; i < total; i++) {
        if (capacity - used < FRAMES) {
            capacity = capacity ? capacity + capacity / 2 : 1024;
            frames = reallocarray(frames, capacity, sizeof *frames);
            if (!frames)
                abort();
        }
        queries[i].first = used;
        lapse_offline_file_frames(offline, file, NULL, queries[i].address, frames + used, FRAMES,
                                  &queries[i].count);
        used += queries[i].count;
        if (options.progress && i % 4096 == 0)
            show_progress(NULL, file, i, total);
    }
    qsort(queries, total, sizeof *queries, by_position);
    for (size_t i = 0; i < total; i++)
        print(&queries[i], frames + queries[i].first);
    for (uint32_t i = 0; i < lapse_offline_note_count(offline); i++)
        fprintf(stderr, "%s\n", lapse_offline_note(offline, i));
    free(frames);
    free(queries);
    lapse_offline_destroy(offline);
    return 0;
}
