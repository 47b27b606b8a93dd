/* SPDX-License-Identifier: MIT */
/* lapse events: sampled stacks to start and end events, through the prefix-diff engine. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "event_text.h"
#include "events.h"
#include "input.h"
#include "recording.h"

static const char help[] =
    "usage: lapse events [OPTIONS] [FILE | -]\n"
    "\n"
    "Reads sampled stacks, TIME TAB THREAD TAB STACK, root first, joined by `;`, and writes\n"
    "    edges      TIME TAB THREAD TAB start|end TAB DEPTH TAB NAME\n"
    "    intervals  START TAB END TAB THREAD TAB DEPTH TAB NAME    half-open, [START, END)\n"
    "Events that the samples do not prove have one more column, `inferred` or `ambiguous`.\n"
    "A thread that is left out at a time is untouched; an empty STACK closes it.\n"
    "A recording is taken too: times in ns, threads by tid (PID/TID where there are several\n"
    "processes), functions told apart by call site, period and gap in ns.\n"
    "A first frame [truncated] or [unwind failed] says that outer frames are missing.\n"
    "\n"
    "      --form=edges|intervals  what to write (default: edges)\n"
    "      --stream                intervals as they complete, instead of sorted by start,\n"
    "                              depth and thread\n"
    "      --close=WHEN            frames open at the end: `last` ends them at the thread's last\n"
    "                              sample (default), `next` one period later, `at=T` at a\n"
    "                              given time, `open` not at all\n"
    "      --period=P              time between samples (default: 1, or the recording's)\n"
    "      --gap=G                 a thread without samples for longer was not running: its\n"
    "                              frames end a period after the last one and start anew\n"
    "      --min-samples=K         frames in fewer than K consecutive samples are noise\n"
    "      --confirm=N             a changed stack counts once seen N times running\n"
    "      --bounds                two more columns: the true moment lies after the first and\n"
    "                              not after the second (`-`: unknown)\n"
    "      --explain               for each cut stack, where it could be put (standard error)\n"
    "      --skip-bad              count bad lines and go on\n"
    "  -h, --help                  this text\n";

/* ---- reading ---- */

static int complain_line(const struct lapse_events *events, const char *cause)
{
    return lapse_complain("events", "%s:%llu: %s", events->path,
                          (unsigned long long)events->lines.number, cause);
}

/* Frames of a sample line into events->frames. */
static int take_frames(struct lapse_events *events, struct lapse_sample_line *sample, uint32_t *depth,
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
        if (!lapse_events_frame_room(events, *depth))
            return -ENOMEM;
        uint32_t number = lapse_strings_number(&events->names, name, size);
        if (number == LAPSE_INDEX_NONE)
            return -ENOMEM;
        events->frames[(*depth)++] =
            (struct lapse_diff_frame){ .function = number + (uint64_t)LAPSE_FIRST_FUNCTION };
    }
    return 0;
}

static int take_line(struct lapse_events *events, char *line, size_t size, const char **cause)
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

static int take_lines(struct lapse_events *events)
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

static int take_input(struct lapse_events *events)
{
    const char *bytes;
    char path[LAPSE_SPOOL_PATH];
    size_t size;
    int error = lapse_lines_peek(&events->lines, &bytes, &size);
    if (error)
        return lapse_complain("events", "%s: %s", events->path, strerror(-error));
    if (!lapse_recording_is(bytes, size)) {
        if (!events->options.period_ns)
            events->options.period_ns = 1;
        error = lapse_events_begin(events);
        return error ? lapse_complain("events", "%s", strerror(-error)) : take_lines(events);
    }
    struct stat status;
    if (strcmp(events->path, "-") && !fstat(events->lines.fd, &status) && S_ISREG(status.st_mode))
        return lapse_events_recording(events, events->path);
    int fd;
    error = lapse_input_spool(&events->lines, path, &fd);
    if (error)
        return lapse_complain("events", "%s: %s", events->path, strerror(-error));
    error = lapse_events_recording(events, path);
    close(fd);
    return error;
}

static int run(struct lapse_events *events)
{
    int error = lapse_lines_open(&events->lines, events->path);
    if (error)
        return lapse_complain("events", "%s: %s", events->path, strerror(-error));
    int status = take_input(events);
    if (!status)
        status = lapse_events_end(events);
    int written = events->diff ? lapse_finish_output("events", &events->output) : 0;
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

static bool parse_close(struct lapse_events *events, const char *text)
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

static bool parse_form(struct lapse_events *events, const char *text)
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

static bool parse_period(struct lapse_events *events, const char *text)
{
    if (!lapse_option_number("events", "period", text, &events->options.period_ns))
        return false;
    if (events->options.period_ns)
        return true;
    lapse_complain("events", "--period: at least 1");
    return false;
}

static bool parse_option(struct lapse_events *events, int option)
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
    case 'e': events->options.explain = lapse_events_explain; return true;
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
    struct lapse_events events = { .path = "-" };
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option == 'h')
            return lapse_show_help("events", help);
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
