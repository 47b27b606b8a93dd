/* SPDX-License-Identifier: MIT */
/* lapse report: what a profile says, as text, TSV or JSON. */
#include "report.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "index.h"
#include "input.h"

static const char help[] =
    "usage: lapse report [OPTIONS] FILE...\n"
    "\n"
    "FILEs are recordings and folded text; several are one profile. `-` is standard input.\n"
    "Shares come with their 95 % interval: what another run of the same program would show.\n"
    "\n"
    "      --functions          top functions, self and total (default)\n"
    "      --tree               call tree, root first\n"
    "      --inverted           with --tree: leaf first\n"
    "      --callers=FUNCTION   who calls it\n"
    "      --callees=FUNCTION   what it calls\n"
    "      --lines=FUNCTION     hot lines of its source\n"
    "      --threads            a line per thread\n"
    "      --processes          a line per process\n"
    "      --by=KEY             a line per value of this label; with --tree a tree for each\n"
    "      --sort=KEY           self (default), total or name\n"
    "      --limit=N            rows (default 30; 0: all)\n"
    "      --minimum=PERCENT    calls of a tree below this share are not shown (default 0.5)\n"
    "      --collapse-recursion a function right under itself is one frame\n"
    "      --no-inlines         functions as compiled, without those inlined into them\n"
    "      --no-symbols         names of the recording alone, no debug information is read\n"
    "      --thread=TID, --process=PID, --label=KEY[=VALUE], --from=S, --until=S\n"
    "                           only that part; seconds count from the first sample; --thread and\n"
    "                           --process may be given several times\n"
    "      --format=FORM        text (default), tsv or json\n"
    "      --color=WHEN         auto (default: on a terminal, unless NO_COLOR is set), always, never\n"
    "  -h, --help               this text\n";

enum shown { SHOW_FUNCTIONS, SHOW_TREE, SHOW_CALLERS, SHOW_CALLEES, SHOW_LINES, SHOW_THREADS, SHOW_PROCESSES, SHOW_LABELS };
enum {
    OPTION_SHOWN = 1000, /* and the next ones: enum shown */
    OPTION_INVERTED = 1100, OPTION_SORT, OPTION_LIMIT, OPTION_MINIMUM, OPTION_COLLAPSE, OPTION_NO_INLINES,
    OPTION_NO_SYMBOLS,
    OPTION_THREAD, OPTION_PROCESS, OPTION_LABEL, OPTION_BY, OPTION_FROM, OPTION_UNTIL, OPTION_FORMAT, OPTION_COLOUR,
};

struct report {
    enum shown shown;
    const char *function;
    struct lapse_table table;
    struct lapse_view_options view;
    struct lapse_input_options input;
    double minimum, from_s, until_s;
    uint64_t *tids, *pids;
    uint32_t tid_count, pid_count;
    char *label;
    bool no_colour, colour;
};

static bool read_word(const char *option, const char *text, const char *const *words, int *number)
{
    for (int i = 0; words[i]; i++)
        if (!strcmp(text, words[i]))
            return *number = i, true;
    lapse_complain("report", "--%s: '%s' is not one of its words; `lapse report --help`", option, text);
    return false;
}

static bool read_decimal(const char *option, const char *text, double limit, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end != text && !*end && *value >= 0 && *value <= limit)
        return true;
    lapse_complain("report", "--%s: '%s' is not a number from 0 to %g", option, text, limit);
    return false;
}

static bool add_number(const char *option, const char *text, uint64_t **numbers, uint32_t *count)
{
    uint64_t value;
    if (!lapse_option_number("report", option, text, &value))
        return false;
    uint64_t *grown = lapse_array_grow(*numbers, *count, sizeof *grown);
    if (!grown)
        return lapse_complain("report", "%s", strerror(ENOMEM)), false;
    *numbers = grown;
    grown[(*count)++] = value;
    return true;
}

static bool read_label(struct report *report, const char *text)
{
    char *copy = strdup(text), *equals = copy ? strchr(copy, '=') : NULL;
    if (!copy)
        return false;
    free(report->label);
    report->label = copy;
    if (equals)
        *equals = 0;
    report->view.label_key = copy;
    report->view.label_value = equals ? equals + 1 : NULL;
    return true;
}

