/* SPDX-License-Identifier: MIT */
/* Replay of events, used by `lapse fold` and by the tests that judge the engine. */
#include "replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "text.h"

enum { SHOWN_NAME = 200 };

struct thread {
    uint64_t last;
    uint32_t depth, capacity;
    uint32_t *nodes; /* of the call tree, outermost first */
};

struct lapse_replay {
    bool repair;
    struct lapse_call_tree *tree; /* function: number of the name + 1 */
    struct lapse_strings names, thread_names;
    struct thread *threads; /* by number of the name */
    uint32_t thread_count, recent;
    uint64_t *values; /* by node */
    uint32_t value_count;
    uint64_t position;
    struct lapse_replay_repairs repairs;
    char cause[512];
};

int lapse_replay_create(struct lapse_replay **made, bool repair)
{
    struct lapse_replay *replay = calloc(1, sizeof *replay);
    if (!replay)
        return -ENOMEM;
    replay->repair = repair;
    if (lapse_call_tree_create(&replay->tree, &lapse_heap)) {
        free(replay);
        return -ENOMEM;
    }
    *made = replay;
    return 0;
}

void lapse_replay_destroy(struct lapse_replay *replay)
{
    if (!replay)
        return;
    for (uint32_t i = 0; i < replay->thread_count; i++)
        free(replay->threads[i].nodes);
    free(replay->threads);
    free(replay->values);
    lapse_strings_free(&replay->names);
    lapse_strings_free(&replay->thread_names);
    lapse_call_tree_destroy(replay->tree);
    free(replay);
}

static struct thread *find_thread(struct lapse_replay *replay, const char *name, size_t size)
{
    struct lapse_strings *names = &replay->thread_names;
    uint32_t number = replay->recent;
    if (replay->thread_count && names->sizes[number] == size &&
        !memcmp(names->texts[number], name, size))
        return &replay->threads[number];
    number = lapse_strings_number(names, name, size);
    if (number == LAPSE_INDEX_NONE)
        return NULL;
    if (number == replay->thread_count) {
        void *grown = lapse_array_grow(replay->threads, number, sizeof *replay->threads);
        if (!grown)
            return NULL;
        replay->threads = grown;
        replay->threads[number] = (struct thread){ 0 };
        replay->thread_count++;
    }
    replay->recent = number;
    return &replay->threads[number];
}

static const struct lapse_call_node *nodes_of(const struct lapse_replay *replay)
{
    uint32_t count;
    return lapse_call_tree_nodes(replay->tree, &count);
}

static uint32_t name_at(const struct lapse_replay *replay, const struct thread *thread,
                        uint32_t depth)
{
    return (uint32_t)nodes_of(replay)[thread->nodes[depth]].function - 1;
}

/* A name in a message: no control characters, not for ever. */
static const char *shown(char to[SHOWN_NAME], const char *name)
{
    size_t size = lapse_escaped_name(to, SHOWN_NAME - 4, name);
    memcpy(to + size, size > SHOWN_NAME - 8 ? "..." : "", size > SHOWN_NAME - 8 ? 4 : 1);
    return to;
}

static int refuse_order(struct lapse_replay *replay, const struct thread *thread, uint64_t time)
{
    snprintf(replay->cause, sizeof replay->cause,
             "event %llu: time goes back from %llu to %llu in thread %.64s",
             (unsigned long long)replay->position, (unsigned long long)thread->last,
             (unsigned long long)time, replay->thread_names.texts[thread - replay->threads]);
    return -EINVAL;
}

static int refuse_depth(struct lapse_replay *replay, const struct thread *thread, bool is_start,
                        uint32_t depth, const char *name)
{
    char text[SHOWN_NAME];
    snprintf(replay->cause, sizeof replay->cause,
             "event %llu: %s of '%s' at depth %u, but the stack has %u frames",
             (unsigned long long)replay->position, is_start ? "start" : "end", shown(text, name),
             depth, thread->depth);
    return -EINVAL;
}

static int refuse_end(struct lapse_replay *replay, const struct thread *thread, const char *name)
{
    char wanted[SHOWN_NAME], top[SHOWN_NAME];
    const char *found = "nothing";
    if (thread->depth)
        found = shown(top, replay->names.texts[name_at(replay, thread, thread->depth - 1)]);
    snprintf(replay->cause, sizeof replay->cause, "event %llu: end of '%s', but on top is %s",
             (unsigned long long)replay->position, shown(wanted, name), found);
    return -EINVAL;
}

