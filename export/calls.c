/* SPDX-License-Identifier: MIT */
/* See calls.h. Frames are known to the engine by function and call site, so two calls from different
 * places are two calls; a cut stack goes in without its pseudo-frame, flagged as cut. */
#include "calls.h"

#include <errno.h>
#include <stdlib.h>

/* Without a wish of the user: a thread that was silent for this long was off the CPU. Ten periods,
 * but never less than ten ticks of a kernel at 250 Hz, which merges faster ones. */
#define GAP_PERIODS 10u
#define GAP_LEAST_NS 40000000u

/* What the walk from a leaf outwards needs of a node, close together. */
struct step { uint64_t call_site; uint32_t parent, function; };

struct calls {
    struct lapse_profile *profile;
    struct step *steps; /* by node */
    const struct lapse_calls_options *options;
    struct lapse_diff *diff;
    struct lapse_diff_frame *frames;
    uint32_t frames_leaf, frames_depth, frames_flags; /* the stack that `frames` holds */
    uint64_t *last_ns; /* per thread */
    int error;
};

static void on_edge(void *context, const struct lapse_edge *edge)
{
    struct calls *calls = context;
    if (calls->error)
        return;
    struct lapse_call_edge call = {
        .time_ns = edge->time_ns,
        .thread = (uint32_t)edge->thread,
        .function = (uint32_t)(edge->function - 1),
        .depth = edge->depth,
        .start = edge->kind == LAPSE_EDGE_START,
        .inferred = edge->proof != LAPSE_PROVEN,
        .ambiguous = edge->proof == LAPSE_AMBIGUOUS,
    };
    calls->error = calls->options->edge(calls->options->context, &call);
}

static void on_interval(void *context, const struct lapse_interval *interval)
{
    struct calls *calls = context;
    calls->options->interval(calls->options->context, interval);
}

/* Put the stack of a leaf into `frames`, outermost first. */
static void load_stack(struct calls *calls, uint32_t leaf)
{
    uint32_t node = calls->profile->leaves[leaf].node;
    uint32_t depth = calls->profile->nodes[node].depth;
    calls->frames_flags = 0;
    for (uint32_t i = depth; i > 0; i--) {
        const struct step *step = &calls->steps[node];
        calls->frames[i - 1] = (struct lapse_diff_frame){
            .function = step->function + 1u, .call_site = step->call_site,
        };
        node = step->parent;
    }
    if (depth && calls->profile->functions[calls->frames[0].function - 1].flags & LAPSE_FUNCTION_CUT) {
        calls->frames_flags = LAPSE_STACK_CUT;
        for (uint32_t i = 1; i < depth; i++)
            calls->frames[i - 1] = calls->frames[i];
        depth--;
    }
    calls->frames_leaf = leaf;
    calls->frames_depth = depth;
}

static int on_sample(void *context, const struct lapse_profile_sample *sample)
{
    struct calls *calls = context;
    uint64_t time_ns = sample->time_ns;
    if (calls->options->sample) {
        int result = calls->options->sample(calls->options->context, sample);
        if (result)
            return result;
    }
    /* Two samples of a thread in the same nanosecond: the engine wants them apart. */
    if (time_ns <= calls->last_ns[sample->thread])
        time_ns = calls->last_ns[sample->thread] + 1;
    calls->last_ns[sample->thread] = time_ns;
    if (calls->frames_leaf != sample->leaf)
        load_stack(calls, sample->leaf);
    if (calls->frames_depth)
        calls->frames[0].cfa = sample->cut_cfa;
    int result = lapse_diff_push(calls->diff, time_ns, sample->thread, calls->frames,
                                 calls->frames_depth, calls->frames_flags);
    return calls->error ? calls->error : result;
}

static int run(struct calls *calls)
{
    int error = lapse_profile_each_sample(calls->profile, on_sample, calls);
    if (!error)
        error = lapse_diff_finish(calls->diff);
    return calls->error ? calls->error : error;
}

uint64_t lapse_calls_gap(const struct lapse_profile *profile,
                         const struct lapse_export_options *options)
{
    uint64_t gap = GAP_PERIODS * profile->period_ns;
    if (options->gap_ns)
        return options->gap_ns;
    return gap > GAP_LEAST_NS ? gap : GAP_LEAST_NS;
}

int lapse_calls(struct lapse_profile *profile, const struct lapse_calls_options *options)
{
    struct calls calls = { .profile = profile, .options = options, .frames_leaf = LAPSE_NONE };
    const struct lapse_export_options *chosen = options->export_options;
    uint32_t deepest = 0;
    if (!profile->has_times)
        return -ENOTSUP;
    calls.steps = calloc(profile->node_count + 1u, sizeof *calls.steps);
    for (uint32_t i = 0; calls.steps && i < profile->node_count; i++) {
        const struct lapse_profile_node *node = &profile->nodes[i];
        calls.steps[i] = (struct step){ node->call_pc, node->parent, node->function };
        if (node->depth > deepest)
            deepest = node->depth;
    }
    calls.frames = calloc(deepest + 1u, sizeof *calls.frames);
    calls.last_ns = calloc(profile->thread_count + 1u, sizeof *calls.last_ns);
    struct lapse_diff_options diff = {
        .close = chosen->close == LAPSE_CLOSE_OPEN ? LAPSE_CLOSE_NEXT : chosen->close,
        .period_ns = profile->period_ns,
        .gap_ns = lapse_calls_gap(profile, chosen),
        .min_samples = chosen->min_samples, .edge = options->edge ? on_edge : NULL,
        .interval = options->interval ? on_interval : NULL, .context = &calls,
    };
    if (options->as_asked) {
        diff.close = chosen->close;
        diff.gap_ns = chosen->gap_ns;
    }
    int error = calls.steps && calls.frames && calls.last_ns ? lapse_diff_create(&calls.diff, &diff) : -ENOMEM;
    if (!error)
        error = run(&calls);
    lapse_diff_destroy(calls.diff);
    free(calls.steps);
    free(calls.frames);
    free(calls.last_ns);
    return error;
}
