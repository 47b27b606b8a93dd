/* SPDX-License-Identifier: MIT */
/* Replay of start and end events: time goes to the exact stack that was live. Per thread a stack is
 * kept as a node of one call tree, so an event costs the same at any depth. Offline only. */
#ifndef LAPSE_EXPORT_REPLAY_H
#define LAPSE_EXPORT_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call_tree.h"
#include "index.h"
#include "output.h"

struct lapse_replay_repairs {
    uint64_t lost_exits;  /* a caller ended: frames above it end at the same time */
    uint64_t stray_ends;  /* of a function that is nowhere on the stack: dropped */
    uint64_t lost_starts; /* a start deeper than the stack: put on top of it */
    uint64_t unclosed;    /* open at the end of the events: end at the thread's last event */
    uint64_t times;       /* time went back: taken as the thread's last time */
};

struct lapse_replay;

/* Strict: the first wrong event is an error. With repair it is mended and counted. */
int lapse_replay_create(struct lapse_replay **replay, bool repair);
void lapse_replay_destroy(struct lapse_replay *replay);

/* One event. Returns 0, -ENOMEM, -EOVERFLOW (more than 64 bits of time in one stack), or -EINVAL when strict refuses it; lapse_replay_cause then says
 * why, naming the event's position counted from 0. */
int lapse_replay_event(struct lapse_replay *replay, uint64_t time, const char *thread,
                       size_t thread_size, bool is_start, uint32_t depth, const char *name,
                       size_t name_size);
/* No more events. Strict refuses frames that are still open. */
int lapse_replay_finish(struct lapse_replay *replay);

const char *lapse_replay_cause(const struct lapse_replay *replay);
struct lapse_replay_repairs lapse_replay_repairs(const struct lapse_replay *replay);

/* What replay_write.c reads: the tree (function: number of the name + 1), and by node the time in
 * which exactly this stack was live. */
struct lapse_replay_stacks {
    const struct lapse_call_node *nodes;
    uint32_t count;
    const uint64_t *values;
    const struct lapse_strings *names;
};
struct lapse_replay_stacks lapse_replay_stacks(const struct lapse_replay *replay);

/* Folded lines with a value, sorted by the bytes of the stack. Names are escaped as in event text
 * (`\;`), which lapse reads back. Returns 0 or a negative errno. */
int lapse_replay_write(const struct lapse_replay *replay, struct lapse_output *output);

#endif
