/* SPDX-License-Identifier: MIT */
/* lapse record: run a command under liblapse and leave one recording of all its processes. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "command.h"
#include "format.h"
#include "input.h"
#include "record.h"
#include "table.h"

static const char help[] =
    "usage: lapse record [OPTIONS] [--] COMMAND [ARGUMENT...]\n"
    "\n"
    "Runs COMMAND with lapse in it and in all its children, and leaves one recording. The exit status\n"
    "is COMMAND's (128+N when signal N ended it), 126 or 127 when it cannot be run, 2 when lapse cannot\n"
    "begin; what lapse says goes to standard error.\n"
    "\n"
    "  -o, --output=NAME       the recording (default: lapse-COMMAND-PID.lapse); an existing file is\n"
    "                          never overwritten, a number is added\n"
    "  -F, --hz=N              samples per second of CPU time, 1 to 10000 (default: 199)\n"
    "      --clock=CLOCK       cpu (default), perf (user time only, for rates above the kernel's tick),\n"
    "                          wall (running or not)\n"
    "      --duration=S        stop sampling each process after so many seconds\n"
    "      --delay=S           start sampling each process after so many seconds\n"
    "      --depth=N           deepest stack kept, 8 to 4096 (default: 1024)\n"
    "      --start=WHEN        now (default) or paused\n"
    "      --toggle-signal=N   signal that pauses and resumes\n"
    "      --signal=N          another signal than SIGPROF\n"
    "      --no-follow         leave children alone\n"
    "      --respect-mask      leave threads alone that block the signal\n"
    "      --min-samples=N, --close=last|next|open, --gap=MS\n"
    "                          for the events (see lapse events)\n"
    "      --exit-budget-ms=N  longest time for names at a process's end (default: 2000)\n"
    "      --export=LIST       leave NAME.folded, NAME.events or both (folded,events) as well\n"
    "      --repeat=N          run COMMAND N times into one recording\n"
    "      --warmup=M          M runs before that are not kept\n"
    "      --interleave=LINE   a second command, run in turn with COMMAND (A B A B), so that drift meets\n"
    "                          both alike: `lapse diff FILE` compares COMMAND (base) with LINE (new).\n"
    "                          Without characters that only a shell understands no shell is used\n"
    "                          A run that fails ends the series; its status is the exit status\n"
    "      --verbose           liblapse says what it does\n"
    "  -q, --quiet             no report\n"
    "  -h, --help              this text\n";

enum {
    TOP_FUNCTIONS = 10,
    SETTINGS_MAX = 28,
    RUNS_MAX = 100000,
};

/* Long options that only pass a variable on. */
enum value_kind { ANY, NUMBER, SECONDS, WORD, FLAG, SIGNAL };
static const struct setting {
    const char *option, *variable, *flag_value;
    enum value_kind kind;
    double low, high;
    const char *words; /* with a blank before and behind each */
} settings[] = {
    { "hz", "LAPSE_HZ", NULL, NUMBER, 1, 10000, NULL },
    { "clock", "LAPSE_CLOCK", NULL, WORD, 0, 0, " cpu perf wall " },
    { "duration", "LAPSE_DURATION", NULL, SECONDS, 0, 1e9, NULL },
    { "delay", "LAPSE_DELAY", NULL, SECONDS, 0, 1e9, NULL },
    { "depth", "LAPSE_DEPTH", NULL, NUMBER, 8, 4096, NULL },
    { "start", "LAPSE_START", NULL, WORD, 0, 0, " now paused " },
    { "toggle-signal", "LAPSE_TOGGLE_SIGNAL", NULL, SIGNAL, 1, 64, NULL },
    { "signal", "LAPSE_SIGNAL", NULL, SIGNAL, 1, 64, NULL },
    { "no-follow", "LAPSE_FOLLOW", "0", FLAG, 0, 0, NULL },
    { "respect-mask", "LAPSE_RESPECT_MASK", "1", FLAG, 0, 0, NULL },
    { "min-samples", "LAPSE_MIN_SAMPLES", NULL, NUMBER, 1, 1000000, NULL },
    { "close", "LAPSE_CLOSE", NULL, WORD, 0, 0, " last next open " },
    { "gap", "LAPSE_GAP", NULL, SECONDS, 0, 1e12, NULL },
    { "exit-budget-ms", "LAPSE_EXIT_BUDGET_MS", NULL, NUMBER, 1, 3600000, NULL },
    { "verbose", "LAPSE_VERBOSE", "1", FLAG, 0, 0, NULL },
};
enum { SETTING_COUNT = sizeof settings / sizeof *settings };

