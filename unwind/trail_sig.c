/* SPDX-License-Identifier: MIT */
/* The longer parts of the trail; trail.h says what it is. Context: the handler. */
#include "trail.h"

LAPSE_SIGSAFE void lapse_trail_end_run(struct lapse_trail *trail)
{
    for (uint32_t i = trail->run_inner + 1; i-- > trail->run_outer; trail->fresh_count++)
        if (trail->fresh_count < LAPSE_TRAIL_FRAMES)
            trail->fresh[trail->fresh_count] = trail->frames[i];
    trail->in_run = 0;
}

static inline uint64_t load_word(uintptr_t at)
{
    uint64_t value;
    memcpy(&value, (const void *)at, sizeof value);
    return value;
}

LAPSE_SIGSAFE uint64_t *lapse_trail_follow(struct lapse_trail *trail, uint64_t *to, const uint64_t *end,
                                           uintptr_t low, uintptr_t span)
{
    const struct lapse_trail_frame *frame = &trail->frames[trail->run_outer];
    while (frame != trail->frames && to != end) {
        const struct lapse_trail_frame *caller = frame - 1;
        uintptr_t bp_at = frame->bp_at;
        if (bp_at == LAPSE_TRAIL_ASK || caller->sp - 8 - low > span ||
            load_word(caller->sp - 8) != caller->pc)
            break;
        if (bp_at != LAPSE_TRAIL_RBP_KEPT && (bp_at - low > span || load_word(bp_at) != caller->bp))
            break;
        *to++ = caller->pc;
        frame = caller;
    }
    trail->next = trail->run_outer = (uint32_t)(frame - trail->frames);
    return to;
}

LAPSE_SIGSAFE void lapse_trail_finish(struct lapse_trail *trail)
{
    if (trail->in_run && trail->run_outer)
        lapse_trail_end_run(trail); /* the root has come nearer */
    uint32_t kept = trail->in_run ? trail->run_inner + 1 : 0, fresh = trail->fresh_count;
    if (fresh > LAPSE_TRAIL_FRAMES - kept) {
        trail->depth = 0;
        return;
    }
    for (uint32_t i = 0; i < fresh; i++)
        trail->frames[kept + i] = trail->fresh[fresh - 1 - i];
    trail->depth = kept + fresh;
}
