/* SPDX-License-Identifier: MIT */
/* See calls.h. Frames are known to the engine by function and call site, so two calls from different
 * places are two calls; a cut stack goes in without its pseudo-frame, flagged as cut. */
#include "calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "diff_state.h"
#include "index.h"

/* Without a wish of the user: a thread that was silent for this long was off the CPU. Ten periods,
 * but never less than ten ticks of a kernel at 250 Hz, which merges faster ones. */
#define GAP_PERIODS 10u
#define GAP_LEAST_NS 40000000u

/* The engine's number of a function: its index, beyond the numbers that are the engine's own markers. */
enum { FIRST_FUNCTION = LAPSE_FUNCTION_UNWIND_FAILED + 1 };

/* What the walk from a leaf outwards needs of a node, close together. */
struct step { uint64_t call_site; uint32_t parent, function, depth; };

struct calls {
    struct lapse_profile *profile;
    struct step *steps; /* by node */
    uint32_t *leaf_nodes; /* by leaf */
    const struct lapse_calls_options *options;
    struct lapse_diff *diff;
    struct lapse_diff_frame *all, *frames;
    uint32_t *path; /* nodes of the stack that was loaded last, outermost first */
    uint32_t path_depth;
    uint32_t frames_leaf, frames_depth, frames_flags; /* that stack, as the engine gets it */
    uint32_t kept;        /* outermost frames that are those of the stack loaded before */
    uint32_t last_thread; /* that the stack loaded before was pushed for, if it was whole */
    uint64_t *last_ns; /* per thread */
    uint32_t markers[FIRST_FUNCTION]; /* functions that stand for the engine's markers */
    int error;
};

static uint32_t function_of(const struct calls *calls, uint64_t id)
{
    return id < FIRST_FUNCTION ? calls->markers[id] : (uint32_t)(id - FIRST_FUNCTION);
}

static void find_markers(struct calls *calls)
{
    const struct lapse_profile *profile = calls->profile;
    for (uint32_t i = profile->function_count; i-- > 0;) {
        const struct lapse_profile_function *function = &profile->functions[i];
        if (!(function->flags & LAPSE_FUNCTION_CUT))
            continue;
        if (!strcmp(function->name, "[unwind failed]"))
            calls->markers[LAPSE_FUNCTION_UNWIND_FAILED] = i;
        else
            calls->markers[LAPSE_FUNCTION_TRUNCATED] = i;
    }
}