struct record {
    const char *output;
    bool quiet, folded, events;
    const char *values[SETTING_COUNT];
    char *interleave;
    struct lapse_record_series series;
};

static bool is_valid(const struct setting *setting, const char *value)
{
    char *end, word[64];
    if (setting->kind == WORD) {
        snprintf(word, sizeof word, " %s ", value);
        return !strchr(value, ' ') && *value && strstr(setting->words, word);
    }
    const char *digits = setting->kind == SECONDS ? "0123456789." : "0123456789";
    bool plain = *value && !value[strspn(value, digits)];
    double number = strtod(value, &end);
    if (setting->kind == SIGNAL && (number == SIGKILL || number == SIGSTOP ||
                                    number == 32 || number == 33)) /* the C library's own */
        return false;
    return plain && !*end && number >= setting->low && number <= setting->high;
}

static bool set_value(struct record *record, size_t index, const char *value)
{
    const struct setting *setting = &settings[index];
    if (setting->kind == FLAG)
        value = setting->flag_value;
    else if (!is_valid(setting, value)) {
        if (setting->kind == WORD)
            lapse_complain("record", "--%s: '%s' is none of%.*s", setting->option, value,
                           (int)strlen(setting->words) - 1, setting->words);
        else if (setting->kind == SIGNAL)
            lapse_complain("record", "--%s: '%s' is not the number of a signal that can be caught",
                           setting->option, value);
        else
            lapse_complain("record", "--%s: '%s' is not a number from %.0f to %.0f", setting->option, value,
                           setting->low, setting->high);
        return false;
    }
    record->values[index] = value;
    return true;
}

static bool set_exports(struct record *record, const char *text)
{
    while (*text) {
        size_t size = strcspn(text, ",");
        if (size == 6 && !strncmp(text, "folded", size))
            record->folded = true;
        else if (size == 6 && !strncmp(text, "events", size))
            record->events = true;
        else
            return lapse_complain("record", "--export: '%s' is not folded, events or both by comma", text),
                   false;
        text += size + (text[size] == ',');
    }
    return true;
}

enum { OPTION_EXPORT = 1000, OPTION_REPEAT, OPTION_WARMUP, OPTION_INTERLEAVE, OPTION_SETTING };

static void fill_options(struct option options[SETTINGS_MAX])
{
    size_t count = 0;
    for (; count < SETTING_COUNT; count++)
        options[count] = (struct option){ settings[count].option, settings[count].kind == FLAG
                                          ? no_argument : required_argument, NULL,
                                          OPTION_SETTING + (int)count };
    options[count++] = (struct option){ "output", required_argument, NULL, 'o' };
    options[count++] = (struct option){ "export", required_argument, NULL, OPTION_EXPORT };
    options[count++] = (struct option){ "repeat", required_argument, NULL, OPTION_REPEAT };
    options[count++] = (struct option){ "warmup", required_argument, NULL, OPTION_WARMUP };
    options[count++] = (struct option){ "interleave", required_argument, NULL, OPTION_INTERLEAVE };
    options[count++] = (struct option){ "quiet", no_argument, NULL, 'q' };
    options[count++] = (struct option){ "help", no_argument, NULL, 'h' };
    options[count] = (struct option){ NULL, 0, NULL, 0 };
}

