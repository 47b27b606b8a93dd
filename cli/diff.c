/* SPDX-License-Identifier: MIT */
/* lapse diff: did the program get slower? Compares two recordings (or the two variants in one) and
 * holds the result against gates. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "input.h"
#include "name_source.h"
#include "new_file.h"
#include "comparison_report.h"

enum { MAX_INPUTS = 256, MAX_GATES = 64 };
enum exit_status { NO_REGRESSION = 0, REGRESSION = 1, FAILED = LAPSE_STATUS_BAD, NOT_ENOUGH = 3 };

static const char help[] =
    "Usage: lapse diff [options] BASE NEW\n"
    "       lapse diff [options] FILE            (two commands interleaved by lapse record)\n"
    "\n"
    "Compares the CPU time per run of two sides, per function and in whole, with 95 % intervals and\n"
    "p-values corrected for the number of things compared. Takes recordings and folded text.\n"
    "\n"
    "  --base FILE, --new FILE  one more file of that side; may be repeated\n"
    "  --gate WHAT:>LIMIT       fail when a regression beyond the limit is shown; may be repeated:\n"
    "                           total:>3%  func:parse_*:>5%  self:memcpy:>10%,>2ms  path:main;*:>5%\n"
    "  --strict                 exit status 3 when there is not enough to tell\n"
    "  --format FORMAT          text, tsv, json, markdown (default text)\n"
    "  -o, --output FILE        write there instead of to standard output\n"
    "  --github                 GitHub error annotations for what crossed a gate, on standard output\n"
    "                           (only when GITHUB_ACTIONS=true)\n"
    "  --junit FILE             one JUnit test case per gate and function\n"
    "  --html FILE              a differential flame graph: width from NEW, colour from the change, grey\n"
    "                           where the interval includes zero\n"
    "  --paths                  compare whole stacks as well\n"
    "  --all                    list what did not change, too\n"
    "  --limit N                at most N lines of each kind (default 20, 0: all)\n"
    "  --min-samples N          a function with fewer, both sides together, is not judged (default 10)\n"
    "  --blocks N               slices that stand in for runs when there is one run (default 20)\n"
    "  -h, --help               this text\n"
    "\n"
    "A function that is new counts in whole, one that is gone passes; a gate that names nothing which was\n"
    "sampled on either side is an error, since a misspelt one would pass for ever.\n"
    "\n"
    "Exit status: 0 no regression shown, 1 regression shown, 2 error, 3 with --strict: cannot be told.\n";

struct options {
    const char *base[MAX_INPUTS], *new[MAX_INPUTS];
    uint32_t base_count, new_count;
    struct lapse_gate gates[MAX_GATES];
    uint32_t gate_count;
    bool strict, github;
    const char *format, *output, *junit, *html;
    struct lapse_comparison_options comparison;
    struct lapse_comparison_report report;
};

enum { OPTION_BASE = 256, OPTION_NEW, OPTION_GATE, OPTION_STRICT, OPTION_FORMAT, OPTION_GITHUB, OPTION_JUNIT, OPTION_HTML, OPTION_PATHS,
       OPTION_ALL, OPTION_LIMIT, OPTION_MIN_SAMPLES, OPTION_BLOCKS };

static const struct option long_options[] = {
    { "base", required_argument, NULL, OPTION_BASE }, { "new", required_argument, NULL, OPTION_NEW },
    { "gate", required_argument, NULL, OPTION_GATE }, { "strict", no_argument, NULL, OPTION_STRICT },
    { "format", required_argument, NULL, OPTION_FORMAT }, { "output", required_argument, NULL, 'o' },
    { "github", no_argument, NULL, OPTION_GITHUB }, { "junit", required_argument, NULL, OPTION_JUNIT },
    { "html", required_argument, NULL, OPTION_HTML },
    { "paths", no_argument, NULL, OPTION_PATHS }, { "all", no_argument, NULL, OPTION_ALL },
    { "limit", required_argument, NULL, OPTION_LIMIT }, { "min-samples", required_argument, NULL, OPTION_MIN_SAMPLES },
    { "blocks", required_argument, NULL, OPTION_BLOCKS }, { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 },
};

static bool add_input(const char **inputs, uint32_t *count, const char *path)
{
    if (*count == MAX_INPUTS)
        return false;
    inputs[(*count)++] = path;
    return true;
}

static int parse_number_option(struct options *o, int option)
{
    const char *name = option == OPTION_LIMIT ? "limit" : option == OPTION_BLOCKS ? "blocks" : "min-samples";
    uint64_t value;
    if (!lapse_option_number("diff", name, optarg, &value))
        return FAILED;
    if (value > 1000000 || (option == OPTION_BLOCKS && value < 2))
        return lapse_complain("diff", "--%s: %s is out of range", name, optarg);
    if (option == OPTION_LIMIT)
        o->report.limit = (uint32_t)value;
    else if (option == OPTION_MIN_SAMPLES)
        o->comparison.min_samples = value ? value : 1;
    else
        o->comparison.blocks = (uint32_t)value;
    return 0;
}

/* Returns 0, an exit status above 0, or -1 when --help was answered. */
static int parse_option(struct options *o, int option)
{
    char error[256];
    switch (option) {
    case OPTION_BASE: return add_input(o->base, &o->base_count, optarg) ? 0 : lapse_complain("diff", "too many files");
    case OPTION_NEW: return add_input(o->new, &o->new_count, optarg) ? 0 : lapse_complain("diff", "too many files");
    case OPTION_GATE:
        if (o->gate_count == MAX_GATES)
            return lapse_complain("diff", "too many gates");
        if (lapse_gate_parse(&o->gates[o->gate_count], optarg, error, sizeof error))
            return lapse_complain("diff", "%s", error);
        o->gate_count++;
        return 0;
    case OPTION_STRICT: o->strict = true; return 0;
    case OPTION_FORMAT: o->format = optarg; return 0;
    case 'o': o->output = optarg; return 0;
    case OPTION_GITHUB: o->github = true; return 0;
    case OPTION_JUNIT: o->junit = optarg; return 0;
    case OPTION_HTML: o->html = optarg; return 0;
    case OPTION_PATHS: o->report.paths = true; return 0;
    case OPTION_ALL: o->report.all = true; return 0;
    case OPTION_LIMIT: case OPTION_MIN_SAMPLES: case OPTION_BLOCKS: return parse_number_option(o, option);
    case 'h': return lapse_show_help("diff", help) ? FAILED : -1;
    default: return FAILED; /* getopt has said what is wrong */
    }
}

