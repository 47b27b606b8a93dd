/* SPDX-License-Identifier: MIT */
/* What `lapse events` works on: the engine's options, names and threads by number, and the text that
 * comes out. events.c reads samples from text, events_recording.c from a recording, event_writer.c
 * writes what the engine gives. */
#ifndef LAPSE_CLI_EVENTS_H
#define LAPSE_CLI_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "index.h"
#include "lapse/diff.h"
#include "line_reader.h"
#include "output.h"

enum { LAPSE_FIRST_FUNCTION = 16 }; /* numbers below are kept for markers */

struct lapse_events {
    const char *path;
    bool intervals, stream, bounds, skip_bad;
    struct lapse_diff_options options;
    struct lapse_diff *diff;
    struct lapse_strings names;   /* function: number of the name + LAPSE_FIRST_FUNCTION */
    struct lapse_strings threads; /* thread: number of its text */
    struct lapse_output output;
    struct lapse_lines lines;
    struct lapse_diff_frame *frames;
    uint32_t frame_capacity;
    struct lapse_interval *kept; /* to be sorted */
    uint32_t kept_count;
    uint64_t bad_lines;
    int error;
};

/* Room for one more frame at `depth` of events->frames. */
bool lapse_events_frame_room(struct lapse_events *events, uint32_t depth);

/* Make the engine and the output. Returns 0 or a negative errno. */
int lapse_events_begin(struct lapse_events *events);
/* Write what was kept. Returns the exit status. */
int lapse_events_end(struct lapse_events *events);

/* Callbacks of options->explain. */
void lapse_events_explain(void *context, const struct lapse_diff_alignment *alignment);

/* Push all samples of a recording and finish the engine. Returns the exit status. */
int lapse_events_recording(struct lapse_events *events, const char *path);

#endif