static bool set_runs(struct lapse_record_series *series, int option, const char *text)
{
    const char *name = option == OPTION_REPEAT ? "repeat" : "warmup";
    uint64_t value;
    if (!lapse_option_number("record", name, text, &value))
        return false;
    if (value > RUNS_MAX || (option == OPTION_REPEAT && !value))
        return lapse_complain("record", "--%s: %s is not a number from %d to %d", name, text,
                              option == OPTION_REPEAT, RUNS_MAX), false;
    *(option == OPTION_REPEAT ? &series->repeat : &series->warmup) = (uint32_t)value;
    return true;
}

static int signal_of(const struct record *record, const char *option, int otherwise)
{
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (!strcmp(settings[i].option, option) && record->values[i])
            return atoi(record->values[i]);
    return otherwise;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct record *record, int argc, char **argv)
{
    struct option options[SETTINGS_MAX];
    fill_options(options);
    for (int option; (option = getopt_long(argc, argv, "+o:F:qh", options, NULL)) != -1;) {
        if (option == 'h')
            return lapse_show_help("record", help);
        if (option == '?')
            return LAPSE_STATUS_BAD;
        if (option == 'o')
            record->output = optarg;
        else if (option == 'q')
            record->quiet = true;
        else if (option == OPTION_INTERLEAVE)
            record->interleave = optarg;
        else if ((option == OPTION_REPEAT || option == OPTION_WARMUP) &&
                 !set_runs(&record->series, option, optarg))
            return LAPSE_STATUS_BAD;
        else if (option == OPTION_EXPORT && !set_exports(record, optarg))
            return LAPSE_STATUS_BAD;
        else if (option == 'F' && !set_value(record, 0, optarg))
            return LAPSE_STATUS_BAD;
        else if (option >= OPTION_SETTING && !set_value(record, (size_t)(option - OPTION_SETTING), optarg))
            return LAPSE_STATUS_BAD;
    }
    if (signal_of(record, "toggle-signal", 0) == signal_of(record, "signal", SIGPROF))
        return lapse_complain("record", "--toggle-signal: is the signal that samples");
    if (optind >= argc)
        return lapse_complain("record", "no command given; `lapse record -- COMMAND ARGUMENT...`");
    record->series.commands[0].arguments = argv + optind;
    return -1;
}

static void set_preload(const char *library)
{
    const char *others = getenv("LD_PRELOAD");
    char *value = NULL;
    if (others && *others && asprintf(&value, "%s:%s", library, others) < 0)
        value = NULL;
    setenv("LD_PRELOAD", value ? value : library, 1);
    free(value);
}

/* The environment of the commands, made in our own, which nothing else of us looks at later. What
 * changes from run to run is set with each. `out` becomes the folder of the spools. */
static void set_environment(const struct record *record, const char *library,
                            const struct lapse_record_place *place, char out[2 * PATH_MAX])
{
    char id[33];
    uint8_t random[16] = { 0 };
    size_t size = 0;
    for (const char *at = place->spools; *at; at++) {
        out[size++] = *at;
        if (*at == '%')
            out[size++] = '%';
    }
    out[size] = 0;
    if (getrandom(random, sizeof random, 0) < 0)
        memcpy(random, place->spools + strlen(place->spools) - 6, 6);
    for (size_t i = 0; i < sizeof random; i++)
        sprintf(id + 2 * i, "%02x", random[i]);
    for (size_t i = 0; i < SETTING_COUNT; i++)
        if (record->values[i])
            setenv(settings[i].variable, record->values[i], 1);
    setenv("LAPSE_EXPORT", "none", 1);
    setenv("LAPSE_RUN_ID", id, 1);
    if (*place->rings)
        setenv("LAPSE_RINGS", place->rings, 1);
    else
        unsetenv("LAPSE_RINGS"); /* of an outer lapse record */
    set_preload(library);
}