typedef void write_report(struct lapse_output *to, const struct lapse_comparison_report *report);

static write_report *find_format(const char *name)
{
    static const struct { const char *name; write_report *write; } formats[] = {
        { "text", lapse_report_comparison_text }, { "tsv", lapse_report_comparison_tsv },
        { "json", lapse_report_comparison_json }, { "markdown", lapse_report_comparison_markdown },
    };
    for (unsigned i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, name))
            return formats[i].write;
    return NULL;
}

static int write_output(FILE *file, write_report *write, const struct lapse_comparison_report *report)
{
    struct lapse_output output;
    int error = lapse_output_init(&output, file);
    if (!error) {
        write(&output, report);
        error = lapse_output_finish(&output);
        lapse_output_fini(&output);
    }
    if (!error && fflush(file))
        error = -errno;
    return error;
}

static int write_to(const char *path, write_report *write, const struct lapse_comparison_report *report)
{
    struct lapse_new_file file = { .file = stdout };
    int error = path ? lapse_new_file_create(&file, path) : 0;
    if (!error) {
        error = write_output(file.file, write, report);
        int closed = path ? lapse_new_file_close(&file, !error) : 0;
        error = error ? error : closed;
    }
    if (!error || error == -EPIPE) /* the reader has seen enough */
        return 0;
    return lapse_complain("diff", "%s: %s", path ? path : "standard output", strerror(-error));
}

static bool open_inputs(const char **paths, uint32_t count, uint32_t variant, struct lapse_comparison_input *inputs)
{
    struct lapse_offline *names = lapse_name_source();
    struct lapse_profile_options options = { .symbolizer = names ? lapse_offline_symbolizer(names) : NULL };
    char error[512];
    for (uint32_t i = 0; i < count; i++) {
        inputs[i].variant = variant;
        if (lapse_profile_open(&inputs[i].profile, &paths[i], 1, &options, error, sizeof error)) {
            lapse_complain("diff", "%s", error);
            return false;
        }
    }
    lapse_name_source_notes("diff");
    return true;
}

static void close_inputs(struct lapse_comparison_input *inputs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        lapse_profile_close(inputs[i].profile);
}

