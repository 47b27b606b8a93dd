/* SPDX-License-Identifier: MIT */
/* The profile's builder: folded text as an input. Frames are names alone. Offline only. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "event_text.h"
#include "folded_reader.h"
#include "profile_source.h"

#define DEPTH_MAX 65536u

/* Pseudo frames keep their meaning through text. */
static uint32_t flags_of(const char *name)
{
    if (!strcmp(name, LAPSE_TRUNCATED_NAME) || !strcmp(name, LAPSE_UNWIND_FAILED_NAME))
        return LAPSE_FUNCTION_PSEUDO | LAPSE_FUNCTION_CUT;
    return strcmp(name, "[not sampled]") ? 0 : LAPSE_FUNCTION_PSEUDO;
}

/* `cause` is set for a stack that is too deep: one that is cut would count for a frame that had
 * nothing of it. */
static uint32_t node_of(struct lapse_profile *profile, char *stack, size_t left, const char **cause)
{
    uint32_t node = 0;
    char *name;
    size_t size;
    while (lapse_stack_next(&stack, &left, &name, &size)) {
        if (profile->nodes[node].depth == DEPTH_MAX) {
            *cause = "a stack of more than 65,536 frames";
            return LAPSE_NONE;
        }
        const char *kept = lapse_strings_keep_bytes(&profile->source->strings, name, size);
        struct lapse_profile_node child = { .parent = node };
        if (!kept)
            return LAPSE_NONE;
        child.function =
            lapse_profile_function(profile, kept, NULL, NULL, 0, LAPSE_NONE, flags_of(kept));
        if (child.function == LAPSE_NONE)
            return LAPSE_NONE;
        node = lapse_profile_child(profile, &child);
        if (node == LAPSE_NONE)
            return LAPSE_NONE;
    }
    return node;
}

static int add_line(struct lapse_profile *profile, const struct lapse_folded_line *line,
                    const char **cause)
{
    uint32_t node = node_of(profile, line->stack, line->size, cause);
    uint32_t leaf = node == LAPSE_NONE ? LAPSE_NONE : lapse_profile_leaf(profile, node, 0, 0);
    if (leaf == LAPSE_NONE)
        return *cause ? -E2BIG : -ENOMEM;
    profile->leaves[leaf].count += line->value;
    profile->leaves[leaf].weight_ns += line->value;
    profile->leaves[leaf].squares += (double)line->value;
    return 0;
}

static int add_lines(struct lapse_profile *profile, struct lapse_lines *lines, const char **cause)
{
    struct lapse_folded_line line;
    int result;
    while ((result = lapse_folded_next(lines, &line, cause)) > 0) {
        result = add_line(profile, &line, cause);
        if (result)
            return result;
    }
    return result;
}

int lapse_profile_read_folded(struct lapse_profile *profile, int fd, const char *name, char *error,
                              size_t error_size)
{
    struct lapse_lines lines;
    const char *cause = NULL;
    int result = lapse_lines_attach(&lines, fd, name);
    if (!result) {
        result = add_lines(profile, &lines, &cause);
        if (cause)
            snprintf(error, error_size, "%s:%llu: %s%s", name,
                     (unsigned long long)lines.number,
                     result == -E2BIG ? "" : "neither a recording nor folded text: ", cause);
        lapse_lines_close(&lines);
    }
    if (result && !cause)
        snprintf(error, error_size, "%s: %s", name, strerror(-result));
    return result;
}