static void warn_of(enum lapse_obstacle obstacle, const char *subject)
{
    static const char *const causes[] = {
        [LAPSE_OBSTACLE_STATIC] = "is linked statically, so lapse cannot be loaded into it",
        [LAPSE_OBSTACLE_CLASS] = "is not an x86-64 program, so lapse cannot be loaded into it",
        [LAPSE_OBSTACLE_SETUID] = "runs with other privileges, so the loader will not load lapse into it",
    };
    if (obstacle != LAPSE_OBSTACLE_NONE)
        lapse_complain("record", "warning: %s %s; its children may still be profiled", subject,
                       causes[obstacle]);
}

static void report_nothing(double cpu, enum lapse_obstacle obstacle)
{
    if (obstacle != LAPSE_OBSTACLE_NONE)
        lapse_complain("record", "nothing was sampled: lapse was not loaded (see the warning above)");
    else if (cpu < 0.02)
        lapse_complain("record", "nothing was sampled: command and children used only %.1f ms of CPU "
                       "time; a higher --hz or a longer run will show more", cpu * 1e3);
    else
        lapse_complain("record", "nothing was sampled in %.3f s of CPU time: the library was not loaded, "
                       "sampling was paused, or no process could write into the folder of the spools",
                       cpu);
}

static int write_export(struct lapse_profile *profile, const struct lapse_record_place *place,
                        const char *format_name)
{
    const struct lapse_export_format *format = lapse_export_format_find(format_name);
    struct lapse_export_options options = { 0 };
    char path[PATH_MAX], error[512] = "";
    int stem = (int)strlen(place->path) - (int)strlen(".lapse");
    snprintf(path, sizeof path, "%.*s.%s", stem, place->path, format_name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file)
        return lapse_complain("record", "%s: %s", path, strerror(errno));
    int result = format->write(profile, file, &options, error, sizeof error);
    bool failed = ferror(file) != 0;
    if (fclose(file) || failed || result)
        return lapse_complain("record", "%s: %s", path, *error ? error : "cannot be written");
    return 0;
}

/* Top functions of the runs of one command. */
static void write_variant(struct lapse_table table, uint32_t variant)
{
    struct lapse_profile *profile = table.profile;
    struct lapse_view_options options = { 0 };
    uint32_t *threads = malloc((profile->thread_count + 1) * sizeof *threads);
    struct lapse_view *view;
    for (uint32_t i = 0; threads && i < profile->thread_count; i++)
        if (profile->processes[profile->threads[i].process].variant == variant)
            threads[options.thread_count++] = i;
    options.threads = threads;
    if (threads && options.thread_count && !lapse_view_create(&view, profile, &options)) {
        fprintf(stderr, "\n%s\n", variant ? "new:" : "base:");
        table.view = view;
        lapse_table_functions(&table);
        lapse_view_destroy(view);
    }
    free(threads);
}

static void write_tables(const struct record *record, const struct lapse_table *table)
{
    if (record->series.command_count == 1) {
        lapse_table_functions(table);
        return;
    }
    write_variant(*table, 0);
    write_variant(*table, 1);
}

static void write_report(const struct record *record, struct lapse_profile *profile,
                         const struct lapse_record_place *place)
{
    struct lapse_view *view;
    if (lapse_view_create(&view, profile, NULL))
        return;
    struct lapse_table table = {
        .profile = profile, .view = view, .to = stderr, .limit = TOP_FUNCTIONS,
        .colour = isatty(STDERR_FILENO) && !getenv("NO_COLOR"),
    };
    fputc('\n', stderr);
    if (record->series.repeat > 1 || record->series.command_count > 1)
        lapse_record_series_tell(&record->series, stderr);
    lapse_table_summary(&table);
    write_tables(record, &table);
    fprintf(stderr, "%s: %.1f kB; `lapse %s` shows more of it\n", place->path, (double)place->bytes / 1e3,
            record->series.command_count > 1 ? "diff" : "report");
    lapse_view_destroy(view);
}