static void on_edge(void *context, const struct lapse_edge *edge)
{
    struct calls *calls = context;
    if (calls->error)
        return;
    struct lapse_call_edge call = {
        .time_ns = edge->time_ns,
        .thread = (uint32_t)edge->thread,
        .function = function_of(calls, edge->function),
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
    struct lapse_interval call = *interval;
    call.function = function_of(calls, interval->function) + 1ull;
    calls->options->interval(calls->options->context, &call);
}

/* Put the stack of a leaf into `all`, outermost first. What it shares with the one before is there
 * already: a walk from the leaf outwards that goes no further is several times shorter. */
static void load_stack(struct calls *calls, uint32_t leaf)
{
    uint32_t node = calls->leaf_nodes[leaf], depth = calls->steps[node].depth, i = depth;
    for (; i > 0 && (i > calls->path_depth || calls->path[i - 1] != node); i--) {
        const struct step *step = &calls->steps[node];
        calls->all[i - 1] = (struct lapse_diff_frame){
            .function = (uint64_t)step->function + FIRST_FUNCTION, .call_site = step->call_site,
        };
        calls->path[i - 1] = node;
        node = step->parent;
    }
    uint32_t outermost = depth ? function_of(calls, calls->all[0].function) : 0;
    bool cut = depth && calls->profile->functions[outermost].flags & LAPSE_FUNCTION_CUT;
    bool failed = cut && outermost == calls->markers[LAPSE_FUNCTION_UNWIND_FAILED];
    calls->kept = i;
    calls->path_depth = depth;
    calls->frames_leaf = leaf;
    calls->frames_flags = (cut ? LAPSE_STACK_CUT : 0) | (failed ? LAPSE_STACK_UNWIND_FAILED : 0);
    calls->frames = calls->all + cut; /* the pseudo-frame itself is left out */
    calls->frames_depth = depth - cut;
}

/* The walks of load_stack wait for memory at every step. A few steps of all walks side by side wait for
 * many places at once; what they bring into the cache the walks then find there. */
static void walk_ahead(const struct calls *calls, const struct lapse_profile_sample *samples,
                       uint32_t count)
{
    enum { MOST = 64, STEPS = 8 }; /* more frames seldom change from sample to sample */
    uint32_t nodes[MOST];
    count = count < MOST ? count : MOST;
    for (uint32_t i = 0; i < count; i++)
        nodes[i] = calls->leaf_nodes[samples[i].leaf];
    for (uint32_t step = 0; step < STEPS; step++)
        for (uint32_t i = 0; i < count; i++)
            nodes[i] = calls->steps[nodes[i]].parent; /* of the root: the root */
    for (uint32_t i = 0; i < count; i++)
        __asm__ volatile("" : : "r"(nodes[i])); /* used for nothing, so the walks would be left out */
}

static int take_sample(struct calls *calls, const struct lapse_profile_sample *sample)
{
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
    else
        calls->kept = calls->frames_depth;
    if (calls->frames_depth)
        calls->frames[0].cfa = sample->cut_cfa;
    bool whole = !(calls->frames_flags & LAPSE_STACK_CUT);
    uint32_t known = whole && calls->last_thread == sample->thread ? calls->kept : 0;
    calls->last_thread = whole ? sample->thread : LAPSE_NONE;
    int result = lapse_diff_push_known(calls->diff, time_ns, sample->thread, calls->frames,
                                       calls->frames_depth, calls->frames_flags, known);
    return calls->error ? calls->error : result;
}

static int on_samples(void *context, const struct lapse_profile_sample *samples, uint32_t count)
{
    struct calls *calls = context;
    int error = 0;
    walk_ahead(calls, samples, count);
    for (uint32_t i = 0; i < count && !error; i++)
        error = take_sample(calls, &samples[i]);
    return error;
}

static int run(struct calls *calls)
{
    int error = lapse_profile_each_samples(calls->profile, on_samples, calls);
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
    struct calls calls = { .profile = profile, .options = options, .frames_leaf = LAPSE_NONE,
                           .last_thread = LAPSE_NONE };
    const struct lapse_export_options *chosen = options->export_options;
    uint32_t deepest = 0;
    if (!profile->has_times)
        return -ENOTSUP;
    find_markers(&calls);
    size_t size = (profile->node_count + 1ull) * sizeof *calls.steps;
    calls.steps = lapse_array_scattered(malloc(size), size);
    for (uint32_t i = 0; calls.steps && i < profile->node_count; i++) {
        const struct lapse_profile_node *node = &profile->nodes[i];
        calls.steps[i] = (struct step){ node->call_pc, node->parent, node->function, node->depth };
        if (node->depth > deepest)
            deepest = node->depth;
    }
    calls.leaf_nodes = calloc(profile->leaf_count + 1u, sizeof *calls.leaf_nodes);
    for (uint32_t i = 0; calls.leaf_nodes && i < profile->leaf_count; i++)
        calls.leaf_nodes[i] = profile->leaves[i].node;
    calls.all = calloc(deepest + 1u, sizeof *calls.all);
    calls.path = calloc(deepest + 1u, sizeof *calls.path);
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
    bool ready = calls.steps && calls.leaf_nodes && calls.all && calls.path && calls.last_ns;
    int error = ready ? lapse_diff_create(&calls.diff, &diff) : -ENOMEM;
    if (!error)
        error = run(&calls);
    lapse_diff_destroy(calls.diff);
    free(calls.steps);
    free(calls.leaf_nodes);
    free(calls.all);
    free(calls.path);
    free(calls.last_ns);
    return error;
}
