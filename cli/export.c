/* SPDX-License-Identifier: MIT */
/* lapse export: a profile in another format, from the table of export/format.h. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "format.h"
#include "input.h"
#include "new_file.h"

static const char help_head[] =
    "usage: lapse export --to=FORMAT [OPTIONS] FILE...\n"
    "\n"
    "FILEs are recordings and folded text; several are one profile. `-` is standard input.\n"
    "\n";
static const char help_options[] =
    "\n"
    "  -t, --to=FORMAT      one of the above; may be left out when -o ends as FORMAT's files do\n"
    "  -o, --output=FILE    instead of standard output; written beside it and then renamed\n"
    "      --processes, --threads, --labels, --label-root=KEY\n"
    "                       a frame for each below the root (folded)\n"
    "                       --threads: a file for each, FILE-01 and so on (callgrind)\n"
    "      --lines          names with their line, stacks apart by line (folded)\n"
    "      --unit=UNIT      samples (default), us or ns (folded)\n"
    "      --no-inlines     functions as compiled, without those inlined into them\n"
    "      --no-symbols     names of the recording alone, no debug information is read\n"
    "      --title=TEXT     for pictures and pages\n"
    "      --inverted       leaf first (svg)\n"
    "      --minimum=SHARE  leave out what is below this share, in percent (svg)\n"
    "      --width=PIXELS   of a picture (svg)\n"
    "      --min-samples=K, --close=last|next|open, --gap=MS\n"
    "                       for calls over time: see lapse events\n"
    "  -h, --help           this text\n";

enum { OPTION_UNIT = 1000, OPTION_MINIMUM, OPTION_WIDTH, OPTION_MIN_SAMPLES, OPTION_CLOSE, OPTION_GAP,
       OPTION_TITLE, OPTION_LABEL_ROOT, OPTION_FLAG };

struct export {
    const struct lapse_export_format *format;
    const char *output;
    struct lapse_export_options options;
    struct lapse_input_options input;
};

static int show_help(void)
{
    fputs(help_head, stdout);
    for (const struct lapse_export_format *format = lapse_export_formats; format->name; format++)
        printf("  %-10s %s\n", format->name, format->help);
    return lapse_show_help("export", help_options);
}

/* The format whose files end so; the longest ending wins ("speedscope.json" before "json"). */
static const struct lapse_export_format *format_of_file(const char *path)
{
    const struct lapse_export_format *found = NULL;
    size_t size = strlen(path);
    for (const struct lapse_export_format *format = lapse_export_formats; format->name; format++) {
        size_t ending = strlen(format->extension);
        if (size > ending && path[size - ending - 1] == '.' && !strcmp(path + size - ending, format->extension) &&
            (!found || ending > strlen(found->extension)))
            found = format;
    }
    return found;
}

static bool read_unit(struct export *export, const char *text)
{
    static const char *const units[] = { "", "samples", "us", "ns" };
    for (int i = LAPSE_UNIT_SAMPLES; i <= LAPSE_UNIT_NS; i++)
        if (!strcmp(text, units[i]))
            return export->options.unit = (enum lapse_export_unit)i, true;
    return lapse_complain("export", "--unit: '%s' is not samples, us or ns", text), false;
}

static bool read_close(struct export *export, const char *text)
{
    static const char *const words[] = { "last", "next", "open" };
    for (int i = LAPSE_CLOSE_LAST; i <= LAPSE_CLOSE_OPEN; i++)
        if (!strcmp(text, words[i]))
            return export->options.close = (enum lapse_close)i, true;
    return lapse_complain("export", "--close: '%s' is not last, next or open", text), false;
}

static bool read_share(struct export *export, const char *text)
{
    char *end;
    double percent = strtod(text, &end);
    if (end == text || *end || !(percent >= 0 && percent <= 100))
        return lapse_complain("export", "--minimum: '%s' is not a share in percent", text), false;
    export->options.minimum = percent / 100;
    return true;
}

static bool read_number(const char *option, const char *text, uint64_t limit, uint64_t *value)
{
    if (!lapse_option_number("export", option, text, value))
        return false;
    if (*value <= limit)
        return true;
    return lapse_complain("export", "--%s: %s is too large", option, text), false;
}

