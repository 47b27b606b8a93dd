/* SPDX-License-Identifier: MIT */
/* lapse fold: start and end events to folded stacks. Time goes to the exact stack that was live. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "event_text.h"
#include "line_reader.h"
#include "replay.h"

static const char help[] =
    "usage: lapse fold [--strict | --repair] [--skip-bad] [FILE | -]\n"
    "\n"
    "Reads start and end events, as `lapse events` and `lapse export --to=events` write them,\n"
    "    TIME TAB THREAD TAB start|end TAB DEPTH TAB NAME\n"
    "and writes each stack that was live with its time, `root;...;leaf TIME`, sorted.\n"
    "Further columns (proof, bounds) and lines that begin with `#` are read over.\n"
    "\n"
    "      --strict    refuse the first event that cannot be: an end that is not on top, a\n"
    "                  depth that does not fit, time going back, frames never closed (default)\n"
    "      --repair    mend and count: a caller that ends closes lost exits above it; an end\n"
    "                  of a function that is not open is dropped; frames that are still open\n"
    "                  close at their thread's last event\n"
    "      --skip-bad  count malformed lines and go on\n"
    "  -h, --help      this text\n";

struct fold {
    const char *path;
    bool repair, skip_bad;
    uint64_t bad_lines;
    struct lapse_lines lines;
    struct lapse_replay *replay;
};

static int complain_line(const struct fold *fold, const char *cause)
{
    return lapse_complain("fold", "%s:%llu: %s", fold->path,
                          (unsigned long long)fold->lines.number, cause);
}

static int replay_lines(struct fold *fold)
{
    struct lapse_edge_line edge;
    char *line;
    size_t size;
    int status;
    while ((status = lapse_lines_next(&fold->lines, &line, &size)) > 0) {
        if (size && *line == '#') /* the head of exported events */
            continue;
        const char *cause = lapse_edge_parse(line, size, &edge);
        if (cause && fold->skip_bad) {
            fold->bad_lines++;
            continue;
        }
        if (cause)
            return complain_line(fold, cause);
        status = lapse_replay_event(fold->replay, edge.time, edge.thread, edge.thread_size,
                                    edge.is_start, edge.depth, edge.name, edge.name_size);
        if (status == -EINVAL)
            return complain_line(fold, lapse_replay_cause(fold->replay));
        if (status)
            break;
    }
    if (status < 0)
        return lapse_complain("fold", "%s: %s", fold->path, strerror(-status));
    return lapse_replay_finish(fold->replay)
               ? complain_line(fold, lapse_replay_cause(fold->replay)) : 0;
}

static void report(const struct fold *fold)
{
    struct lapse_replay_repairs repairs = lapse_replay_repairs(fold->replay);
    unsigned long long all = repairs.lost_exits + repairs.stray_ends + repairs.lost_starts +
                             repairs.unclosed + repairs.times;
    if (fold->repair)
        fprintf(stderr, "lapse fold: %llu repairs: %llu lost exits, %llu stray ends, "
                "%llu lost starts, %llu unclosed frames, %llu times that went back\n", all,
                (unsigned long long)repairs.lost_exits, (unsigned long long)repairs.stray_ends,
                (unsigned long long)repairs.lost_starts, (unsigned long long)repairs.unclosed,
                (unsigned long long)repairs.times);
    if (fold->bad_lines)
        fprintf(stderr, "lapse fold: %llu bad lines skipped\n",
                (unsigned long long)fold->bad_lines);
}

static int run(struct fold *fold)
{
    struct lapse_output output;
    int error = lapse_lines_open(&fold->lines, fold->path), status;
    if (error)
        return lapse_complain("fold", "%s: %s", fold->path, strerror(-error));
    if (lapse_replay_create(&fold->replay, fold->repair))
        return lapse_complain("fold", "out of memory");
    status = replay_lines(fold);
    if (!status) {
        error = lapse_output_init(&output, stdout);
        if (!error)
            error = lapse_replay_write(fold->replay, &output);
        status = error ? lapse_complain("fold", "%s", strerror(-error))
                       : lapse_finish_output("fold", &output);
        lapse_output_fini(&output);
        report(fold);
    }
    lapse_replay_destroy(fold->replay);
    lapse_lines_close(&fold->lines);
    return status;
}

int lapse_command_fold(int argc, char **argv)
{
    static const struct option options[] = {
        { "strict", no_argument, NULL, 's' },   { "repair", no_argument, NULL, 'r' },
        { "skip-bad", no_argument, NULL, 'b' }, { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    struct fold fold = { .path = "-" };
    bool strict = false;
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (option) {
        case 's': strict = true; break;
        case 'r': fold.repair = true; break;
        case 'b': fold.skip_bad = true; break;
        case 'h': return lapse_show_help("fold", help);
        default: return LAPSE_STATUS_BAD; /* getopt has said why */
        }
    }
    if (strict && fold.repair)
        return lapse_complain("fold", "--strict and --repair exclude each other");
    if (argc - optind > 1)
        return lapse_complain("fold", "one input only; '%s' is too many", argv[optind + 1]);
    if (optind < argc)
        fold.path = argv[optind];
    return run(&fold);
}
