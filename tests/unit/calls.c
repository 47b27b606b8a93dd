/* SPDX-License-Identifier: MIT */
/* Unit tests of export/calls.c: what a profile's samples become when they go through the engine. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "calls.h"
#include "make_recording.h"
#include "profile.h"

enum { DEPTH_MAX = 256, THREADS = 3 };

struct check {
    const struct lapse_profile *profile;
    bool *calls; /* caller * functions + callee: some stack has it */
    uint32_t open[THREADS][DEPTH_MAX];
    uint32_t markers, edges;
};

static int on_edge(void *context, const struct lapse_call_edge *edge)
{
    struct check *check = context;
    const struct lapse_profile_function *functions = check->profile->functions;
    cr_assert(edge->thread < THREADS && edge->depth < DEPTH_MAX);
    uint32_t *open = check->open[edge->thread];
    if (!edge->start) {
        cr_assert_eq(open[edge->depth], edge->function);
        return 0;
    }
    open[edge->depth] = edge->function;
    check->edges++;
    check->markers += (functions[edge->function].flags & LAPSE_FUNCTION_CUT) != 0;
    if (!edge->depth || functions[edge->function].flags & LAPSE_FUNCTION_CUT)
        return 0;
    uint32_t above = open[edge->depth - 1];
    if (!(functions[above].flags & LAPSE_FUNCTION_CUT))
        cr_assert(check->calls[above * check->profile->function_count + edge->function],
                  "%s never calls %s", functions[above].name, functions[edge->function].name);
    return 0;
}

/* A cut stack that fits nowhere stands on a marker, which is no function of the program. */
Test(calls, markers_are_nobodys_function)
{
    char path[] = "/tmp/lapse-calls-XXXXXX";
    close(mkstemp(path));
    unlink(path);
    const struct lapse_test_recording numbers = {
        .threads = THREADS, .samples = 6000, .stacks = 100, .cut = true, .walk = true,
    };
    lapse_test_make_recording(path, &numbers);
    struct lapse_profile *profile;
    char error[256] = "";
    const char *paths[] = { path };
    const struct lapse_profile_options reading = { 0 };
    cr_assert_eq(lapse_profile_open(&profile, paths, 1, &reading, error, sizeof error), 0, "%s", error);
    struct check check = { .profile = profile };
    check.calls = calloc((size_t)profile->function_count * profile->function_count, 1);
    for (uint32_t i = 1; i < profile->node_count; i++)
        if (profile->nodes[i].parent)
            check.calls[profile->nodes[profile->nodes[i].parent].function * profile->function_count +
                        profile->nodes[i].function] = true;
    const struct lapse_export_options chosen = { 0 };
    const struct lapse_calls_options options = {
        .edge = on_edge, .context = &check, .export_options = &chosen,
    };
    cr_assert_eq(lapse_calls(profile, &options), 0);
    cr_assert_gt(check.edges, 1000);
    cr_assert_gt(check.markers, 0);
    free(check.calls);
    lapse_profile_close(profile);
    unlink(path);
}
