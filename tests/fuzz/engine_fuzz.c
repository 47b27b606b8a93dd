/* SPDX-License-Identifier: MIT */
/* A stream of stacks, made of bytes, through the engine in both forms. Whatever comes: events of a
 * thread nest, times never go back, both forms give the same events, and without filters the
 * events replay to each whole stack.
 *
 * Input: options, filter, then per sample: thread and flags, time step, frames kept of the thread's
 * stack before, frames added, and one byte for each of these. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "call_tree.h"
#include "heap.h"
#include "lapse/diff.h"

enum { THREADS = 3, DEPTH = 64, LIVE = 4096, MOST_EDGES = 1 << 15 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct stack { uint32_t depth; uint64_t functions[LIVE]; uint64_t time; };

struct run {
    struct stack live[THREADS];
    struct lapse_edge edges[MOST_EDGES];
    uint32_t count, intervals;
};

static struct run by_frames, by_nodes;

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void on_edge(void *context, const struct lapse_edge *edge)
{
    struct run *run = context;
    struct stack *live = &run->live[edge->thread];
    check(edge->time_ns >= live->time && edge->after_ns <= edge->time_ns);
    live->time = edge->time_ns;
    if (edge->kind == LAPSE_EDGE_START) {
        check(edge->depth == live->depth && live->depth < LIVE);
        live->functions[live->depth++] = edge->function;
    } else {
        check(live->depth && edge->depth == live->depth - 1);
        check(live->functions[--live->depth] == edge->function);
    }
    if (run->count < MOST_EDGES)
        run->edges[run->count++] = *edge;
}

static void on_interval(void *context, const struct lapse_interval *interval)
{
    struct run *run = context;
    check(interval->start_ns <= interval->end_ns);
    run->intervals++;
}

struct input { const uint8_t *at, *end; };

static uint8_t next(struct input *input)
{
    return input->at < input->end ? *input->at++ : 0;
}

struct sample {
    struct lapse_diff_frame frames[DEPTH];
    uint32_t depth;
    bool cut;
};

static void next_sample(struct input *input, struct sample *sample, uint8_t flags)
{
    uint8_t counts = next(input);
    uint32_t kept = counts % (sample->depth + 1), added = counts >> 5;
    sample->cut = flags & 4;
    if (kept + added > DEPTH)
        added = DEPTH - kept;
    for (uint32_t i = kept; i < kept + added; i++) {
        uint8_t byte = next(input);
        sample->frames[i] = (struct lapse_diff_frame){ .function = 16 + byte % 8,
                                                       .call_site = 1 + (byte >> 6) };
    }
    sample->depth = kept + added;
    if (sample->depth) /* of a cut stack the outermost known frame may have its address */
        sample->frames[0].cfa = sample->cut && flags & 8 ? 1000 - 8 * (flags >> 4) : 0;
}

static uint32_t node_of(struct lapse_call_tree *tree, const struct sample *sample)
{
    uint32_t node = 0;
    if (sample->cut)
        node = lapse_call_tree_child(tree, 0, 0, LAPSE_FUNCTION_TRUNCATED, 0);
    for (uint32_t i = 0; i < sample->depth; i++)
        node = lapse_call_tree_child(tree, node, sample->frames[i].call_site,
                                     sample->frames[i].function, 0);
    return node;
}

static void check_live(const struct run *run, uint32_t thread, const struct sample *sample)
{
    const struct stack *live = &run->live[thread];
    check(live->depth == sample->depth);
    for (uint32_t i = 0; i < sample->depth; i++)
        check(live->functions[i] == sample->frames[i].function);
}

static struct lapse_diff *engine(struct lapse_diff_options options, struct run *run)
{
    struct lapse_diff *diff;
    for (uint32_t i = 0; i < THREADS; i++)
        run->live[i].depth = run->live[i].time = 0;
    run->count = run->intervals = 0;
    options.edge = on_edge;
    options.interval = on_interval;
    options.context = run;
    return lapse_diff_create(&diff, &options) ? NULL : diff;
}

static void feed(struct input *input, struct lapse_diff *frames, struct lapse_diff *nodes,
                 struct lapse_call_tree *tree, bool filtered)
{
    static struct sample samples[THREADS];
    uint64_t times[THREADS] = { 0 };
    memset(samples, 0, sizeof samples);
    for (uint32_t count = 0; input->at < input->end && count < 500; count++) {
        uint8_t flags = next(input);
        uint32_t thread = flags % 4 % THREADS;
        struct sample *sample = &samples[thread];
        uint64_t time = times[thread] + next(input) % 16;
        next_sample(input, sample, flags);
        int status = lapse_diff_push(frames, time, thread, sample->frames, sample->depth,
                                     sample->cut ? LAPSE_STACK_CUT : 0);
        uint64_t cfa = sample->depth ? sample->frames[0].cfa : 0;
        check(status == lapse_diff_push_node_cut(nodes, time, thread, tree, node_of(tree, sample),
                                                 cfa));
        if (!status && !sample->cut && !filtered)
            check_live(&by_frames, thread, sample);
        if (!status)
            times[thread] = time;
    }
}

static bool same_edge(const struct lapse_edge *a, const struct lapse_edge *b)
{
    return a->time_ns == b->time_ns && a->thread == b->thread && a->after_ns == b->after_ns &&
           a->before_ns == b->before_ns && a->function == b->function &&
           a->call_site == b->call_site && a->depth == b->depth && a->kind == b->kind &&
           a->proof == b->proof;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input input = { bytes, bytes + size };
    uint8_t kind = next(&input), amount = next(&input) % 6;
    struct lapse_diff_options options = { .close = kind % 4, .close_at_ns = 50, .period_ns = 3 };
    struct lapse_call_tree *tree;
    options.gap_ns = kind & 4 ? 7 : 0;
    options.min_samples = kind & 8 ? amount : 0;
    options.confirm = kind & 16 ? amount : 0;
    struct lapse_diff *frames = engine(options, &by_frames), *nodes = engine(options, &by_nodes);
    check(!frames == (options.min_samples > 1 && options.confirm > 1));
    if (!frames)
        return 0;
    check(!lapse_call_tree_create(&tree, &lapse_heap));
    feed(&input, frames, nodes, tree, (kind & 24) && amount > 1);
    lapse_diff_finish(frames);
    lapse_diff_finish(nodes);
    check(by_frames.count == by_nodes.count && by_frames.intervals == by_nodes.intervals);
    for (uint32_t i = 0; i < by_frames.count; i++)
        check(same_edge(&by_frames.edges[i], &by_nodes.edges[i]));
    for (uint32_t i = 0; options.close != LAPSE_CLOSE_OPEN && i < THREADS; i++)
        check(!by_frames.live[i].depth);
    lapse_diff_destroy(frames);
    lapse_diff_destroy(nodes);
    lapse_call_tree_destroy(tree);
    return 0;
}
