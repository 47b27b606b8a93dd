/* SPDX-License-Identifier: MIT */
/* Sample text through the parser and the engine; its edges, written as text and read again, must
 * replay strictly. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "event_text.h"
#include "index.h"
#include "lapse/diff.h"
#include "line_reader.h"
#include "replay.h"
#include "text.h"

enum { MOST_FRAMES = 4096, FIRST = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct run {
    struct lapse_strings names, threads;
    struct lapse_replay *replay;
    struct lapse_diff_frame frames[MOST_FRAMES];
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void on_edge(void *context, const struct lapse_edge *edge)
{
    struct run *run = context;
    const char *name = LAPSE_TRUNCATED_NAME, *thread = run->threads.texts[edge->thread];
    struct lapse_edge_line again;
    if (edge->function == LAPSE_FUNCTION_UNWIND_FAILED)
        name = LAPSE_UNWIND_FAILED_NAME;
    else if (edge->function >= FIRST)
        name = run->names.texts[edge->function - FIRST];
    size_t room = strlen(thread) + 4 * strlen(name) + 64;
    char *line = malloc(room);
    check(line);
    int size = snprintf(line, room, "%llu\t%s\t%s\t%u\t", (unsigned long long)edge->time_ns, thread,
                        edge->kind == LAPSE_EDGE_START ? "start" : "end", edge->depth);
    size += (int)lapse_escaped_name(line + size, room - (size_t)size, name);
    check(!lapse_edge_parse(line, (size_t)size, &again));
    check(again.name_size == strlen(name) && !memcmp(again.name, name, again.name_size));
    check(!lapse_replay_event(run->replay, again.time, again.thread, again.thread_size,
                              again.is_start, again.depth, again.name, again.name_size));
    free(line);
}

static void push(struct run *run, struct lapse_diff *diff, struct lapse_sample_line *sample)
{
    uint32_t depth = 0, flags = 0;
    char *name;
    size_t size;
    while (depth < MOST_FRAMES &&
           lapse_stack_next(&sample->stack, &sample->stack_size, &name, &size)) {
        if (memchr(name, 0, size))
            return;
        if (!depth && !flags && lapse_name_is(name, size, LAPSE_TRUNCATED_NAME)) {
            flags = LAPSE_STACK_CUT;
            continue;
        }
        run->frames[depth++] = (struct lapse_diff_frame){
            .function = FIRST + lapse_strings_number(&run->names, name, size) };
    }
    lapse_diff_push(diff, sample->time,
                    lapse_strings_number(&run->threads, sample->thread, sample->thread_size),
                    run->frames, depth, flags);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct run run;
    struct lapse_diff_options options = { .edge = on_edge, .context = &run };
    struct lapse_diff *diff;
    struct lapse_lines lines;
    struct lapse_sample_line sample;
    char *copy = malloc(size + 1), *line;
    size_t length;
    check(copy);
    memcpy(copy, bytes, size);
    options.min_samples = size % 3;
    check(!lapse_replay_create(&run.replay, false) && !lapse_diff_create(&diff, &options));
    lapse_lines_memory(&lines, copy, size);
    while (lapse_lines_next(&lines, &line, &length) > 0)
        if (!lapse_sample_parse(line, length, &sample))
            push(&run, diff, &sample);
    lapse_diff_finish(diff);
    check(!lapse_replay_finish(run.replay));
    lapse_diff_destroy(diff);
    lapse_replay_destroy(run.replay);
    lapse_strings_free(&run.names);
    lapse_strings_free(&run.threads);
    free(copy);
    return 0;
}
