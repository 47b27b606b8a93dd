/* SPDX-License-Identifier: MIT */
/* Folded text of a replay. The lines come out sorted without sorting lines: below each parent two
 * items stand for a child, its own line (`name`) and all lines below it (`name;`). Sorted by bytes,
 * these items are in the order of the lines, since no name holds a bare `;`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "folded_set.h"
#include "replay.h"
#include "text.h"

/* A name as written, with a `;` behind it that only the item of what is below counts. */
struct name { size_t at; uint32_t size; };

struct item {
    uint32_t node;
    bool below;
};

struct writer {
    struct lapse_replay_stacks stacks;
    struct lapse_output *output, names, line;
    struct name *texts;       /* by number of the name */
    uint32_t *first, *next;   /* children of a node; 0: none */
    struct item *items;       /* of all open levels, next one on top */
    size_t item_count, item_capacity;
};

static int escape_names(struct writer *writer)
{
    const struct lapse_strings *names = writer->stacks.names;
    writer->texts = malloc((names->count + 1ull) * sizeof *writer->texts);
    if (!writer->texts)
        return -ENOMEM;
    for (uint32_t i = 0; i < names->count; i++) {
        size_t room = 4ull * names->sizes[i] + 1;
        char *to = lapse_output_room(&writer->names, room);
        if (!to)
            return -ENOMEM;
        const char *name = names->texts[i];
        uint32_t size = 0;
        if (*name == '#') { /* else the line would read as a comment */
            size = sizeof "\\x23" - 1;
            memcpy(to, "\\x23", size);
            name++;
        }
        size += (uint32_t)lapse_escaped_name(to + size, room - 1 - size, name);
        to[size] = ';';
        writer->texts[i] = (struct name){ writer->names.size, size };
        writer->names.size += size + 1ull;
    }
    return 0;
}

/* Link children to parents; from the last to the first, so lists come out in order of number. */
static int link_children(struct writer *writer)
{
    uint32_t count = writer->stacks.count;
    writer->first = calloc(count, sizeof *writer->first);
    writer->next = calloc(count, sizeof *writer->next);
    if (!writer->first || !writer->next)
        return -ENOMEM;
    for (uint32_t node = count; node-- > 1;) {
        uint32_t parent = writer->stacks.nodes[node].parent;
        writer->next[node] = writer->first[parent];
        writer->first[parent] = node;
    }
    return 0;
}

static const struct name *name_of(const struct writer *writer, uint32_t node)
{
    return &writer->texts[writer->stacks.nodes[node].function - 1];
}

/* Last first: the list is a stack. */
static int by_text(const void *left, const void *right, void *context)
{
    const struct writer *writer = context;
    const struct item *a = left, *b = right;
    const struct name *a_name = name_of(writer, a->node), *b_name = name_of(writer, b->node);
    return lapse_folded_compare(writer->names.bytes + b_name->at, b_name->size + b->below,
                                writer->names.bytes + a_name->at, a_name->size + a->below);
}

static int push_item(struct writer *writer, uint32_t node, bool below)
{
    if (writer->item_count == writer->item_capacity) {
        size_t capacity = writer->item_capacity ? writer->item_capacity * 2 : 256;
        void *items = realloc(writer->items, capacity * sizeof *writer->items);
        if (!items)
            return -ENOMEM;
        writer->items = items;
        writer->item_capacity = capacity;
    }
    writer->items[writer->item_count++] = (struct item){ node, below };
    return 0;
}

static int push_children(struct writer *writer, uint32_t parent)
{
    size_t begin = writer->item_count;
    int error = 0;
    for (uint32_t node = writer->first[parent]; !error && node; node = writer->next[node]) {
        if (writer->stacks.values[node])
            error = push_item(writer, node, false);
        if (!error && writer->first[node])
            error = push_item(writer, node, true);
    }
    if (!error && writer->item_count - begin > 1)
        qsort_r(writer->items + begin, writer->item_count - begin, sizeof *writer->items, by_text,
                writer);
    return error;
}

/* Walk down. line.bytes holds the stack of the item before; `ends` says for each depth where it
 * ends there, so that only what differs is written anew. */
static int write_lines(struct writer *writer, size_t *ends)
{
    int error = push_children(writer, 0);
    ends[0] = 0;
    while (!error && writer->item_count) {
        struct item item = writer->items[--writer->item_count];
        const struct name *name = name_of(writer, item.node);
        uint32_t depth = writer->stacks.nodes[item.node].depth;
        writer->line.size = ends[depth - 1];
        lapse_output_bytes(&writer->line, writer->names.bytes + name->at, name->size + item.below);
        if (writer->line.error)
            return writer->line.error;
        ends[depth] = writer->line.size;
        if (item.below)
            error = push_children(writer, item.node);
        else
            lapse_folded_write_line(writer->output, writer->line.bytes, writer->line.size,
                                    writer->stacks.values[item.node]);
    }
    return error;
}

static size_t *room_for_ends(const struct writer *writer)
{
    uint32_t deepest = 0;
    for (uint32_t node = 1; node < writer->stacks.count; node++)
        if (writer->stacks.nodes[node].depth > deepest)
            deepest = writer->stacks.nodes[node].depth;
    return calloc(deepest + 1ull, sizeof(size_t));
}

int lapse_replay_write(const struct lapse_replay *replay, struct lapse_output *output)
{
    struct writer writer = { .stacks = lapse_replay_stacks(replay), .output = output };
    size_t *ends = room_for_ends(&writer);
    int error = ends ? lapse_output_init(&writer.names, NULL) : -ENOMEM;
    if (!error)
        error = lapse_output_init(&writer.line, NULL);
    if (!error)
        error = escape_names(&writer);
    if (!error)
        error = link_children(&writer);
    if (!error)
        error = write_lines(&writer, ends);
    lapse_output_fini(&writer.names);
    lapse_output_fini(&writer.line);
    free(writer.texts);
    free(writer.first);
    free(writer.next);
    free(writer.items);
    free(ends);
    return error;
}
