/* SPDX-License-Identifier: MIT */
/* lapse events: sampled stacks to start and end events, through the prefix-diff engine. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "event_text.h"
#include "index.h"
#include "lapse/diff.h"
#include "line_reader.h"
#include "text.h"

static const char help[] =
    "usage: lapse events [OPTIONS] [FILE | -]\n"
    "\n"
    "Reads sampled stacks, TIME TAB THREAD TAB STACK, root first, joined by `;`, and writes\n"
    "    edges      TIME TAB THREAD TAB start|end TAB DEPTH TAB NAME\n"
    "    intervals  START TAB END TAB THREAD TAB DEPTH TAB NAME    half-open, [START, END)\n"
    "Events that the samples do not prove have one more column, `inferred` or `ambiguous`.\n"
    "A thread that is left out at a time is untouched; an empty STACK closes it.\n"
    "A first frame [truncated] or [unwind failed] says that outer frames are missing.\n"
    "\n"
    "      --form=edges|intervals  what to write (default: edges)\n"
    "      --stream                intervals as they complete, instead of sorted by start,\n"
    "                              depth and thread\n"
    "      --close=WHEN            frames open at the end: `last` ends them at the thread's last\n"
    "                              sample (default), `next` one period later, `at=T` at a\n"
    "                              given time, `open` not at all\n"
    "      --period=P              time between samples (default: 1)\n"
    "      --gap=G                 a thread without samples for longer was not running: its\n"
    "                              frames end a period after the last one and start anew\n"
    "      --min-samples=K         frames in fewer than K consecutive samples are noise\n"
    "      --confirm=N             a changed stack counts once seen N times running\n"
    "      --bounds                two more columns: the true moment lies after the first and\n"
    "                              not after the second (`-`: unknown)\n"
    "      --explain               for each cut stack, where it could be put (standard error)\n"
    "      --skip-bad              count bad lines and go on\n"
    "  -h, --help                  this text\n";

enum { FIRST_FUNCTION = 16 }; /* numbers below are kept for markers */

struct events {
    const char *path;
    bool intervals, stream, bounds, skip_bad;
    struct lapse_diff_options options;
    struct lapse_diff *diff;
    struct lapse_strings names, threads;
    struct lapse_output output;
    struct lapse_lines lines;
    struct lapse_diff_frame *frames;
    uint32_t frame_capacity;
    struct lapse_interval *kept; /* to be sorted */
    uint32_t kept_count;
    uint64_t bad_lines;
    int error;
};

/* ---- writing ---- */

static void write_name(struct events *events, uint64_t function)
{
    if (function == LAPSE_FUNCTION_TRUNCATED || function == LAPSE_FUNCTION_UNWIND_FAILED) {
        lapse_output_text(&events->output, function == LAPSE_FUNCTION_TRUNCATED
                                               ? LAPSE_TRUNCATED_NAME : LAPSE_UNWIND_FAILED_NAME);
        return;
    }
    uint32_t number = (uint32_t)(function - FIRST_FUNCTION);
    size_t room = 4ull * events->names.sizes[number];
    char *to = lapse_output_room(&events->output, room);
    if (to)
        events->output.size += lapse_escaped_name(to, room, events->names.texts[number]);
}

static void write_place(struct events *events, uint64_t thread)
{
    lapse_output_char(&events->output, '\t');
    lapse_output_bytes(&events->output, events->threads.texts[thread],
                       events->threads.sizes[thread]);
    lapse_output_char(&events->output, '\t');
}

static void write_rest(struct events *events, uint32_t depth, uint64_t function, uint8_t proof,
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
    struct events *events = context;
    lapse_output_uint(&events->output, edge->time_ns);
    write_place(events, edge->thread);
    lapse_output_text(&events->output, edge->kind == LAPSE_EDGE_START ? "start\t" : "end\t");
    write_rest(events, edge->depth, edge->function, edge->proof, edge->after_ns, edge->before_ns);
}

