/* SPDX-License-Identifier: MIT */
/* The prefix-diff engine: threads, events and noise filters. The policies are told in lapse/diff.h;
 * diff_cut.c finds the place of cut stacks. Called by the drain thread inside the host and by
 * everything offline; no stdio, no locale, memory from the allocator only.
 *
 * A sample passes three steps. It becomes a change of the thread's stack: so many outer positions
 * stay, these frames come. The change is made in `now`, whose slots know since when they run. What
 * counts of `now` is given out: a prefix of it (all of it, or with min_samples the frames that ran
 * long enough; runs nest, so these are a prefix) or, with confirm, a copy that follows later.
 *
 * Every room is made before anything changes, so a sample is taken whole or not at all. */
#include "diff_state.h"

#include <errno.h>
#include <string.h>

#include "call_tree.h"
#include "heap.h"

struct lapse_diff {
    struct lapse_diff_options options;
    struct lapse_diff_thread **threads; /* in order of first appearance */
    uint32_t thread_count, thread_capacity;
    uint32_t *slots; /* hash of threads: index + 1, 0 free */
    uint32_t slot_count;
    struct lapse_diff_thread *recent;
    struct lapse_diff_scratch scratch;
    struct lapse_diff_counts counts;
};

/* A sample's stack in either form. */
struct source {
    const struct lapse_diff_frame *frames; /* NULL: the path of `node` */
    const struct lapse_call_node *nodes;
    uint32_t depth, node;
    uint32_t known;           /* frames that are known to be those of the thread's last stack */
    uint64_t marker_function; /* of a cut stack */
    bool cut;
};

/* ---- memory ---- */

static void *resize(struct lapse_diff *diff, void *old, size_t old_size, size_t new_size)
{
    return diff->options.allocator.resize(diff->options.allocator.context, old, old_size, new_size);
}

/* Grow *array of `count` elements to at least `wanted`. */
static bool reserve(struct lapse_diff *diff, void *array, uint32_t *count, uint64_t wanted,
                    size_t element)
{
    uint64_t capacity = *count ? *count : 16;
    void *old, *grown;
    if (wanted <= *count)
        return true;
    while (capacity < wanted)
        capacity *= 2;
    if (capacity > UINT32_MAX / 4)
        return false;
    memcpy(&old, array, sizeof old);
    grown = resize(diff, old, *count * element, capacity * element);
    if (!grown)
        return false;
    memcpy(array, &grown, sizeof grown);
    *count = (uint32_t)capacity;
    return true;
}

static bool reserve_stack(struct lapse_diff *diff, struct lapse_diff_stack *stack, uint64_t depth)
{
    return reserve(diff, &stack->slots, &stack->capacity, depth, sizeof *stack->slots);
}

static bool reserve_scratch(struct lapse_diff *diff, uint64_t elements)
{
    struct lapse_diff_scratch *scratch = &diff->scratch;
    if (!reserve(diff, &scratch->room, &scratch->capacity, elements, sizeof *scratch->room))
        return false;
    scratch->functions = scratch->room->words;
    scratch->lengths = (uint32_t *)(scratch->functions + scratch->capacity);
    scratch->pattern = scratch->lengths + scratch->capacity;
    return true;
}

/* ---- threads ---- */

