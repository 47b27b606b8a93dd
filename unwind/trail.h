/* SPDX-License-Identifier: MIT */
/* The trail: the frames of a thread's previous walk, so that the next one need not look up again what
 * has not changed. Consecutive samples share most of their outer frames.
 *
 * Unwinding is a function of the frame (pc, sp, rbp), of the rules, and of two words that a plain rule
 * reads: the return address below the CFA and, where the rule restores it, the caller's rbp. So when a
 * walk comes to a frame that the trail holds, and these two words still are what they were, the caller
 * is the caller on the trail: exactly, not by guess. The words of all frames can be compared one after
 * the other without waiting for a look-up in between, which is where the time of a walk goes.
 * A trail is of one epoch of the rule cache and is checked anew by every walk, so an old one does no harm.
 *
 * A *run* is a stretch of frames of this walk that are those on the trail. Frames outside of runs are
 * *fresh*. In the end the trail is put together again: the outermost run, then what is fresh.
 * Context: the handler, through walk_sig.c alone; the memory is the slot's. */
#ifndef LAPSE_UNWIND_TRAIL_H
#define LAPSE_UNWIND_TRAIL_H

#include <stdint.h>
#include <string.h>

#include "walk.h"

#define LAPSE_TRAIL_FRAMES 256u

/* What was read to get to the caller. */
enum { LAPSE_TRAIL_RBP_KEPT = 0, LAPSE_TRAIL_ASK = 1 /* no plain rule: ask the rule each time */ };

struct lapse_trail_frame {
    uint64_t pc, sp, bp;
    uintptr_t bp_at; /* where the caller's rbp was read, or one of the above */
};

struct lapse_trail {
    uint64_t epoch;
    uint32_t depth; /* frames[0] is the outermost */
    uint32_t next;  /* frames[0..next) lie further out than this walk has come */
    uint32_t run_inner, run_outer; /* the run: frames[run_outer..run_inner] */
    uint32_t in_run;
    uint32_t fresh_count; /* fresh[0] is the innermost */
    struct lapse_trail_frame frames[LAPSE_TRAIL_FRAMES], fresh[LAPSE_TRAIL_FRAMES];
};

static inline void lapse_trail_begin(struct lapse_trail *trail, uint64_t epoch)
{
    if (trail->epoch != epoch)
        trail->depth = 0;
    trail->epoch = epoch;
    trail->next = trail->depth;
    trail->in_run = 0;
    trail->fresh_count = 0;
}

static inline int lapse_trail_is_at(const struct lapse_trail_frame *frame, uint64_t pc, uint64_t sp,
                                    uint64_t bp)
{
    return frame->pc == pc && frame->sp == sp && frame->bp == bp;
}

/* A caller's frame is about to be left by looking its rule up. One fresh frame too many is counted and
 * not kept; the trail is then not put together. */
static inline void lapse_trail_leave(struct lapse_trail *trail, uint64_t pc, uint64_t sp, uint64_t bp,
                                     uintptr_t bp_at)
{
    if (trail->in_run) {
        trail->frames[trail->run_outer].bp_at = bp_at;
        return;
    }
    if (trail->fresh_count < LAPSE_TRAIL_FRAMES)
        trail->fresh[trail->fresh_count] = (struct lapse_trail_frame){ pc, sp, bp, bp_at };
    trail->fresh_count++;
}

/* The run ends before the walk does: its frames become fresh ones. */
LAPSE_SIGSAFE void lapse_trail_end_run(struct lapse_trail *trail);

/* A caller's frame was come to. Begins a run, or goes on with it, when the frame is on the trail. */
static inline void lapse_trail_arrive(struct lapse_trail *trail, uint64_t pc, uint64_t sp, uint64_t bp)
{
    if (trail->in_run) {
        if (trail->run_outer && lapse_trail_is_at(&trail->frames[trail->run_outer - 1], pc, sp, bp)) {
            trail->next = --trail->run_outer;
            return;
        }
        lapse_trail_end_run(trail);
    }
    while (trail->next && trail->frames[trail->next - 1].sp < sp)
        trail->next--;
    if (trail->next && lapse_trail_is_at(&trail->frames[trail->next - 1], pc, sp, bp)) {
        trail->run_inner = trail->run_outer = --trail->next;
        trail->in_run = 1;
    }
}

/* Go along the run as far as the words on the stack are what they were, at most to `end`: writes the
 * callers' pcs to `to` and returns where that ended. Loads are fine at [low, low + span]. */
LAPSE_SIGSAFE uint64_t *lapse_trail_follow(struct lapse_trail *trail, uint64_t *to, const uint64_t *end,
                                           uintptr_t low, uintptr_t span);

/* The walk has come to the root and nothing about it was guessed: this is the trail of the next one. */
LAPSE_SIGSAFE void lapse_trail_finish(struct lapse_trail *trail);

#endif
