/* SPDX-License-Identifier: MIT */
/* Where a cut stack belongs. Only its innermost frames are known; the question is which position of
 * the thread's stack its outermost known frame is. A frame address answers it for certain; names
 * answer it by the longest agreement, which recursion can make ambiguous. Called by diff.c. */
#include "diff_state.h"

/* The Z algorithm: a window [from, to) that equals the beginning of the pattern is carried along,
 * and lengths inside of it are read off `own` instead of being compared again. */
static void match(const uint64_t *pattern, uint32_t pattern_count, const uint64_t *text,
                  uint32_t text_count, uint32_t first, const uint32_t *own, uint32_t *lengths)
{
    uint32_t from = first, to = first;
    for (uint32_t at = first; at < text_count; at++) {
        uint32_t length = 0;
        if (at < to) {
            length = own[at - from];
            if (length > to - at)
                length = to - at;
        }
        while (length < pattern_count && at + length < text_count &&
               pattern[length] == text[at + length])
            length++;
        lengths[at] = length;
        if (at + length > to) {
            from = at;
            to = at + length;
        }
    }
}

void lapse_match_lengths(const uint64_t *pattern, uint32_t pattern_count, const uint64_t *text,
                         uint32_t text_count, uint32_t *own, uint32_t *lengths)
{
    if (!pattern_count) {
        for (uint32_t at = 0; at < text_count; at++)
            lengths[at] = 0;
        return;
    }
    own[0] = pattern_count;
    match(pattern, pattern_count, pattern, pattern_count, 1, own, own);
    match(pattern, pattern_count, text, text_count, 0, own, lengths);
}

/* Fill scratch->lengths: [0, depth) for the cut stack's beginning put at that position of the
 * stack; [depth, depth + count) for the frames above the marker put at that frame of the cut
 * stack, which is then known further out than the stack was. */
static void measure(const struct lapse_diff_thread *thread, const struct lapse_diff_frame *frames,
                    uint32_t count, struct lapse_diff_scratch *scratch)
{
    const struct lapse_diff_stack *now = &thread->now;
    uint64_t *stack = scratch->functions, *cut = scratch->functions + now->depth;
    uint32_t *lengths = scratch->lengths, above = 0;
    for (uint32_t i = 0; i < now->depth; i++)
        stack[i] = now->slots[i].function;
    for (uint32_t i = 0; i < count; i++)
        cut[i] = frames[i].function;
    if (thread->marker != LAPSE_NO_MARKER) { /* nothing agrees across the marker */
        above = thread->marker + 1;
        lapse_match_lengths(cut, count, stack, thread->marker, scratch->pattern, lengths);
        lengths[thread->marker] = 0;
    }
    lapse_match_lengths(cut, count, stack + above, now->depth - above, scratch->pattern,
                        lengths + above);
    if (now->depth)
        lengths[0] = 0; /* position 0 is the root or the marker; the cut stack's frame is neither */
    if (above)
        lapse_match_lengths(stack + above, now->depth - above, cut, count, scratch->pattern,
                            lengths + now->depth);
    else
        for (uint32_t i = 0; i < count; i++)
            lengths[now->depth + i] = 0;
    if (count)
        lengths[now->depth] = 0; /* the same as position `above`, already there */
}

static struct lapse_diff_alignment candidate(const struct lapse_diff_thread *thread,
                                             const uint32_t *lengths, uint32_t at)
{
    uint32_t depth = thread->now.depth;
    return (struct lapse_diff_alignment){
        .position = at < depth ? at : thread->marker + 1,
        .skipped = at < depth ? 0 : at - depth,
        .agreeing = lengths[at],
    };
}

/* The longest agreement; of equally long ones the innermost, which ends the fewest frames. */
static struct lapse_diff_alignment longest(const struct lapse_diff_thread *thread, uint32_t count,
                                           const uint32_t *lengths)
{
    struct lapse_diff_alignment best = { .proof = LAPSE_INFERRED };
    for (uint32_t at = 0; at < thread->now.depth + count; at++) {
        struct lapse_diff_alignment other = candidate(thread, lengths, at);
        if (!other.agreeing || other.agreeing < best.agreeing)
            continue;
        bool tie = other.agreeing == best.agreeing;
        if (!tie || other.position > best.position)
            best = other;
        best.proof = tie ? LAPSE_AMBIGUOUS : LAPSE_INFERRED;
    }
    return best;
}

/* Two frames at one address: frames[*frame] and now[*position]. */
static bool same_address(const struct lapse_diff_thread *thread,
                         const struct lapse_diff_frame *frames, uint32_t count, uint32_t *frame,
                         uint32_t *position)
{
    const struct lapse_diff_slot *slots = thread->now.slots;
    uint32_t depth = thread->now.depth, first_frame = 0, first_slot = thread->hidden;
    while (first_frame < count && !frames[first_frame].cfa)
        first_frame++;
    for (uint32_t i = depth; first_frame < count && i-- > 0;) {
        if (slots[i].cfa == frames[first_frame].cfa) {
            *frame = first_frame;
            *position = i;
            return true;
        }
    }
    while (first_slot < depth && !slots[first_slot].cfa)
        first_slot++;
    for (uint32_t i = first_frame; first_slot < depth && i < count; i++) {
        if (frames[i].cfa == slots[first_slot].cfa) {
            *frame = i;
            *position = first_slot;
            return true;
        }
    }
    return false;
}