static uint32_t thread_slot(const struct lapse_diff *diff, uint64_t id)
{
    uint32_t mask = diff->slot_count - 1;
    uint32_t at = (uint32_t)(id * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (diff->slots[at] && diff->threads[diff->slots[at] - 1]->id != id)
        at = (at + 1) & mask;
    return at;
}

static bool grow_slots(struct lapse_diff *diff)
{
    uint32_t old_count = diff->slot_count, count = old_count ? old_count * 2 : 16;
    uint32_t *slots = resize(diff, NULL, 0, count * sizeof *slots);
    if (!slots)
        return false;
    if (diff->slots)
        resize(diff, diff->slots, old_count * sizeof *slots, 0);
    memset(slots, 0, count * sizeof *slots);
    diff->slots = slots;
    diff->slot_count = count;
    for (uint32_t i = 0; i < diff->thread_count; i++)
        slots[thread_slot(diff, diff->threads[i]->id)] = i + 1;
    return true;
}

static struct lapse_diff_thread *find_thread(struct lapse_diff *diff, uint64_t id)
{
    struct lapse_diff_thread *thread = diff->recent;
    if (thread && thread->id == id)
        return thread;
    if (diff->thread_count >= diff->slot_count / 2 && !grow_slots(diff))
        return NULL;
    uint32_t at = thread_slot(diff, id);
    if (diff->slots[at])
        return diff->recent = diff->threads[diff->slots[at] - 1];
    if (!reserve(diff, &diff->threads, &diff->thread_capacity, diff->thread_count + 1ull,
                 sizeof *diff->threads))
        return NULL;
    thread = resize(diff, NULL, 0, sizeof *thread);
    if (!thread)
        return NULL;
    *thread = (struct lapse_diff_thread){ .id = id, .marker = LAPSE_NO_MARKER, .placed = true };
    thread->now.is_path = thread->stable.is_path = true;
    diff->threads[diff->thread_count++] = thread;
    diff->slots[at] = diff->thread_count;
    return diff->recent = thread;
}

/* ---- events ---- */

static void give_edge(struct lapse_diff *diff, const struct lapse_edge *edge)
{
    diff->counts.edges++;
    diff->counts.inferred += edge->proof == LAPSE_INFERRED;
    diff->counts.ambiguous += edge->proof == LAPSE_AMBIGUOUS;
    if (diff->options.edge)
        diff->options.edge(diff->options.context, edge);
}

static void give_start(struct lapse_diff *diff, const struct lapse_diff_thread *thread,
                       const struct lapse_diff_slot *slot, uint32_t depth)
{
    give_edge(diff, &(struct lapse_edge){
        .time_ns = slot->start_ns, .thread = thread->id, .after_ns = slot->start_after_ns,
        .before_ns = slot->start_ns, .function = slot->function, .call_site = slot->call_site,
        .depth = depth, .kind = LAPSE_EDGE_START, .proof = slot->start_proof,
    });
}

/* The moment and the certainty of ends. */
struct ending {
    uint64_t time_ns, after_ns, before_ns;
    uint8_t proof;
};

/* End slots[to..from) of a stack that was given out, innermost first. */
static void give_ends(struct lapse_diff *diff, const struct lapse_diff_thread *thread,
                      const struct lapse_diff_slot *slots, uint32_t from, uint32_t to,
                      const struct ending *ending)
{
    for (uint32_t depth = from; depth-- > to;) {
        const struct lapse_diff_slot *slot = &slots[depth];
        bool hidden = slots == thread->now.slots && depth < thread->hidden;
        uint64_t after_ns = hidden ? slot->seen_ns : ending->after_ns;
        give_edge(diff, &(struct lapse_edge){
            .time_ns = ending->time_ns, .thread = thread->id, .after_ns = after_ns,
            .before_ns = ending->before_ns, .function = slot->function,
            .call_site = slot->call_site, .depth = depth, .kind = LAPSE_EDGE_END,
            .proof = ending->proof,
        });
        if (!diff->options.interval)
            continue;
        diff->options.interval(diff->options.context, &(struct lapse_interval){
            .start_ns = slot->start_ns, .end_ns = ending->time_ns,
            .start_after_ns = slot->start_after_ns, .end_after_ns = after_ns,
            .end_before_ns = ending->before_ns, .thread = thread->id,
            .function = slot->function, .call_site = slot->call_site, .depth = depth,
            .start_proof = slot->start_proof, .end_proof = ending->proof,
        });
    }
}

/* End everything that was given out and forget the stack. */
static void close_thread(struct lapse_diff *diff, struct lapse_diff_thread *thread,
                         const struct ending *ending)
{
    give_ends(diff, thread, thread->now.slots, thread->open, 0, ending);
    give_ends(diff, thread, thread->stable.slots, thread->stable.depth, 0, ending);
    thread->now.depth = thread->now.node = thread->stable.depth = thread->stable.node = 0;
    thread->now.is_path = thread->stable.is_path = true;
    thread->open = thread->hidden = thread->sightings = 0;
    thread->marker = LAPSE_NO_MARKER;
    thread->placed = true;
}

/* ---- what changes ---- */

static uint32_t common_whole(const struct lapse_diff_thread *thread, const struct source *source)
{
    const struct lapse_diff_slot *slots = thread->now.slots;
    uint32_t depth = thread->now.depth < source->depth ? thread->now.depth : source->depth;
    uint32_t i = source->known < depth ? source->known : depth; /* a gap may have emptied `now` */
    while (i < depth && lapse_same_call(&slots[i], &source->frames[i]))
        i++;
    return i;
}

static void find_change(struct lapse_diff *diff, struct lapse_diff_thread *thread,
                        uint64_t time_ns, const struct source *source,
                        const struct lapse_call_tree *tree, struct lapse_diff_change *change)
{
    if (source->cut) {
        lapse_diff_place_cut(&diff->options, thread, time_ns, source->frames, source->depth,
                             &diff->scratch, change);
        diff->counts.ambiguous_alignments += change->proof == LAPSE_AMBIGUOUS;
    } else {
        uint32_t common;
        if (source->frames)
            common = common_whole(thread, source);
        else
            common = source->nodes[lapse_call_tree_common(tree, thread->now.node,
                                                          source->node)].depth;
        *change = (struct lapse_diff_change){ .common = common, .depth = source->depth,
                                              .marker = LAPSE_NO_MARKER, .placed = true };
    }
    /* What the sample before did not show, or showed at a guessed place, proves nothing. */
    bool vague = change->common < thread->hidden || !thread->placed;
    if (change->proof == LAPSE_PROVEN && vague)
        change->proof = LAPSE_INFERRED;
}

static void start_slot(struct lapse_diff_slot *slot, const struct lapse_diff_slot *run,
                       const struct lapse_diff_frame *frame)
{
    *slot = *run;
    slot->function = frame->function;
    slot->call_site = frame->call_site;
    slot->cfa = frame->cfa;
}

static void fill_from_frames(struct lapse_diff_thread *thread, const struct source *source,
                             const struct lapse_diff_change *change,
                             const struct lapse_diff_slot *run)
{
    struct lapse_diff_slot *slots = thread->now.slots;
    uint32_t at = change->common, base = change->base;
    const struct lapse_diff_frame *frames = source->frames;
    if (change->add_marker)
        start_slot(&slots[at++], run,
                   &(struct lapse_diff_frame){ .function = source->marker_function });
    if (source->depth && (frames[0].cfa || source->cut)) { /* what stays may be known better now */
        for (uint32_t i = base; i < change->common; i++) {
            const struct lapse_diff_frame *frame = &frames[i - base + change->skip];
            if (frame->cfa)
                slots[i].cfa = frame->cfa;
            if (!slots[i].call_site)
                slots[i].call_site = frame->call_site;
        }
    }
    for (; at < change->depth; at++)
        start_slot(&slots[at], run, &frames[at - base + change->skip]);
}

static void fill_from_node(struct lapse_diff_thread *thread, const struct source *source,
                           uint32_t common, const struct lapse_diff_slot *run)
{
    uint32_t node = source->node;
    for (uint32_t at = source->depth; at-- > common; node = source->nodes[node].parent)
        start_slot(&thread->now.slots[at], run,
                   &(struct lapse_diff_frame){ .function = source->nodes[node].function,
                                               .call_site = source->nodes[node].call_site });
}

/* Positions that the new sample does not show keep the time of the last one that did. */
static void hide(struct lapse_diff_thread *thread, uint32_t hidden)
{
    for (uint32_t i = thread->hidden; i < hidden && i < thread->now.depth; i++)
        thread->now.slots[i].seen_ns = thread->last_ns;
    thread->hidden = hidden;
}

/* ---- confirm ---- */

static uint32_t common_stable(const struct lapse_diff_thread *thread,
                              const struct lapse_call_tree *tree)
{
    const struct lapse_diff_stack *now = &thread->now, *stable = &thread->stable;
    uint32_t depth = now->depth < stable->depth ? now->depth : stable->depth, i = 0;
    if (tree && now->is_path && stable->is_path) {
        uint32_t count, node = lapse_call_tree_common(tree, now->node, stable->node);
        return lapse_call_tree_nodes(tree, &count)[node].depth;
    }
    while (i < depth &&
           lapse_same_call(&stable->slots[i],
                           &(struct lapse_diff_frame){ .function = now->slots[i].function,
                                                       .call_site = now->slots[i].call_site }))
        i++;
    return i;
}

/* The waiting stack becomes the stable one, dated at its first sighting. */
static void confirm_waiting(struct lapse_diff *diff, struct lapse_diff_thread *thread,
                            uint32_t common)
{
    struct lapse_diff_stack *stable = &thread->stable;
    struct ending ending = { .time_ns = thread->waiting_since_ns,
                             .after_ns = thread->stable_seen_ns,
                             .before_ns = thread->waiting_since_ns,
                             .proof = thread->waiting_proof };
    give_ends(diff, thread, stable->slots, stable->depth, common, &ending);
    for (uint32_t i = common; i < thread->now.depth; i++) {
        struct lapse_diff_slot *slot = &stable->slots[i];
        *slot = thread->now.slots[i];
        slot->start_ns = thread->waiting_since_ns;
        slot->start_after_ns = thread->stable_seen_ns;
        slot->start_proof = thread->waiting_proof;
        give_start(diff, thread, slot, i);
    }
    stable->depth = thread->now.depth;
    stable->node = thread->now.node;
    stable->is_path = thread->now.is_path;
    thread->sightings = 0;
}

static void count_sighting(struct lapse_diff *diff, struct lapse_diff_thread *thread,
                           uint64_t time_ns, bool changed, uint8_t proof,
                           const struct lapse_call_tree *tree)
{
    uint32_t common = common_stable(thread, tree);
    if (common == thread->now.depth && common == thread->stable.depth) {
        thread->sightings = 0;
        thread->stable_seen_ns = time_ns;
        thread->waiting_proof = LAPSE_PROVEN;
        return;
    }
    if (changed || !thread->sightings) {
        thread->sightings = 0;
        thread->waiting_since_ns = time_ns;
    }
    if (proof > thread->waiting_proof) /* a guess on the way makes the whole way a guess */
        thread->waiting_proof = proof;
    if (++thread->sightings < diff->options.confirm)
        return;
    confirm_waiting(diff, thread, common);
    thread->stable_seen_ns = time_ns;
    thread->waiting_proof = LAPSE_PROVEN;
}

/* ---- one sample ---- */

/* A silence longer than the gap. Returns the proof of what starts after it. */
static uint8_t end_before_gap(struct lapse_diff *diff, struct lapse_diff_thread *thread,
                              uint64_t time_ns)
{
    uint64_t last_ns = thread->last_ns, period_ns = diff->options.period_ns;
    if (!diff->options.gap_ns || !thread->samples || time_ns - last_ns <= diff->options.gap_ns ||
        (!thread->now.depth && !thread->stable.depth))
        return LAPSE_PROVEN;
    uint64_t end_ns = time_ns - last_ns < period_ns ? time_ns : last_ns + period_ns;
    close_thread(diff, thread, &(struct ending){ .time_ns = end_ns, .after_ns = last_ns,
                                                 .before_ns = time_ns, .proof = LAPSE_INFERRED });
    diff->counts.gaps++;
    thread->stable_seen_ns = last_ns;
    thread->waiting_proof = LAPSE_INFERRED;
    return LAPSE_INFERRED;
}

static void give_what_counts(struct lapse_diff *diff, struct lapse_diff_thread *thread)
{
    uint32_t wanted = diff->options.min_samples;
    while (thread->open < thread->now.depth &&
           thread->samples - thread->now.slots[thread->open].run >= wanted) {
        give_start(diff, thread, &thread->now.slots[thread->open], thread->open);
        thread->open++;
    }
}

static void make_change(struct lapse_diff *diff, struct lapse_diff_thread *thread, uint64_t time_ns,
                        const struct source *source, const struct lapse_diff_change *change)
{
    uint32_t common = change->common, depth = thread->now.depth;
    struct lapse_diff_slot run = { .start_ns = time_ns, .start_after_ns = thread->last_ns,
                                   .run = thread->samples, .start_proof = change->proof };
    if (common < thread->hidden && common < depth)
        run.start_after_ns = thread->now.slots[common].seen_ns;
    if (thread->open > common) {
        struct ending ending = { .time_ns = time_ns, .after_ns = thread->last_ns,
                                 .before_ns = time_ns, .proof = change->proof };
        give_ends(diff, thread, thread->now.slots, thread->open, common, &ending);
        thread->open = common;
    }
    hide(thread, change->base);
    if (source->frames || !source->depth)
        fill_from_frames(thread, source, change, &run);
    else
        fill_from_node(thread, source, common, &run);
    thread->now.depth = change->depth;
    thread->marker = change->marker;
    thread->placed = change->placed;
    thread->placed_below = change->placed_below;
}

static int take(struct lapse_diff *diff, struct lapse_diff_thread *thread, uint64_t time_ns,
                const struct source *source, const struct lapse_call_tree *tree)
{
    struct lapse_diff_change change;
    uint64_t most = (source->cut ? 1ull + thread->now.depth : 0) + source->depth;
    if (!reserve_stack(diff, &thread->now, most) ||
        (diff->options.confirm > 1 && !reserve_stack(diff, &thread->stable, most)) ||
        (source->cut && !reserve_scratch(diff, most)))
        return -ENOMEM;
    uint8_t proof = end_before_gap(diff, thread, time_ns);
    uint32_t depth = thread->now.depth;
    find_change(diff, thread, time_ns, source, tree, &change);
    if (proof > change.proof)
        change.proof = proof;
    make_change(diff, thread, time_ns, source, &change);
    thread->now.is_path = !source->cut && tree;
    thread->now.node = source->node;
    thread->samples++;
    thread->last_ns = time_ns;
    diff->counts.samples++;
    diff->counts.cut += source->cut;
    if (diff->options.confirm > 1)
        count_sighting(diff, thread, time_ns, change.common != depth || change.depth != depth,
                       change.proof, tree);
    else
        give_what_counts(diff, thread);
    return 0;
}

int lapse_diff_push_known(struct lapse_diff *diff, uint64_t time_ns, uint64_t thread_id,
                          const struct lapse_diff_frame *frames, uint32_t depth, uint32_t flags,
                          uint32_t known)
{
    static const struct lapse_diff_frame none;
    struct lapse_diff_thread *thread = find_thread(diff, thread_id);
    if (!thread)
        return -ENOMEM;
    if (thread->samples && time_ns <= thread->last_ns)
        return -EINVAL;
    struct source source = { .frames = depth ? frames : &none, .depth = depth, .known = known,
                             .cut = flags & LAPSE_STACK_CUT,
                             .marker_function = flags & LAPSE_STACK_UNWIND_FAILED
                                                    ? LAPSE_FUNCTION_UNWIND_FAILED
                                                    : LAPSE_FUNCTION_TRUNCATED };
    return take(diff, thread, time_ns, &source, NULL);
}

int lapse_diff_push(struct lapse_diff *diff, uint64_t time_ns, uint64_t thread_id,
                    const struct lapse_diff_frame *frames, uint32_t depth, uint32_t flags)
{
    return lapse_diff_push_known(diff, time_ns, thread_id, frames, depth, flags, 0);
}

static uint32_t outermost(const struct lapse_call_node *nodes, uint32_t node)
{
    while (nodes[node].depth > 1)
        node = nodes[node].parent;
    return node;
}

static bool is_marker(uint64_t function)
{
    return function == LAPSE_FUNCTION_TRUNCATED || function == LAPSE_FUNCTION_UNWIND_FAILED;
}

/* Write the path of a node out as frames, for what ancestors cannot answer. */
static int write_out(struct lapse_diff *diff, struct source *source, uint64_t cut_cfa)
{
    struct lapse_diff_scratch *scratch = &diff->scratch;
    uint32_t depth = source->depth - source->cut, node = source->node;
    if (!reserve(diff, &scratch->frames, &scratch->frame_capacity, depth + 1ull,
                 sizeof *scratch->frames))
        return -ENOMEM;
    for (uint32_t i = depth; i-- > 0; node = source->nodes[node].parent)
        scratch->frames[i] = (struct lapse_diff_frame){ .function = source->nodes[node].function,
                                                        .call_site = source->nodes[node].call_site };
    if (source->cut)
        source->marker_function = source->nodes[node].function;
    if (source->cut && depth)
        scratch->frames[0].cfa = cut_cfa;
    source->frames = scratch->frames;
    source->depth = depth;
    return 0;
}

int lapse_diff_push_node_cut(struct lapse_diff *diff, uint64_t time_ns, uint64_t thread_id,
                             const struct lapse_call_tree *tree, uint32_t node, uint64_t cut_cfa)
{
    struct source source = { .node = node };
    uint32_t count;
    struct lapse_diff_thread *thread = find_thread(diff, thread_id);
    if (!thread)
        return -ENOMEM;
    source.nodes = lapse_call_tree_nodes(tree, &count);
    if (node >= count || (thread->samples && time_ns <= thread->last_ns))
        return -EINVAL;
    source.depth = source.nodes[node].depth;
    /* A stack that shares its outermost frame with a whole one is whole: no need to go there. */
    bool is_path = thread->now.is_path;
    if (!is_path || !lapse_call_tree_common(tree, thread->now.node, node))
        source.cut = node && is_marker(source.nodes[outermost(source.nodes, node)].function);
    if ((source.cut || !is_path) && write_out(diff, &source, cut_cfa))
        return -ENOMEM;
    return take(diff, thread, time_ns, &source, tree);
}

int lapse_diff_push_node(struct lapse_diff *diff, uint64_t time_ns, uint64_t thread_id,
                         const struct lapse_call_tree *tree, uint32_t node)
{
    return lapse_diff_push_node_cut(diff, time_ns, thread_id, tree, node, 0);
}

/* ---- the stream ---- */

int lapse_diff_create(struct lapse_diff **made, const struct lapse_diff_options *options)
{
    struct lapse_allocator allocator = options->allocator;
    if (options->min_samples > 1 && options->confirm > 1)
        return -EINVAL;
    if (!allocator.resize)
        allocator = lapse_heap;
    struct lapse_diff *diff = allocator.resize(allocator.context, NULL, 0, sizeof *diff);
    if (!diff)
        return -ENOMEM;
    *diff = (struct lapse_diff){ .options = *options };
    diff->options.allocator = allocator;
    if (!diff->options.period_ns)
        diff->options.period_ns = 1;
    if (!diff->options.min_samples)
        diff->options.min_samples = 1;
    *made = diff;
    return 0;
}

static void release(struct lapse_diff *diff, void *array, size_t size)
{
    if (array)
        resize(diff, array, size, 0);
}

void lapse_diff_destroy(struct lapse_diff *diff)
{
    if (!diff)
        return;
    struct lapse_diff_scratch *scratch = &diff->scratch;
    for (uint32_t i = 0; i < diff->thread_count; i++) {
        struct lapse_diff_thread *thread = diff->threads[i];
        size_t slot = sizeof *thread->now.slots;
        release(diff, thread->now.slots, thread->now.capacity * slot);
        release(diff, thread->stable.slots, thread->stable.capacity * slot);
        release(diff, thread, sizeof *thread);
    }
    release(diff, diff->threads, diff->thread_capacity * sizeof *diff->threads);
    release(diff, diff->slots, diff->slot_count * sizeof *diff->slots);
    release(diff, scratch->room, scratch->capacity * sizeof *scratch->room);
    release(diff, scratch->frames, scratch->frame_capacity * sizeof *scratch->frames);
    release(diff, diff, sizeof *diff);
}

int lapse_diff_flush(struct lapse_diff *diff)
{
    (void)diff;
    return 0;
}

static uint64_t closing_time(const struct lapse_diff_options *options, uint64_t last_ns)
{
    if (options->close == LAPSE_CLOSE_NEXT)
        return last_ns + options->period_ns < last_ns ? UINT64_MAX : last_ns + options->period_ns;
    if (options->close == LAPSE_CLOSE_AT && options->close_at_ns > last_ns)
        return options->close_at_ns;
    return last_ns;
}

int lapse_diff_finish(struct lapse_diff *diff)
{
    for (uint32_t i = 0; i < diff->thread_count; i++) {
        struct lapse_diff_thread *thread = diff->threads[i];
        if (thread->sightings && !thread->now.depth) /* an explicit empty end is no noise */
            confirm_waiting(diff, thread, 0);
        if (diff->options.close == LAPSE_CLOSE_OPEN)
            continue;
        close_thread(diff, thread, &(struct ending){
            .time_ns = closing_time(&diff->options, thread->last_ns), .after_ns = thread->last_ns,
            .before_ns = UINT64_MAX, .proof = LAPSE_PROVEN });
    }
    return 0;
}

void lapse_diff_counts(const struct lapse_diff *diff, struct lapse_diff_counts *counts)
{
    *counts = diff->counts;
}