static int push_frame(struct lapse_replay *replay, struct thread *thread, uint32_t name)
{
    if (thread->depth == thread->capacity) {
        uint32_t capacity = thread->capacity ? thread->capacity * 2 : 64;
        uint32_t *nodes = realloc(thread->nodes, capacity * sizeof *nodes);
        if (!nodes)
            return -ENOMEM;
        thread->nodes = nodes;
        thread->capacity = capacity;
    }
    uint32_t parent = thread->depth ? thread->nodes[thread->depth - 1] : 0;
    uint32_t node = lapse_call_tree_child(replay->tree, parent, 0, name + 1ull, 0);
    if (!node)
        return -ENOMEM;
    if (node >= replay->value_count) {
        uint32_t count = (node + 1) * 2;
        uint64_t *values = realloc(replay->values, count * sizeof *values);
        if (!values)
            return -ENOMEM;
        memset(values + replay->value_count, 0, (count - replay->value_count) * sizeof *values);
        replay->values = values;
        replay->value_count = count;
    }
    thread->nodes[thread->depth++] = node;
    return 0;
}

static int start(struct lapse_replay *replay, struct thread *thread, uint32_t depth, uint32_t name)
{
    if (depth != thread->depth && !replay->repair)
        return refuse_depth(replay, thread, true, depth, replay->names.texts[name]);
    if (depth < thread->depth) {
        replay->repairs.lost_exits += thread->depth - depth;
        thread->depth = depth;
    }
    replay->repairs.lost_starts += depth > thread->depth;
    return push_frame(replay, thread, name);
}

/* An end that is not that of the frame on top at its depth; see ends_top. */
static int end(struct lapse_replay *replay, struct thread *thread, uint32_t depth, uint32_t name)
{
    uint32_t at = thread->depth;
    bool on_top = at && name_at(replay, thread, at - 1) == name;
    if (!replay->repair)
        return on_top ? refuse_depth(replay, thread, false, depth, replay->names.texts[name])
                      : refuse_end(replay, thread, replay->names.texts[name]);
    if (depth < at && name_at(replay, thread, depth) == name)
        at = depth + 1; /* where the event says it is */
    else
        while (at && name_at(replay, thread, at - 1) != name)
            at--;
    if (!at) {
        replay->repairs.stray_ends++;
        return 0;
    }
    replay->repairs.lost_exits += thread->depth - at;
    thread->depth = at - 1;
    return 0;
}

/* Most events by far: the end of what is on top. Its name needs no look-up. */
static bool ends_top(const struct lapse_replay *replay, const struct thread *thread, uint32_t depth,
                     const char *name, size_t name_size)
{
    if (!thread->depth || depth != thread->depth - 1)
        return false;
    uint32_t top = name_at(replay, thread, depth);
    return replay->names.sizes[top] == name_size &&
           !memcmp(replay->names.texts[top], name, name_size);
}

/* The time since the thread's last event goes to the stack that was live. */
static int pass_time(struct lapse_replay *replay, struct thread *thread, uint64_t time)
{
    if (time < thread->last) {
        if (!replay->repair)
            return refuse_order(replay, thread, time);
        replay->repairs.times++;
        time = thread->last;
    }
    if (thread->depth) {
        uint64_t *value = &replay->values[thread->nodes[thread->depth - 1]];
        if (__builtin_add_overflow(*value, time - thread->last, value))
            return -EOVERFLOW;
    }
    thread->last = time;
    return 0;
}

int lapse_replay_event(struct lapse_replay *replay, uint64_t time, const char *thread_name,
                       size_t thread_size, bool is_start, uint32_t depth, const char *name,
                       size_t name_size)
{
    struct thread *thread = find_thread(replay, thread_name, thread_size);
    int error = thread ? pass_time(replay, thread, time) : -ENOMEM;
    if (error)
        return error;
    if (!is_start && ends_top(replay, thread, depth, name, name_size)) {
        thread->depth--;
    } else {
        uint32_t number = lapse_strings_number(&replay->names, name, name_size);
        if (number == LAPSE_INDEX_NONE)
            return -ENOMEM;
        error = is_start ? start(replay, thread, depth, number) : end(replay, thread, depth, number);
    }
    replay->position += !error;
    return error;
}

int lapse_replay_finish(struct lapse_replay *replay)
{
    char text[SHOWN_NAME];
    for (uint32_t i = 0; i < replay->thread_count; i++) {
        struct thread *thread = &replay->threads[i];
        if (!thread->depth)
            continue;
        if (!replay->repair) {
            const char *name = replay->names.texts[name_at(replay, thread, thread->depth - 1)];
            snprintf(replay->cause, sizeof replay->cause,
                     "event %llu: the events end with '%s' and %u callers unclosed in thread %.64s",
                     (unsigned long long)replay->position, shown(text, name), thread->depth - 1,
                     replay->thread_names.texts[i]);
            return -EINVAL;
        }
        replay->repairs.unclosed += thread->depth;
        thread->depth = 0;
    }
    return 0;
}

const char *lapse_replay_cause(const struct lapse_replay *replay)
{
    return replay->cause;
}

struct lapse_replay_repairs lapse_replay_repairs(const struct lapse_replay *replay)
{
    return replay->repairs;
}

struct lapse_replay_stacks lapse_replay_stacks(const struct lapse_replay *replay)
{
    struct lapse_replay_stacks stacks = { .values = replay->values, .names = &replay->names };
    stacks.nodes = lapse_call_tree_nodes(replay->tree, &stacks.count);
    return stacks;
}
