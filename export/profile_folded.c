/* SPDX-License-Identifier: MIT */
/* The profile's builder: folded text as an input. Frames are names alone. Offline only. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile_source.h"

#define DEPTH_MAX 65536u

/* Pseudo frames keep their meaning through text. */
static uint32_t flags_of(const char *name)
{
    if (!strcmp(name, "[truncated]") || !strcmp(name, "[unwind failed]"))
        return LAPSE_FUNCTION_PSEUDO | LAPSE_FUNCTION_CUT;
    return strcmp(name, "[not sampled]") ? 0 : LAPSE_FUNCTION_PSEUDO;
}

static uint32_t node_of(struct lapse_profile *profile, char *stack)
{
    uint32_t node = 0;
    char *rest = NULL;
    for (char *name = strtok_r(stack, ";", &rest); name && node != LAPSE_NONE;
         name = strtok_r(NULL, ";", &rest)) {
        struct lapse_profile_node child = {
            .parent = node,
            .function = lapse_profile_function(profile, name, NULL, NULL, 0, LAPSE_NONE, flags_of(name)),
        };
        if (profile->nodes[node].depth >= DEPTH_MAX)
            break;
        node = child.function == LAPSE_NONE ? LAPSE_NONE : lapse_profile_child(profile, &child);
    }
    return node;
}

/* The weight is what follows the last space. Decimals are rounded. */
static int parse_line(struct lapse_profile *profile, char *line)
{
    char *end, *space = strrchr(line, ' ');
    if (!space || space == line)
        return -EINVAL;
    double value = strtod(space + 1, &end);
    if (end == space + 1 || *end || !(value >= 0) || value > 9e18)
        return -EINVAL;
    uint64_t weight = strchr(space, '.') ? (uint64_t)(value + 0.5) : strtoull(space + 1, NULL, 10);
    while (space > line && space[-1] == ' ')
        space--;
    *space = 0;
    uint32_t node = node_of(profile, line);
    uint32_t leaf = node == LAPSE_NONE ? LAPSE_NONE : lapse_profile_leaf(profile, node, 0, 0);
    if (leaf == LAPSE_NONE)
        return -ENOMEM;
    profile->leaves[leaf].count += weight;
    profile->leaves[leaf].weight_ns += weight;
    profile->leaves[leaf].squares += (double)weight;
    return 0;
}

int lapse_profile_read_folded(struct lapse_profile *profile, int fd, const char *name, char *error,
                              size_t error_size)
{
    FILE *file = fdopen(fd, "r");
    char *line = NULL;
    size_t capacity = 0;
    unsigned long number = 0;
    ssize_t size;
    int result = file ? 0 : -errno;
    if (!file)
        close(fd);
    while (!result && (size = getline(&line, &capacity, file)) > 0) {
        number++;
        while (size && (line[size - 1] == '\n' || line[size - 1] == '\r'))
            line[--size] = 0;
        if (!size || line[0] == '#')
            continue;
        result = parse_line(profile, line);
    }
    if (!result && ferror(file))
        result = -EIO;
    if (result == -EINVAL)
        snprintf(error, error_size, "%s:%lu: neither a recording nor folded text: no weight at the end",
                 name, number);
    else if (result)
        snprintf(error, error_size, "%s: %s", name, strerror(-result));
    free(line);
    if (file)
        fclose(file);
    return result;
}