static bool read_option(struct report *report, int option, const char *text)
{
    static const char *const sorts[] = { "self", "total", "name", NULL };
    static const char *const forms[] = { "text", "tsv", "json", NULL };
    static const char *const colours[] = { "auto", "always", "never", NULL };
    uint64_t value;
    int word;
    if (option >= OPTION_SHOWN && option <= OPTION_SHOWN + SHOW_PROCESSES) {
        report->shown = (enum shown)(option - OPTION_SHOWN);
        report->function = text;
        report->input.lines = report->shown == SHOW_LINES;
        return true;
    }
    switch (option) {
    case OPTION_INVERTED: return report->view.inverted = true;
    case OPTION_COLLAPSE: return report->view.collapse_recursion = true;
    case OPTION_NO_INLINES: return report->input.no_inlines = true;
    case OPTION_NO_SYMBOLS: return report->input.no_symbols = true;
    case OPTION_SORT:
        if (!read_word("sort", text, sorts, &word))
            return false;
        report->table.sort = (enum lapse_table_sort)word;
        return true;
    case OPTION_FORMAT:
        if (!read_word("format", text, forms, &word))
            return false;
        report->table.form = (enum lapse_table_form)word;
        return true;
    case OPTION_COLOUR:
        if (!read_word("color", text, colours, &word))
            return false;
        report->colour = word == 1;
        report->no_colour = word == 2;
        return true;
    case OPTION_LIMIT:
        if (!lapse_option_number("report", "limit", text, &value))
            return false;
        report->table.limit = value < UINT32_MAX ? (uint32_t)value : 0;
        return true;
    case OPTION_MINIMUM: return read_decimal("minimum", text, 100, &report->minimum);
    case OPTION_FROM: return read_decimal("from", text, 1e9, &report->from_s);
    case OPTION_UNTIL: return read_decimal("until", text, 1e9, &report->until_s);
    case OPTION_THREAD: return add_number("thread", text, &report->tids, &report->tid_count);
    case OPTION_PROCESS: return add_number("process", text, &report->pids, &report->pid_count);
    case OPTION_LABEL: return read_label(report, text);
    case OPTION_BY: report->view.group_by_label = text; return true;
    default: return false; /* getopt has said why */
    }
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct report *report, int argc, char **argv)
{
    static const struct option options[] = {
        { "functions", no_argument, NULL, OPTION_SHOWN + SHOW_FUNCTIONS },
        { "tree", no_argument, NULL, OPTION_SHOWN + SHOW_TREE },
        { "callers", required_argument, NULL, OPTION_SHOWN + SHOW_CALLERS },
        { "callees", required_argument, NULL, OPTION_SHOWN + SHOW_CALLEES },
        { "lines", required_argument, NULL, OPTION_SHOWN + SHOW_LINES },
        { "threads", no_argument, NULL, OPTION_SHOWN + SHOW_THREADS },
        { "processes", no_argument, NULL, OPTION_SHOWN + SHOW_PROCESSES },
        { "inverted", no_argument, NULL, OPTION_INVERTED },
        { "sort", required_argument, NULL, OPTION_SORT }, { "limit", required_argument, NULL, OPTION_LIMIT },
        { "minimum", required_argument, NULL, OPTION_MINIMUM },
        { "collapse-recursion", no_argument, NULL, OPTION_COLLAPSE },
        { "no-inlines", no_argument, NULL, OPTION_NO_INLINES },
        { "no-symbols", no_argument, NULL, OPTION_NO_SYMBOLS },
        { "thread", required_argument, NULL, OPTION_THREAD },
        { "process", required_argument, NULL, OPTION_PROCESS },
        { "by", required_argument, NULL, OPTION_BY },
        { "label", required_argument, NULL, OPTION_LABEL }, { "from", required_argument, NULL, OPTION_FROM },
        { "until", required_argument, NULL, OPTION_UNTIL },
        { "format", required_argument, NULL, OPTION_FORMAT },
        { "color", required_argument, NULL, OPTION_COLOUR }, { "colour", required_argument, NULL, OPTION_COLOUR },
        { "help", no_argument, NULL, 'h' }, { 0 },
    };
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option == 'h')
            return lapse_show_help("report", help);
        if (!read_option(report, option, optarg))
            return LAPSE_STATUS_BAD;
    }
    if (report->view.group_by_label && report->shown == SHOW_FUNCTIONS)
        report->shown = SHOW_LABELS;
    return -1;
}

