/* SPDX-License-Identifier: MIT */
/* Samples of a recording for `lapse events`. Functions are told apart by call site, and cut stacks
 * are aligned by the frame address that was recorded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "events.h"
#include "profile.h"

struct recording {
    struct lapse_events *events;
    struct lapse_profile *profile;
    uint32_t *threads; /* text of each thread of the profile, by number */
    uint64_t skipped;
};

/* A tid can come back after its thread has ended: the later ones get a number behind it. */
static int name_threads(struct recording *recording)
{
    const struct lapse_profile *profile = recording->profile;
    struct lapse_strings *texts = &recording->events->threads;
    recording->threads = calloc(profile->thread_count + 1ull, sizeof *recording->threads);
    if (!recording->threads)
        return -ENOMEM;
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        const struct lapse_profile_thread *thread = &profile->threads[i];
        uint32_t before = texts->count, pid = profile->processes[thread->process].pid;
        for (uint32_t again = 1; texts->count == before; again++) {
            char text[64] = "";
            if (profile->process_count > 1)
                snprintf(text, sizeof text, "%u/", pid);
            snprintf(text + strlen(text), sizeof text - strlen(text), again > 1 ? "%u#%u" : "%u",
                     thread->tid, again);
            recording->threads[i] = lapse_strings_number(texts, text, strlen(text));
            if (recording->threads[i] == LAPSE_INDEX_NONE)
                return -ENOMEM;
        }
    }
    return 0;
}

static const struct lapse_profile_function *function_of(const struct recording *recording,
                                                        uint32_t node)
{
    return &recording->profile->functions[recording->profile->nodes[node].function];
}

static int push_sample(void *context, const struct lapse_profile_sample *sample)
{
    struct recording *recording = context;
    struct lapse_events *events = recording->events;
    const struct lapse_profile_node *nodes = recording->profile->nodes;
    uint32_t node = recording->profile->leaves[sample->leaf].node, depth = nodes[node].depth;
    uint32_t flags = 0;
    for (uint32_t i = events->frame_capacity; i <= depth; i = events->frame_capacity)
        if (!lapse_events_frame_room(events, i))
            return -ENOMEM;
    for (uint32_t at = depth; at-- > 0; node = nodes[node].parent) {
        const struct lapse_profile_function *function = function_of(recording, node);
        uint32_t number = lapse_strings_number(&events->names, function->name,
                                               strlen(function->name));
        if (number == LAPSE_INDEX_NONE)
            return -ENOMEM;
        if (!at && function->flags & LAPSE_FUNCTION_CUT)
            flags = strcmp(function->name, "[unwind failed]")
                        ? LAPSE_STACK_CUT : LAPSE_STACK_CUT | LAPSE_STACK_UNWIND_FAILED;
        events->frames[at] = (struct lapse_diff_frame){
            .function = number + (uint64_t)LAPSE_FIRST_FUNCTION, .call_site = nodes[node].call_pc };
    }
    struct lapse_diff_frame *first = events->frames + (flags != 0);
    depth -= flags != 0;
    if (flags && depth) {
        first->cfa = sample->cut_cfa;
        first->call_site = 0; /* of a caller that is not known */
    }
    int error = lapse_diff_push(events->diff, sample->time_ns,
                                recording->threads[sample->thread], first, depth, flags);
    if (error == -EINVAL) { /* two samples of one thread in one nanosecond: the first stands */
        recording->skipped++;
        return 0;
    }
    return error ? error : events->error;
}

int lapse_events_recording(struct lapse_events *events, const char *path)
{
    struct recording recording = { .events = events };
    struct lapse_profile_options options = { 0 };
    char cause[512];
    if (lapse_profile_open(&recording.profile, &path, 1, &options, cause, sizeof cause))
        return lapse_complain("events", "%s", cause);
    if (!events->options.period_ns)
        events->options.period_ns = recording.profile->period_ns;
    int error = lapse_events_begin(events);
    if (!error)
        error = name_threads(&recording);
    if (!error)
        error = lapse_profile_each_sample(recording.profile, push_sample, &recording);
    if (!error)
        error = lapse_diff_finish(events->diff);
    for (uint32_t i = 0; i < recording.profile->note_count; i++)
        fprintf(stderr, "lapse events: %s\n", recording.profile->notes[i]);
    if (recording.skipped)
        fprintf(stderr, "lapse events: %llu samples at the time of another one left out\n",
                (unsigned long long)recording.skipped);
    lapse_profile_close(recording.profile);
    free(recording.threads);
    return error ? lapse_complain("events", "%s: %s", path, strerror(-error)) : 0;
}