static void tell(const struct record *record, const struct lapse_record_place *place)
{
    char copy[PATH_MAX];
    char *paths[] = { copy };
    struct lapse_input_options how = { .quiet = record->quiet, .no_symbols = true };
    struct lapse_profile *profile;
    strcpy(copy, place->path);
    if (record->quiet && !record->folded && !record->events)
        return;
    if (lapse_input_open("record", &profile, paths, 1, &how))
        return;
    if (record->folded)
        write_export(profile, place, "folded");
    if (record->events)
        write_export(profile, place, "events");
    if (!record->quiet)
        write_report(record, profile, place);
    lapse_input_close(profile);
}

static int finish(const struct record *record, struct lapse_record_place *place,
                  enum lapse_obstacle obstacle)
{
    const struct lapse_record_run *run = &record->series.last;
    place->tree_ns = (uint64_t)(record->series.cpu_seconds * 1e9);
    if (lapse_record_collect(place))
        return 1;
    lapse_record_place_remove(place);
    lapse_record_release_signals();
    lapse_record_tell_living(place, "record");
    if (run->signalled && !record->quiet)
        lapse_complain("record", "the command was ended by signal %d (%s)", run->signal,
                       strsignal(run->signal));
    if (place->spool_count)
        tell(record, place);
    else if (!record->quiet && record->series.sums[0].runs && !place->living_count)
        report_nothing(record->series.cpu_seconds, obstacle);
    return 0;
}

/* The pid is part of the default name and known only when the command runs; ours is as good. */
static void default_name(char name[PATH_MAX], const char *command)
{
    const char *slash = strrchr(command, '/');
    snprintf(name, PATH_MAX, "lapse-%.200s-%d", slash && slash[1] ? slash + 1 : command, (int)getpid());
}

/* Paths of the commands; warnings about what cannot be profiled. Returns 0 or an exit status. */
static int find_commands(struct record *record, enum lapse_obstacle *obstacle)
{
    struct lapse_record_series *series = &record->series;
    char subject[PATH_MAX];
    series->command_count = record->interleave ? 2 : 1;
    int status = record->interleave ? lapse_record_split(&series->commands[1], record->interleave) : 0;
    *obstacle = LAPSE_OBSTACLE_NONE;
    for (uint32_t i = 0; i < series->command_count && !status; i++)
        status = lapse_record_find(series->commands[i].arguments[0], series->commands[i].path);
    for (uint32_t i = 0; i < series->command_count && !status; i++) {
        enum lapse_obstacle found = lapse_record_obstacle(series->commands[i].path, subject);
        warn_of(found, subject);
        *obstacle = found ? found : *obstacle;
    }
    return status;
}

int lapse_command_record(int argc, char **argv)
{
    static struct record record; /* large, and one is all there is */
    struct lapse_record_place place;
    enum lapse_obstacle obstacle;
    char library[PATH_MAX], name[PATH_MAX], out[2 * PATH_MAX];
    record.series.repeat = 1;
    int status = read_options(&record, argc, argv);
    if (status >= 0)
        return status;
    if ((status = find_commands(&record, &obstacle)))
        return status;
    if (!lapse_record_library(library))
        return LAPSE_STATUS_BAD;
    default_name(name, record.series.commands[0].arguments[0]);
    lapse_record_hold_signals();
    if (lapse_record_place_make(&place, record.output ? record.output : name))
        return LAPSE_STATUS_BAD;
    set_environment(&record, library, &place, out);
    record.series.out_folder = out;
    status = lapse_record_series_run(&record.series, &place);
    if (!record.series.started) {
        lapse_record_place_remove(&place);
        lapse_record_release_signals();
        return status;
    }
    int failed = finish(&record, &place, obstacle);
    free(place.living);
    return status ? status : failed;
}