static void write_interval(void *context, const struct lapse_interval *interval)
{
    struct events *events = context;
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
    struct events *events = context;
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

static void explain(void *context, const struct lapse_diff_alignment *alignment)
{
    static const char *const proofs[] = { "proven", "inferred", "ambiguous" };
    struct events *events = context;
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

/* ---- reading ---- */

static int complain_line(const struct events *events, const char *cause)
{
    return lapse_complain("events", "%s:%llu: %s", events->path,
                          (unsigned long long)events->lines.number, cause);
}

/* Frames of a sample line into events->frames. */
static int take_frames(struct events *events, struct lapse_sample_line *sample, uint32_t *depth,
                       uint32_t *flags)
{
    char *name;
    size_t size;
    *depth = *flags = 0;
    for (bool first = true; lapse_stack_next(&sample->stack, &sample->stack_size, &name, &size);
         first = false) {
        if (first && lapse_name_is(name, size, LAPSE_TRUNCATED_NAME))
            *flags = LAPSE_STACK_CUT;
        if (first && lapse_name_is(name, size, LAPSE_UNWIND_FAILED_NAME))
            *flags = LAPSE_STACK_CUT | LAPSE_STACK_UNWIND_FAILED;
        if (first && *flags)
            continue;
        if (*depth == events->frame_capacity) {
            uint32_t capacity = *depth ? *depth * 2 : 256;
            void *grown = realloc(events->frames, capacity * sizeof *events->frames);
            if (!grown)
                return -ENOMEM;
            events->frames = grown;
            events->frame_capacity = capacity;
        }
        uint32_t number = lapse_strings_number(&events->names, name, size);
        if (number == LAPSE_INDEX_NONE)
            return -ENOMEM;
        events->frames[(*depth)++] =
            (struct lapse_diff_frame){ .function = number + (uint64_t)FIRST_FUNCTION };
    }
    return 0;
}

static int take_line(struct events *events, char *line, size_t size, const char **cause)
{
    struct lapse_sample_line sample;
    uint32_t depth, flags;
    static char text[64];
    *cause = lapse_sample_parse(line, size, &sample);
    if (*cause)
        return -EBADMSG;
    uint32_t thread = lapse_strings_number(&events->threads, sample.thread, sample.thread_size);
    int error = thread == LAPSE_INDEX_NONE ? -ENOMEM : take_frames(events, &sample, &depth, &flags);
    if (!error)
        error = lapse_diff_push(events->diff, sample.time, thread, events->frames, depth, flags);
    if (error != -EINVAL)
        return error ? error : events->error;
    snprintf(text, sizeof text, "line %llu: time does not increase in its thread",
             (unsigned long long)events->lines.number);
    *cause = text;
    return -EBADMSG;
}

static int take_lines(struct events *events)
{
    char *line;
    const char *cause;
    size_t size;
    int status;
    while ((status = lapse_lines_next(&events->lines, &line, &size)) > 0) {
        status = take_line(events, line, size, &cause);
        if (status == -EBADMSG && events->skip_bad)
            events->bad_lines++;
        else if (status == -EBADMSG)
            return complain_line(events, cause);
        else if (status)
            break;
    }
    if (status < 0)
        return lapse_complain("events", "%s: %s", events->path, strerror(-status));
    lapse_diff_finish(events->diff);
    return 0;
}

/* ---- the command ---- */

static int write_kept(struct events *events)
{
    if (events->error)
        return lapse_complain("events", "%s", strerror(-events->error));
    if (events->kept_count)
        qsort_r(events->kept, events->kept_count, sizeof *events->kept, by_start, &events->threads);
    for (uint32_t i = 0; i < events->kept_count; i++)
        write_interval(events, &events->kept[i]);
    return 0;
}

static int run(struct events *events)
{
    int error = lapse_lines_open(&events->lines, events->path);
    if (error)
        return lapse_complain("events", "%s: %s", events->path, strerror(-error));
    events->options.context = events;
    if (events->intervals)
        events->options.interval = events->stream ? write_interval : keep_interval;
    else
        events->options.edge = write_edge;
    error = lapse_diff_create(&events->diff, &events->options);
    if (!error)
        error = lapse_output_init(&events->output, stdout);
    if (error)
        return lapse_complain("events", "%s", strerror(-error));
    int status = take_lines(events);
    if (!status)
        status = write_kept(events);
    int written = lapse_finish_output("events", &events->output);
    if (events->bad_lines)
        fprintf(stderr, "lapse events: %llu bad lines skipped\n",
                (unsigned long long)events->bad_lines);
    lapse_output_fini(&events->output);
    lapse_diff_destroy(events->diff);
    lapse_strings_free(&events->names);
    lapse_strings_free(&events->threads);
    lapse_lines_close(&events->lines);
    free(events->frames);
    free(events->kept);
    return status ? status : written;
}

static bool parse_close(struct events *events, const char *text)
{
    static const char *const names[] = { "last", "next", "open" };
    static const enum lapse_close values[] = { LAPSE_CLOSE_LAST, LAPSE_CLOSE_NEXT,
                                               LAPSE_CLOSE_OPEN };
    for (int i = 0; i < 3; i++) {
        if (!strcmp(text, names[i])) {
            events->options.close = values[i];
            return true;
        }
    }
    if (!strncmp(text, "at=", 3)) {
        events->options.close = LAPSE_CLOSE_AT;
        return lapse_option_number("events", "close=at", text + 3, &events->options.close_at_ns);
    }
    lapse_complain("events", "--close: '%s' is not last, next, open or at=TIME", text);
    return false;
}

static bool parse_form(struct events *events, const char *text)
{
    events->intervals = !strcmp(text, "intervals");
    if (events->intervals || !strcmp(text, "edges"))
        return true;
    lapse_complain("events", "--form: '%s' is not edges or intervals", text);
    return false;
}

static bool parse_count(const char *option, const char *text, uint32_t *count)
{
    uint64_t value;
    if (!lapse_option_number("events", option, text, &value))
        return false;
    if (value && value <= UINT32_MAX) {
        *count = (uint32_t)value;
        return true;
    }
    lapse_complain("events", "--%s: at least 1", option);
    return false;
}

static bool parse_period(struct events *events, const char *text)
{
    if (!lapse_option_number("events", "period", text, &events->options.period_ns))
        return false;
    if (events->options.period_ns)
        return true;
    lapse_complain("events", "--period: at least 1");
    return false;
}

static bool parse_option(struct events *events, int option)
{
    switch (option) {
    case 'f': return parse_form(events, optarg);
    case 'c': return parse_close(events, optarg);
    case 'p': return parse_period(events, optarg);
    case 'g': return lapse_option_number("events", "gap", optarg, &events->options.gap_ns);
    case 'm': return parse_count("min-samples", optarg, &events->options.min_samples);
    case 'n': return parse_count("confirm", optarg, &events->options.confirm);
    case 's': return events->stream = true;
    case 'b': return events->bounds = true;
    case 'k': return events->skip_bad = true;
    case 'e': events->options.explain = explain; return true;
    default: return false; /* getopt has said why */
    }
}

int lapse_command_events(int argc, char **argv)
{
    static const struct option options[] = {
        { "form", required_argument, NULL, 'f' },        { "close", required_argument, NULL, 'c' },
        { "period", required_argument, NULL, 'p' },      { "gap", required_argument, NULL, 'g' },
        { "min-samples", required_argument, NULL, 'm' }, { "confirm", required_argument, NULL, 'n' },
        { "stream", no_argument, NULL, 's' },            { "bounds", no_argument, NULL, 'b' },
        { "skip-bad", no_argument, NULL, 'k' },          { "explain", no_argument, NULL, 'e' },
        { "help", no_argument, NULL, 'h' },              { 0 },
    };
    struct events events = { .path = "-" };
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option == 'h')
            return fputs(help, stdout) < 0;
        if (!parse_option(&events, option))
            return LAPSE_STATUS_BAD;
    }
    if (events.options.min_samples > 1 && events.options.confirm > 1)
        return lapse_complain("events", "--min-samples and --confirm exclude each other: one "
                              "filters frames, the other whole stacks");
    if (argc - optind > 1)
        return lapse_complain("events", "one input only; '%s' is too many", argv[optind + 1]);
    if (optind < argc)
        events.path = argv[optind];
    return run(&events);
}
