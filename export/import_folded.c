/* SPDX-License-Identifier: MIT */
/* Folded text -> recording. A line is `root;...;leaf COUNT`; empty lines and lines that begin with `#`
 * are passed over, anything else that does not fit is an error with its line. A root frame of the
 * form `[NAME tid=N]` is a thread; `_[k]`-like marks stay part of the name.
 * Called by `lapse import`. Offline only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "importer.h"
#include "index.h"

#define DEPTH_MAX 65536u

struct folded_import {
    struct lapse_importer *importer;
    uint32_t *stack;
    uint32_t thread;
};

/* `[NAME tid=N]`: the thread of the line. */
static bool thread_frame(struct folded_import *import, const char *name)
{
    size_t size = strlen(name);
    const char *mark = strstr(name, " tid=");
    char *end;
    if (name[0] != '[' || !mark || name[size - 1] != ']')
        return false;
    unsigned long tid = strtoul(mark + 5, &end, 10);
    if (end != name + size - 1 || end == mark + 5 || !tid || tid > UINT32_MAX)
        return false;
    char *text = strndup(name + 1, (size_t)(mark - name) - 1);
    if (text)
        import->thread = lapse_importer_thread(import->importer, (uint32_t)tid, text);
    free(text);
    return text != NULL;
}

static int read_stack(struct folded_import *import, char *stack, uint32_t *depth)
{
    *depth = 0;
    import->thread = LAPSE_INDEX_NONE;
    for (char *name; (name = strsep(&stack, ";"));) {
        if (!*depth && import->thread == LAPSE_INDEX_NONE && thread_frame(import, name))
            continue;
        if (*depth == DEPTH_MAX)
            return -E2BIG;
        struct lapse_imported_function function = { .name = *name ? name : "[unknown]",
                                                    .module = LAPSE_INDEX_NONE };
        struct lapse_imported_line line = {
            .function = lapse_importer_function(import->importer, &function),
        };
        if (line.function == LAPSE_INDEX_NONE)
            return -ENOMEM;
        import->stack[(*depth)++] = lapse_importer_location(import->importer, &line, 1);
    }
    if (import->thread == LAPSE_INDEX_NONE)
        import->thread = lapse_importer_thread(import->importer, 1, "folded");
    return 0;
}

static int read_line(struct folded_import *import, char *line)
{
    char *end, *space = strrchr(line, ' ');
    if (!space || space == line)
        return -EINVAL;
    errno = 0;
    unsigned long long count = strtoull(space + 1, &end, 10);
    if (end == space + 1 || space[1] < '0' || space[1] > '9' || errno)
        return -EINVAL;
    if (*end == '.') { /* decimals are rounded */
        char digit = end[1];
        end += 1 + strspn(end + 1, "0123456789");
        count += digit >= '5' && digit <= '9';
    }
    if (*end)
        return -EINVAL;
    while (space > line && space[-1] == ' ')
        space--;
    *space = 0;
    struct lapse_imported_sample sample = { .locations = import->stack, .count = count };
    int error = read_stack(import, line, &sample.depth);
    sample.thread = import->thread;
    if (!error && count)
        lapse_importer_sample(import->importer, &sample);
    return error;
}

int lapse_import_folded(struct lapse_importer *importer, const struct lapse_import_input *input,
                        char *error, size_t error_size)
{
    struct folded_import import = { .importer = importer };
    struct lapse_importer_head head = {
        .program = input->name, .period_ns = input->period_ns, .counts = true,
        .identity = lapse_hash_bytes(input->name, strlen(input->name)),
    };
    char *line = NULL;
    size_t capacity = 0;
    unsigned long number = 0;
    ssize_t size;
    int result = 0;
    import.stack = malloc(DEPTH_MAX * sizeof *import.stack);
    if (!import.stack)
        return -ENOMEM;
    lapse_importer_head(importer, &head);
    while (!result && (size = getline(&line, &capacity, input->from)) > 0) {
        number++;
        while (size && (line[size - 1] == '\n' || line[size - 1] == '\r'))
            line[--size] = 0;
        if (size && line[0] != '#')
            result = read_line(&import, line);
    }
    if (!result && ferror(input->from))
        result = -EIO;
    if (result)
        snprintf(error, error_size, "%s:%lu: %s", input->name, number,
                 result == -EINVAL ? "not a line of folded text (frames;...;frame count)"
                                   : strerror(-result));
    free(line);
    free(import.stack);
    return result;
}