static bool read_option(struct export *export, int option, const char *text)
{
    uint64_t value = 0;
    bool good = true;
    switch (option) {
    case 't':
        export->format = lapse_export_format_find(text);
        good = export->format;
        if (!good)
            lapse_complain("export", "no format '%s'; `lapse export --help` lists them", text);
        break;
    case 'o': export->output = text; break;
    case OPTION_TITLE: export->options.title = text; break;
    case OPTION_LABEL_ROOT: export->options.label_root = text; break;
    case OPTION_UNIT: return read_unit(export, text);
    case OPTION_CLOSE: return read_close(export, text);
    case OPTION_MINIMUM: return read_share(export, text);
    case OPTION_WIDTH:
        good = read_number("width", text, 100000, &value);
        export->options.width = (uint32_t)value;
        break;
    case OPTION_MIN_SAMPLES:
        good = read_number("min-samples", text, 1000000, &value);
        export->options.min_samples = (uint32_t)value;
        break;
    case OPTION_GAP:
        good = read_number("gap", text, UINT64_MAX / 1000000, &value);
        export->options.gap_ns = value * 1000000;
        break;
    default: good = option != '?'; /* a flag, or getopt has said why */
    }
    return good;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct export *export, int argc, char **argv)
{
    int threads = 0, processes = 0, labels = 0, lines = 0, inverted = 0, no_inlines = 0, no_symbols = 0;
    const struct option options[] = {
        { "to", required_argument, NULL, 't' }, { "output", required_argument, NULL, 'o' },
        { "unit", required_argument, NULL, OPTION_UNIT },
        { "minimum", required_argument, NULL, OPTION_MINIMUM },
        { "width", required_argument, NULL, OPTION_WIDTH },
        { "title", required_argument, NULL, OPTION_TITLE },
        { "min-samples", required_argument, NULL, OPTION_MIN_SAMPLES },
        { "close", required_argument, NULL, OPTION_CLOSE }, { "gap", required_argument, NULL, OPTION_GAP },
        { "threads", no_argument, &threads, 1 }, { "processes", no_argument, &processes, 1 },
        { "labels", no_argument, &labels, 1 },
        { "label-root", required_argument, NULL, OPTION_LABEL_ROOT }, { "lines", no_argument, &lines, 1 },
        { "inverted", no_argument, &inverted, 1 }, { "no-inlines", no_argument, &no_inlines, 1 },
        { "no-symbols", no_argument, &no_symbols, 1 },
        { "help", no_argument, NULL, 'h' }, { 0 },
    };
    for (int option; (option = getopt_long(argc, argv, "t:o:h", options, NULL)) != -1;) {
        if (option == 'h')
            return show_help();
        if (!read_option(export, option, optarg))
            return LAPSE_STATUS_BAD;
    }
    export->options.threads = threads;
    export->options.processes = processes;
    export->options.labels = labels;
    export->options.lines = lines;
    export->options.inverted = inverted;
    if (!export->format && export->output)
        export->format = format_of_file(export->output);
    if (!export->format)
        return lapse_complain("export", "no format given; --to=FORMAT, `lapse export --help` lists them");
    export->input.lines = lines || export->format->lines;
    export->input.no_inlines = no_inlines;
    export->input.no_symbols = no_symbols;
    return -1;
}

static int write_stream(const struct export *export, struct lapse_profile *profile, FILE *to, const char *name)
{
    char error[512] = "";
    int result = export->format->write(profile, to, &export->options, error, sizeof error);
    lapse_input_hide_progress();
    if (!result && (fflush(to) || ferror(to))) {
        result = errno ? -errno : -EIO;
        snprintf(error, sizeof error, "%s: %s", name, strerror(-result));
    }
    if (result == -ENOSPC || result == -EDQUOT || result == -EFBIG || result == -EIO)
        snprintf(error, sizeof error, "%s: %s", name, strerror(-result)); /* of the file, not the format */
    if (result == -EPIPE) /* who reads has seen enough */
        return 0;
    return result ? lapse_complain("export", "%s", *error ? error : strerror(-result)) : 0;
}

static int write_standard_output(const struct export *export, struct lapse_profile *profile)
{
    const char *extension = export->format->extension;
    bool binary = !strcmp(extension, "pb.gz") || !strcmp(extension, "pftrace");
    if (binary && isatty(STDOUT_FILENO))
        return lapse_complain("export", "%s is not for terminals; -o FILE", export->format->name);
    return write_stream(export, profile, stdout, "standard output");
}

static int write_file(const struct export *export, struct lapse_profile *profile, const char *path)
{
    struct lapse_new_file file;
    int error = lapse_new_file_create(&file, path);
    int result = error ? 0 : write_stream(export, profile, file.file, path);
    if (!error) {
        int closed = lapse_new_file_close(&file, !result);
        error = result ? 0 : closed;
    }
    return error ? lapse_complain("export", "%s: %s", path, strerror(-error)) : result;
}

/* A file for each thread that has samples, which KCachegrind loads together: FILE-01 and so on. */
static int write_thread_files(struct export *export, struct lapse_profile *profile)
{
    char path[4096];
    int status = 0;
    for (uint32_t i = 0; i < profile->thread_count && !status; i++) {
        if (!profile->threads[i].count)
            continue;
        export->options.only_thread = i + 1;
        if (snprintf(path, sizeof path, "%s-%02u", export->output, i + 1) >= (int)sizeof path)
            return lapse_complain("export", "%s: %s", export->output, strerror(ENAMETOOLONG));
        status = write_file(export, profile, path);
    }
    return status;
}

static int write_output(struct export *export, struct lapse_profile *profile)
{
    bool is_stdout = !export->output || !strcmp(export->output, "-");
    if (export->options.threads && export->format->write == lapse_write_callgrind) {
        if (is_stdout || !profile->has_times)
            return lapse_complain("export", is_stdout ? "--threads makes several files; -o FILE"
                                                      : "there are no threads in folded text");
        return write_thread_files(export, profile);
    }
    return is_stdout ? write_standard_output(export, profile) : write_file(export, profile, export->output);
}

int lapse_command_export(int argc, char **argv)
{
    /* A call that ends with the last sample that saw it may have no length at all. */
    struct export export = { .options.close = LAPSE_CLOSE_NEXT };
    struct lapse_profile *profile;
    int status = read_options(&export, argc, argv);
    if (status >= 0)
        return status;
    if (lapse_output_is_input("export", export.output, (const char *const *)argv + optind, argc - optind))
        return LAPSE_STATUS_BAD;
    status = lapse_input_open("export", &profile, argv + optind, argc - optind, &export.input);
    if (status)
        return status;
    status = write_output(&export, profile);
    for (uint32_t i = 0; i < profile->note_count; i++)
        lapse_complain("export", "%s", profile->notes[i]);
    lapse_input_close(profile);
    return status;
}
