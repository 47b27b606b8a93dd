/* SPDX-License-Identifier: MIT */
/* lapse merge: sum equal stacks of many inputs. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "folded_merge.h"
#include "merge_recording.h"

static const char help[] =
    "usage: lapse merge [--depth=M] [--by-name] [--skip-bad] [FILE...]\n"
    "\n"
    "Sums equal stacks of folded files (`root;...;leaf VALUE`), sorted by bytes. The result is the\n"
    "same, byte for byte, in any order and grouping of the inputs. Without a FILE, or for `-`,\n"
    "standard input is read. Sorted files are streamed, others are sorted in parts that spill to\n"
    "TMPDIR; memory does not grow with the size of the inputs.\n"
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

static int add_inputs(struct lapse_folded_merge *merge, bool by_name, int count, char **paths)
{
    static char standard_input[] = "-", *none[] = { standard_input };
    struct lapse_merge_builds builds = { 0 };
    int status = 0;
    if (!count) {
        paths = none;
        count = 1;
    }
    for (int i = 0; i < count && !status && !by_name; i++)
        if (lapse_merge_is_recording(paths[i]))
            status = lapse_merge_note_builds(&builds, paths[i]);
    for (int i = 0; i < count && !status; i++) {
        if (lapse_merge_is_recording(paths[i]))
            status = lapse_merge_add_recording(merge, &builds, paths[i]);
        else if (lapse_folded_merge_file(merge, paths[i]))
            status = lapse_complain("merge", "%s", lapse_folded_merge_error(merge));
    }
    lapse_merge_builds_free(&builds);
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
            if (!depth || depth > UINT32_MAX)
                return lapse_complain("merge", "--depth: at least one frame has to stay");
            merge.depth = (uint32_t)depth;
            break;
        case 'n': by_name = true; break;
        case 'b': merge.skip_bad = true; break;
        case 'h': return fputs(help, stdout) < 0;
        default: return LAPSE_STATUS_BAD; /* getopt has said why */
        }
    }
    return run(&merge, by_name, argc - optind, argv + optind);
}