/* By frame address, at *matched. The position is proven where the function is the same too. */
static bool by_address(const struct lapse_diff_thread *thread,
                       const struct lapse_diff_frame *frames, uint32_t count,
                       struct lapse_diff_alignment *alignment, uint32_t *matched)
{
    uint32_t frame, position, lowest = 1;
    if (!same_address(thread, frames, count, &frame, &position))
        return false;
    *matched = position;
    bool above_marker = thread->marker != LAPSE_NO_MARKER && position > thread->marker;
    if (above_marker)
        lowest = thread->marker + 1;
    *alignment = (struct lapse_diff_alignment){ .position = position - frame };
    if (position < lowest + frame) { /* the cut stack reaches further out than what is known */
        if (!above_marker)
            return false; /* it would reach below the root: not one stack */
        alignment->position = lowest;
        alignment->skipped = lowest + frame - position;
    }
    bool same = thread->now.slots[position].function == frames[frame].function;
    alignment->proof = same ? LAPSE_PROVEN : LAPSE_INFERRED;
    return true;
}

static uint32_t common_from(const struct lapse_diff_thread *thread,
                            const struct lapse_diff_frame *frames, uint32_t count,
                            const struct lapse_diff_alignment *alignment)
{
    uint32_t at = alignment->position, i = alignment->skipped;
    while (at < thread->now.depth && i < count &&
           lapse_same_call(&thread->now.slots[at], &frames[i])) {
        at++;
        i++;
    }
    return at;
}

/* No agreement anywhere. What is open may well be among the missing outer frames and stays; only
 * what was itself on top of a marker gives way, else alternating stacks would pile up for ever. */
static void put_on_marker(const struct lapse_diff_thread *thread, uint32_t count,
                          struct lapse_diff_change *change)
{
    bool has_marker = thread->marker != LAPSE_NO_MARKER;
    if (!count && thread->now.depth) { /* nothing is known at all */
        change->common = change->base = change->depth = thread->now.depth;
        change->marker = thread->marker;
        change->placed = thread->placed;
        change->placed_below = thread->placed_below;
        return;
    }
    change->marker = has_marker ? thread->marker : thread->now.depth;
    change->add_marker = !has_marker;
    change->common = has_marker ? thread->marker + 1 : thread->now.depth;
    change->base = change->marker + 1;
    change->depth = change->base + count;
    change->placed = true; /* counted from the marker, which claims no position */
    change->placed_below = has_marker ? thread->placed_below : thread->placed;
}

static void explain(const struct lapse_diff_options *options,
                    const struct lapse_diff_thread *thread, uint64_t time_ns, uint32_t count,
                    const uint32_t *lengths, const struct lapse_diff_alignment *taken)
{
    struct lapse_diff_alignment given = *taken;
    for (uint32_t at = 0; lengths && at < thread->now.depth + count; at++) {
        struct lapse_diff_alignment other = candidate(thread, lengths, at);
        if (!other.agreeing || (other.position == taken->position &&
                                other.skipped == taken->skipped))
            continue;
        other.time_ns = time_ns;
        other.thread = thread->id;
        other.frames = count;
        other.proof = taken->proof;
        options->explain(options->context, &other);
    }
    given.time_ns = time_ns;
    given.thread = thread->id;
    given.frames = count;
    given.taken = 1;
    options->explain(options->context, &given);
}

void lapse_diff_place_cut(const struct lapse_diff_options *options,
                          const struct lapse_diff_thread *thread, uint64_t time_ns,
                          const struct lapse_diff_frame *frames, uint32_t count,
                          struct lapse_diff_scratch *scratch, struct lapse_diff_change *change)
{
    struct lapse_diff_alignment taken = { .proof = LAPSE_INFERRED };
    uint32_t matched = 0;
    bool by_names = !by_address(thread, frames, count, &taken, &matched);
    if (by_names) {
        measure(thread, frames, count, scratch);
        taken = longest(thread, count, scratch->lengths);
    }
    *change = (struct lapse_diff_change){ .proof = taken.proof, .marker = LAPSE_NO_MARKER };
    if (by_names && !taken.agreeing) {
        put_on_marker(thread, count, change);
        taken.position = change->base;
    } else {
        change->skip = taken.skipped;
        change->base = taken.position;
        change->common = common_from(thread, frames, count, &taken);
        change->depth = taken.position + count - taken.skipped;
        bool has_marker = thread->marker != LAPSE_NO_MARKER;
        bool above = has_marker && thread->marker < taken.position;
        bool known = has_marker && !above ? thread->placed_below : thread->placed;
        /* Where what calls the matched frame has changed, another way leads to its address, which may
         * have another length. */
        change->placed = !by_names && taken.proof == LAPSE_PROVEN && known && change->common > matched;
        change->placed_below = thread->placed_below;
        if (above)
            change->marker = thread->marker;
        if (!by_names)
            taken.agreeing = change->common - taken.position;
    }
    if (options->explain)
        explain(options, thread, time_ns, count, by_names ? scratch->lengths : NULL, &taken);
}