static int verdict(const struct options *o, const struct lapse_gate_findings *findings)
{
    for (uint32_t i = 0; i < findings->unmatched_count; i++)
        lapse_complain("diff", "gate '%s' names nothing that was sampled, on either side", findings->unmatched[i]->text);
    if (findings->worst == LAPSE_GATE_CROSSED)
        return REGRESSION;
    if (findings->unmatched_count)
        return FAILED;
    if (!o->strict || findings->worst == LAPSE_GATE_CLEAR)
        return NO_REGRESSION;
    if (findings->runs_needed && findings->runs_needed != UINT32_MAX)
        lapse_complain("diff", "not enough samples to tell; %u runs a side would do", findings->runs_needed);
    else
        lapse_complain("diff", "not enough samples to tell; repeated runs would (lapse record --repeat)");
    return NOT_ENOUGH;
}

static int report(struct options *o, struct lapse_comparison *comparison)
{
    struct lapse_gate_findings findings;
    if (lapse_gates_check(&findings, comparison, o->gates, o->gate_count))
        return lapse_complain("diff", "not enough memory");
    o->report.comparison = comparison;
    o->report.findings = &findings;
    o->report.gate_count = o->gate_count;
    int status = write_to(o->output, find_format(o->format), &o->report);
    const char *actions = getenv("GITHUB_ACTIONS");
    if (!status && o->github && actions && !strcmp(actions, "true"))
        status = write_to(NULL, lapse_report_comparison_github, &o->report);
    if (!status && o->junit)
        status = write_to(o->junit, lapse_report_comparison_junit, &o->report);
    if (!status && o->html)
        status = write_to(o->html, lapse_report_comparison_html, &o->report);
    if (!status)
        status = verdict(o, &findings);
    lapse_gate_findings_fini(&findings);
    return status;
}

static int run(struct options *o)
{
    bool variants = o->base_count + o->new_count == 1;
    uint32_t base_count = o->base_count, new_count = variants ? 1 : o->new_count;
    struct lapse_comparison_input base[MAX_INPUTS] = { 0 }, new[MAX_INPUTS] = { 0 };
    struct lapse_comparison *comparison = NULL;
    char error[512] = "";
    int status = FAILED;
    o->report.base_name = o->base[0];
    o->report.new_name = variants ? o->base[0] : o->new[0];
    if (open_inputs(o->base, base_count, variants ? 0 : LAPSE_ANY_VARIANT, base) &&
        open_inputs(variants ? o->base : o->new, new_count, variants ? 1 : LAPSE_ANY_VARIANT, new)) {
        if (lapse_comparison_create(&comparison, base, base_count, new, new_count, &o->comparison, error, sizeof error))
            lapse_complain("diff", "%s", error);
        else
            status = report(o, comparison);
    }
    lapse_comparison_destroy(comparison);
    close_inputs(base, base_count);
    close_inputs(new, new_count);
    return status;
}

/* Each file is read once, and none is written to. */
static bool inputs_are_apart(const struct options *o)
{
    const char *all[2 * MAX_INPUTS];
    int count = (int)(o->base_count + o->new_count);
    memcpy(all, o->base, o->base_count * sizeof *all);
    memcpy(all + o->base_count, o->new, o->new_count * sizeof *all);
    return lapse_inputs_differ("diff", all, count) &&
           !lapse_output_is_input("diff", o->output, all, count) &&
           !lapse_output_is_input("diff", o->junit, all, count);
}

int lapse_command_diff(int argc, char **argv)
{
    struct options o = { .format = "text", .report.limit = 20 };
    int option, status = 0;
    while (!status && (option = getopt_long(argc, argv, "o:h", long_options, NULL)) != -1)
        status = parse_option(&o, option);
    if (!status && optind < argc && !o.base_count)
        add_input(o.base, &o.base_count, argv[optind++]);
    if (!status && optind < argc && !o.new_count)
        add_input(o.new, &o.new_count, argv[optind++]);
    if (!status && (optind < argc || !o.base_count))
        status = lapse_complain("diff", "two recordings are wanted: BASE NEW (see --help)");
    if (!status && !find_format(o.format))
        status = lapse_complain("diff", "--format is text, tsv, json or markdown");
    if (!status)
        status = inputs_are_apart(&o) ? run(&o) : FAILED;
    for (uint32_t i = 0; i < o.gate_count; i++)
        lapse_gate_fini(&o.gates[i]);
    return status < 0 ? 0 : status;
}
