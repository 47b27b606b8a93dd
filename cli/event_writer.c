/* SPDX-License-Identifier: MIT */
/* Text of edges and intervals, as `lapse events` writes them. See events.h. */
#include "events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "event_text.h"
#include "text.h"

static void write_name(struct lapse_events *events, uint64_t function)
{
    if (function == LAPSE_FUNCTION_TRUNCATED || function == LAPSE_FUNCTION_UNWIND_FAILED) {
        lapse_output_text(&events->output, function == LAPSE_FUNCTION_TRUNCATED
                                               ? LAPSE_TRUNCATED_NAME : LAPSE_UNWIND_FAILED_NAME);
        return;
    }
    uint32_t number = (uint32_t)(function - LAPSE_FIRST_FUNCTION);
    size_t room = 4ull * events->names.sizes[number];
    char *to = lapse_output_room(&events->output, room);
    if (to)
        events->output.size += lapse_escaped_name(to, room, events->names.texts[number]);
}

static void write_place(struct lapse_events *events, uint64_t thread)
{
    lapse_output_char(&events->output, '\t');
    lapse_output_bytes(&events->output, events->threads.texts[thread],
                       events->threads.sizes[thread]);
    lapse_output_char(&events->output, '\t');
}

static void write_rest(struct lapse_events *events, uint32_t depth, uint64_t function, uint8_t proof,
                       uint64_t after, uint64_t before)
{
    struct lapse_output *output = &events->output;
    lapse_output_uint(output, depth);
    lapse_output_char(output, '\t');
    write_name(events, function);
    if (proof != LAPSE_PROVEN)
        lapse_output_text(output, proof == LAPSE_INFERRED ? "\tinferred" : "\tambiguous");
    if (events->bounds) {
        lapse_output_char(output, '\t');
        lapse_output_uint(output, after);
        lapse_output_char(output, '\t');
        if (before == UINT64_MAX)
            lapse_output_char(output, '-');
        else
            lapse_output_uint(output, before);
    }
    lapse_output_char(output, '\n');
}

static void write_edge(void *context, const struct lapse_edge *edge)
{
    struct lapse_events *events = context;
    lapse_output_uint(&events->output, edge->time_ns);
    write_place(events, edge->thread);
    lapse_output_text(&events->output, edge->kind == LAPSE_EDGE_START ? "start\t" : "end\t");
    write_rest(events, edge->depth, edge->function, edge->proof, edge->after_ns, edge->before_ns);
}

static void write_interval(void *context, const struct lapse_interval *interval)
{
    struct lapse_events *events = context;
    uint8_t proof = interval->start_proof > interval->end_proof ? interval->start_proof
                                                                : interval->end_proof;
    lapse_output_uint(&events->output, interval->start_ns);
    lapse_output_char(&events->output, '\t');
    lapse_output_uint(&events->output, interval->end_ns);
    write_place(events, interval->thread);
    write_rest(events, interval->depth, interval->function, proof, interval->start_after_ns,
               interval->end_before_ns);
}

static void keep_interval(void *context, const struct lapse_interval *interval)
{
    struct lapse_events *events = context;
    void *grown = lapse_array_grow(events->kept, events->kept_count, sizeof *events->kept);
    if (!grown) {
        events->error = -ENOMEM;
        return;
    }
    events->kept = grown;
    events->kept[events->kept_count++] = *interval;
}

/* Threads by number where both are numbers, else by bytes. */
static int compare_threads(const struct lapse_strings *threads, uint64_t a, uint64_t b)
{
    const char *left = threads->texts[a], *right = threads->texts[b];
    uint64_t left_number, right_number;
    if (lapse_decimal_parse(left, left + threads->sizes[a], &left_number) &&
        lapse_decimal_parse(right, right + threads->sizes[b], &right_number) &&
        left_number != right_number)
        return left_number < right_number ? -1 : 1;
    return strcmp(left, right);
}

static int by_start(const void *left, const void *right, void *context)
{
    const struct lapse_interval *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    int order = compare_threads(context, a->thread, b->thread);
    return order ? order : (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

void lapse_events_explain(void *context, const struct lapse_diff_alignment *alignment)
{
    static const char *const proofs[] = { "proven", "inferred", "ambiguous" };
    struct lapse_events *events = context;
    fprintf(stderr, "lapse events: time %llu thread %s: cut stack of %u frames",
            (unsigned long long)alignment->time_ns, events->threads.texts[alignment->thread],
            alignment->frames);
    if (alignment->skipped)
        fprintf(stderr, ", the outermost %u before the marker", alignment->skipped);
    fprintf(stderr, " at depth %u, %u agree", alignment->position, alignment->agreeing);
    if (alignment->taken)
        fprintf(stderr, ": taken, %s\n", proofs[alignment->proof]);
    else
        fprintf(stderr, ": not taken\n");
}

bool lapse_events_frame_room(struct lapse_events *events, uint32_t depth)
{
    if (depth < events->frame_capacity)
        return true;
    uint32_t capacity = depth ? depth * 2 : 256;
    void *grown = realloc(events->frames, capacity * sizeof *events->frames);
    if (!grown)
        return false;
    events->frames = grown;
    events->frame_capacity = capacity;
    return true;
}

int lapse_events_begin(struct lapse_events *events)
{
    events->options.context = events;
    if (events->intervals)
        events->options.interval = events->stream ? write_interval : keep_interval;
    else
        events->options.edge = write_edge;
    int error = lapse_diff_create(&events->diff, &events->options);
    return error ? error : lapse_output_init(&events->output, stdout);
}

int lapse_events_end(struct lapse_events *events)
{
    if (events->error)
        return lapse_complain("events", "%s", strerror(-events->error));
    if (events->kept_count)
        qsort_r(events->kept, events->kept_count, sizeof *events->kept, by_start, &events->threads);
    for (uint32_t i = 0; i < events->kept_count; i++)
        write_interval(events, &events->kept[i]);
    return 0;
}