static bool has(const uint64_t *numbers, uint32_t count, uint64_t number)
{
    for (uint32_t i = 0; i < count; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

/* Threads that were asked for by their own number or by their process's. */
static int choose_threads(struct report *report, uint32_t **chosen)
{
    const struct lapse_profile *profile = report->table.profile;
    if (!report->tid_count && !report->pid_count)
        return 0;
    uint32_t *threads = malloc((profile->thread_count + 1) * sizeof *threads);
    if (!threads)
        return lapse_complain("report", "%s", strerror(ENOMEM));
    *chosen = threads;
    report->view.threads = threads;
    for (uint32_t i = 0; i < profile->thread_count; i++)
        if (has(report->tids, report->tid_count, profile->threads[i].tid) ||
            has(report->pids, report->pid_count, profile->processes[profile->threads[i].process].pid))
            threads[report->view.thread_count++] = i;
    return report->view.thread_count ? 0 : lapse_complain("report", "no thread or process of that number");
}

/* By its full name, else by a part that only one has. Complains and gives LAPSE_NONE otherwise. */
static uint32_t find_function(const struct lapse_view *view, const char *name)
{
    uint32_t found = LAPSE_NONE, matches = 0;
    for (uint32_t i = 0; i < view->function_count; i++)
        if (!strcmp(view->functions[i].name, name))
            return i;
    for (uint32_t i = 0; i < view->function_count; i++)
        if (strstr(view->functions[i].name, name) && !matches++)
            found = i;
    if (matches == 1)
        return found;
    lapse_complain("report", matches ? "%s: %u functions have that in their name:" : "%s: no such function",
                   name, matches);
    for (uint32_t i = 0, shown = 0; matches && i < view->function_count && shown < 10; i++) {
        if (!strstr(view->functions[i].name, name))
            continue;
        fputs("  ", stderr);
        lapse_table_name(stderr, LAPSE_FORM_TEXT, view->functions[i].name);
        fputc('\n', stderr);
        shown++;
    }
    return LAPSE_NONE;
}

static int write_tree(const struct report *report, uint32_t function)
{
    struct lapse_tree_options options = { .minimum = report->minimum / 100, .function = function };
    if (report->shown != SHOW_TREE)
        options.kind = report->shown == SHOW_CALLERS ? LAPSE_TREE_CALLERS : LAPSE_TREE_CALLEES;
    return lapse_report_tree(&report->table, &options);
}

static int write_report(const struct report *report)
{
    const struct lapse_view_options *part = &report->view;
    uint32_t function = LAPSE_NONE;
    int error = 0;
    if (report->shown == SHOW_LINES && (part->threads || part->from_ns || part->until_ns || part->label_key))
        /* leaves of a profile are sums over all of its samples */
        return lapse_complain("report", "--lines shows the whole recording, not a part of it");
    if (report->function) {
        function = find_function(report->table.view, report->function);
        if (function == LAPSE_NONE)
            return LAPSE_STATUS_BAD;
    }
    if (report->table.form == LAPSE_FORM_TEXT) {
        lapse_table_summary(&report->table);
        fputc('\n', stdout);
    }
    switch (report->shown) {
    case SHOW_FUNCTIONS: error = lapse_table_functions(&report->table); break;
    case SHOW_LINES: error = lapse_report_lines(&report->table, function); break;
    case SHOW_THREADS: error = lapse_table_threads(&report->table); break;
    case SHOW_PROCESSES: error = lapse_table_processes(&report->table); break;
    case SHOW_LABELS: error = lapse_table_labels(&report->table, report->view.group_by_label); break;
    default: error = write_tree(report, function);
    }
    if (error > 0)
        return error;
    if (error)
        return lapse_complain("report", "%s", strerror(-error));
    errno = 0;
    if ((fflush(stdout) || ferror(stdout)) && errno != EPIPE)
        return lapse_complain("report", "standard output: %s", strerror(errno ? errno : EIO));
    return 0;
}

static int view_and_write(struct report *report)
{
    struct lapse_profile *profile = report->table.profile;
    struct lapse_view *view;
    uint32_t *threads = NULL;
    int status = choose_threads(report, &threads);
    if (!status && report->until_s > 0 && report->until_s <= report->from_s)
        status = lapse_complain("report", "--until is not after --from");
    if (!status) {
        if (report->from_s > 0)
            report->view.from_ns = profile->first_ns + (uint64_t)(report->from_s * 1e9);
        if (report->until_s > 0)
            report->view.until_ns = profile->first_ns + (uint64_t)(report->until_s * 1e9);
        int error = lapse_view_create(&view, profile, &report->view);
        if (error)
            status = lapse_complain("report", "%s", error == -ENOTSUP
                                        ? "folded text has no single samples: no part of it can be shown"
                                        : strerror(-error));
    }
    if (!status) {
        report->table.view = view;
        status = write_report(report);
        lapse_view_destroy(view);
    }
    free(threads);
    return status;
}

int lapse_command_report(int argc, char **argv)
{
    struct report report = { .minimum = 0.5, .table = { .to = stdout, .limit = 30 } };
    int status = read_options(&report, argc, argv);
    if (status < 0)
        status = lapse_input_open("report", &report.table.profile, argv + optind, argc - optind, &report.input);
    if (!status && report.table.profile) {
        const char *no_colour = getenv("NO_COLOR");
        report.table.colour = report.colour || (!report.no_colour && isatty(STDOUT_FILENO) &&
                                                !(no_colour && *no_colour));
        status = view_and_write(&report);
        lapse_input_close(report.table.profile);
    }
    free(report.tids);
    free(report.pids);
    free(report.label);
    return status;
}
