/* SPDX-License-Identifier: MIT */
/* What an engine keeps of a thread. Shared by diff.c (events and filters) and diff_cut.c (where a
 * cut stack belongs); calls.c takes its short cut from here. The runtime's drain thread and every offline reader run this; memory comes
 * from the engine's allocator only. */
#ifndef LAPSE_EXPORT_DIFF_STATE_H
#define LAPSE_EXPORT_DIFF_STATE_H

#include <stdbool.h>

#include "lapse/diff.h"

#define LAPSE_NO_MARKER UINT32_MAX

/* One position of a thread's stack. */
struct lapse_diff_slot {
    uint64_t function, call_site, cfa;
    uint64_t start_ns;       /* first sample of its run */
    uint64_t start_after_ns; /* last sample before that */
    uint64_t seen_ns;        /* last sample that showed it; kept for hidden positions only */
    uint64_t run;            /* number of the thread's sample that began the run */
    uint8_t start_proof;
};

struct lapse_diff_stack {
    struct lapse_diff_slot *slots;
    uint32_t depth, capacity;
    uint32_t node;  /* the stack is the path of this node, */
    bool is_path;   /* if this is set */
};

struct lapse_diff_thread {
    uint64_t id;
    uint64_t last_ns;  /* time of the last sample; none yet when `samples` is 0 */
    uint64_t samples;
    /* The stack as the last sample shows it, on top of what older ones showed below a cut. */
    struct lapse_diff_stack now;
    uint32_t hidden; /* now[0..hidden) was not shown by the last sample */
    uint32_t marker; /* position that stands for missing outer frames, or LAPSE_NO_MARKER */
    bool placed;     /* positions are known, not guessed by names; above a marker: counted from it */
    bool placed_below; /* the same for what is below the marker */
    uint32_t open;   /* now[0..open) was given out; without `confirm` */
    /* Only with `confirm`: the stack that was given out, and the changed one that waits. */
    struct lapse_diff_stack stable;
    uint64_t stable_seen_ns, waiting_since_ns;
    uint32_t sightings;   /* of `now` in a row, 0: it is the stable one */
    uint8_t waiting_proof;
};

/* How the next stack follows from `now`: now[0..common) stays, frames[skip + common - base..) come. */
struct lapse_diff_change {
    uint32_t common; /* positions that stay */
    uint32_t base;   /* position of frames[skip]; below it nothing is shown */
    uint32_t skip;   /* outermost frames that lie within the marker */
    uint32_t depth;  /* of the new stack */
    uint32_t marker;
    bool add_marker; /* a marker comes at `common`, before the frames */
    bool placed, placed_below;
    uint8_t proof;
};

/* Room for comparing; grown by need, freed with the engine. One element of `room` gives each of
 * the three lists one. */
struct lapse_diff_scratch {
    struct { uint64_t words[2]; } *room;
    uint32_t capacity;
    uint64_t *functions; /* of the stack, then of the cut stack */
    uint32_t *lengths;   /* of agreement, by position of the stack, then by frame of the cut one */
    uint32_t *pattern;
    struct lapse_diff_frame *frames;
    uint32_t frame_capacity;
};

static inline bool lapse_same_call(const struct lapse_diff_slot *slot,
                                   const struct lapse_diff_frame *frame)
{
    return slot->function == frame->function &&
           (slot->call_site == frame->call_site || !slot->call_site || !frame->call_site);
}

/* lapse_diff_push for a caller that knows, without comparing, that the outermost `known` frames are
 * function by function and call site by call site those of the stack that it pushed last for this
 * thread. Both stacks are whole ones. */
int lapse_diff_push_known(struct lapse_diff *diff, uint64_t time_ns, uint64_t thread,
                          const struct lapse_diff_frame *frames, uint32_t depth, uint32_t flags,
                          uint32_t known);

/* Where the cut stack belongs on top of `thread->now`. `scratch` has room for
 * 1 + depth + count elements. Calls options->explain for each candidate. */
void lapse_diff_place_cut(const struct lapse_diff_options *options,
                          const struct lapse_diff_thread *thread, uint64_t time_ns,
                          const struct lapse_diff_frame *frames, uint32_t count,
                          struct lapse_diff_scratch *scratch, struct lapse_diff_change *change);

/* For each position of `text`: how many elements from there on equal the beginning of `pattern`.
 * `own` is room for pattern_count elements. Linear time. */
void lapse_match_lengths(const uint64_t *pattern, uint32_t pattern_count, const uint64_t *text,
                         uint32_t text_count, uint32_t *own, uint32_t *lengths);

#endif
