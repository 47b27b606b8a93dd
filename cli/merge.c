/* SPDX-License-Identifier: MIT */
/* lapse merge: sum equal stacks of many inputs. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "command.h"
#include "folded_merge.h"
#include "input.h"
#include "merge_recording.h"
#include "recording.h"

static const char help[] =
    "usage: lapse merge [--depth=M] [--by-name] [--skip-bad] [FILE...]\n"
    "\n"
    "Sums equal stacks of folded files (`root;...;leaf VALUE`), sorted by bytes. The result is the\n"
    "same, byte for byte, in any order and grouping of the inputs. Without a FILE, or for `-`,\n"
    "standard input is read. Sorted files are streamed, others are sorted in parts that spill to\n"
    "TMPDIR; memory does not grow with the size of the inputs. Values are whole numbers.\n"
    "\n"
    "Recordings are folded first, as `lapse export --to=folded` does it. Where they hold different\n"
    "builds of one module, its functions are told apart: `name [module build-id]`.\n"
    "\n"
    "A stack that begins with [truncated] or [unwind failed] lacks outer frames and never merges\n"
    "with a whole one. Where inputs were cut at different depths, that is said on standard error.\n"
    "\n"
    "      --depth=M   cut each stack that has more to its innermost M frames, below\n"
    "                  [truncated], so that equal stacks of such inputs are one line\n"
    "      --by-name   functions of different builds with one name are one\n"
    "      --skip-bad  count malformed lines and go on\n"
    "  -h, --help      this text\n";

static void warn(const struct lapse_folded_merge *merge, bool cut)
{
    struct lapse_folded_limits limits;
    unsigned long long bad_lines = lapse_folded_merge_bad_lines(merge);
    if (bad_lines)
        fprintf(stderr, "lapse merge: %llu bad lines skipped\n", bad_lines);
    if (cut || !lapse_folded_merge_limits(merge, &limits))
        return;
    if (limits.high)
        fprintf(stderr, "lapse merge: depth limits differ: %s is cut at %u frames, %s at %u; ",
                limits.low_path, limits.low, limits.high_path, limits.high);
    else
        fprintf(stderr, "lapse merge: depth limits differ: %s is cut at %u frames, %s is deeper; ",
                limits.low_path, limits.low, limits.high_path);
    fprintf(stderr, "--depth=%u makes equal stacks one line\n", limits.low);
}

/* Recordings wait for the second pass; what came through a pipe waits in a temporary file. */
struct waiting {
    const char *name;
    const char *path; /* NULL: spooled */
    char spooled[LAPSE_SPOOL_PATH];
};

static int spool(struct waiting *recording, struct lapse_lines *lines)
{
    int fd; /* stays open until the command ends */
    int error = lapse_input_spool(lines, recording->spooled, &fd);
    return error ? lapse_complain("merge", "%s: %s", recording->name, strerror(-error)) : 0;
}

/* First pass: folded text is added, recordings are set aside. */
static int sort_out(struct lapse_folded_merge *merge, const char *path, struct waiting *recording,
                    bool *is_recording)
{
    struct lapse_lines lines;
    struct stat about;
    const char *bytes;
    size_t size;
    int status = 0, error = lapse_lines_open(&lines, path);
    if (!error)
        error = lapse_lines_peek(&lines, &bytes, &size);
    if (error) {
        lapse_lines_close(&lines);
        return lapse_complain("merge", "%s: %s", path, strerror(-error));
    }
    bool again = strcmp(path, "-") && !fstat(lines.fd, &about) && S_ISREG(about.st_mode);
    *is_recording = lapse_recording_is(bytes, size);
    *recording = (struct waiting){ .name = path, .path = again ? path : NULL };
    if (*is_recording)
        status = again ? 0 : spool(recording, &lines);
    else if (again ? lapse_folded_merge_file(merge, path) : lapse_folded_merge_lines(merge, &lines))
        status = lapse_complain("merge", "%s", lapse_folded_merge_error(merge));
    lapse_lines_close(&lines);
    return status;
}

static const char *path_of(const struct waiting *recording)
{
    return recording->path ? recording->path : recording->spooled;
}

static int add_recordings(struct lapse_folded_merge *merge, bool by_name,
                          const struct waiting *recordings, int count)
{
    struct lapse_merge_builds builds = { 0 };
    int status = 0;
    for (int i = 0; i < count && !status && !by_name; i++)
        status = lapse_merge_note_builds(&builds, path_of(&recordings[i]));
    for (int i = 0; i < count && !status; i++)
        status = lapse_merge_add_recording(merge, &builds, path_of(&recordings[i]),
                                           recordings[i].name);
    lapse_merge_builds_free(&builds);
    return status;
}

static int add_inputs(struct lapse_folded_merge *merge, bool by_name, int count, char **paths)
{
    static char standard_input[] = "-", *none[] = { standard_input };
    int recording_count = 0, status = 0;
    bool is_recording = false;
    if (!count) {
        paths = none;
        count = 1;
    }
    if (!lapse_inputs_differ("merge", (const char *const *)paths, count))
        return LAPSE_STATUS_BAD;
    struct waiting *recordings = calloc((size_t)count, sizeof *recordings);
    if (!recordings)
        return lapse_complain("merge", "out of memory");
    for (int i = 0; i < count && !status; i++) {
        status = sort_out(merge, paths[i], &recordings[recording_count], &is_recording);
        recording_count += is_recording;
    }
    if (!status)
        status = add_recordings(merge, by_name, recordings, recording_count);
    free(recordings);
    return status;
}

static int run(const struct lapse_folded_merge_options *options, bool by_name, int count,
               char **paths)
{
    struct lapse_folded_merge *merge;
    struct lapse_output output;
    if (lapse_folded_merge_create(&merge, options))
        return lapse_complain("merge", "out of memory");
    int status = add_inputs(merge, by_name, count, paths);
    if (!status && lapse_output_init(&output, stdout))
        status = lapse_complain("merge", "out of memory");
    else if (!status) {
        if (lapse_folded_merge_write(merge, &output))
            status = lapse_complain("merge", "%s", lapse_folded_merge_error(merge));
        else
            status = lapse_finish_output("merge", &output);
        lapse_output_fini(&output);
        warn(merge, options->depth);
    }
    lapse_folded_merge_destroy(merge);
    return status;
}

int lapse_command_merge(int argc, char **argv)
{
    static const struct option options[] = {
        { "depth", required_argument, NULL, 'd' }, { "skip-bad", no_argument, NULL, 'b' },
        { "by-name", no_argument, NULL, 'n' },     { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    struct lapse_folded_merge_options merge = { 0 };
    bool by_name = false;
    uint64_t depth;
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        switch (option) {
        case 'd':
            if (!lapse_option_number("merge", "depth", optarg, &depth))
                return LAPSE_STATUS_BAD;
            if (!depth)
                return lapse_complain("merge", "--depth: at least one frame has to stay");
            if (depth > UINT32_MAX)
                return lapse_complain("merge", "--depth: %s is too large", optarg);
            merge.depth = (uint32_t)depth;
            break;
        case 'n': by_name = true; break;
        case 'b': merge.skip_bad = true; break;
        case 'h': return lapse_show_help("merge", help);
        default: return LAPSE_STATUS_BAD; /* getopt has said why */
        }
    }
    return run(&merge, by_name, argc - optind, argv + optind);
}
