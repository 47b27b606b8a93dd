/* SPDX-License-Identifier: MIT */
/* The `lapse` command: finds the subcommand and calls it. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "name_source.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    { "record", lapse_command_record, "run a command and profile it, children included" },
    { "report", lapse_command_report, "top functions, call tree, callers and callees" },
    { "view", lapse_command_view, "a recording in the browser" },
    { "diff", lapse_command_diff, "did the program get slower? with intervals, p-values and gates" },
    { "power", lapse_command_power, "how many runs are needed to see a change" },
    { "export", lapse_command_export, "flame graphs, pprof, Perfetto and other formats" },
    { "symbolize", lapse_command_symbolize, "put names and lines into a recording, to read it elsewhere" },
    { "annotate", lapse_command_annotate, "instructions and lines of a function with their weight" },
    { "recover", lapse_command_recover, "outputs from the spool of a process that was killed" },
    { "events", lapse_command_events, "start and end events of calls, from samples" },
    { "fold", lapse_command_fold, "folded stacks with their time, from events" },
    { "import", lapse_command_import, "other profilers' files become a recording" },
    { "merge", lapse_command_merge, "sum folded stacks of many files" },
};

enum { COMMAND_COUNT = sizeof commands / sizeof *commands, NAME_MAX_BYTES = 32 };

static int help(FILE *file)
{
    fputs("usage: lapse COMMAND [OPTIONS] [FILE...]\n\n", file);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        fprintf(file, "  %-10s %s\n", commands[i].name, commands[i].help);
    fputs("\nNames and lines come from the recording and from files on this machine; all commands take\n"
          "  --symfs=DIR, --debug-dir=DIR, --demangle=full|simple|none\n"
          "\n`lapse COMMAND --help` or `lapse help COMMAND` tells all about one of them.\n", file);
    return file == stderr ? LAPSE_STATUS_BAD : lapse_show_help("help", "");
}

static const struct command *find(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (!strcmp(commands[i].name, name))
            return &commands[i];
    return NULL;
}

static size_t smallest(size_t a, size_t b, size_t c)
{
    size_t least = a < b ? a : b;
    return least < c ? least : c;
}

/* Letters to change, add or take away to make one word of the other. */
static size_t distance(const char *from, const char *to)
{
    size_t row[NAME_MAX_BYTES + 1], size = strlen(to);
    if (size > NAME_MAX_BYTES)
        return size;
    for (size_t i = 0; i <= size; i++)
        row[i] = i;
    for (; *from; from++) {
        size_t corner = row[0]++;
        for (size_t i = 1; i <= size; i++) {
            size_t best = smallest(corner + (*from != to[i - 1]), row[i] + 1, row[i - 1] + 1);
            corner = row[i];
            row[i] = best;
        }
    }
    return row[size];
}

static int unknown(const char *name)
{
    const struct command *nearest = NULL;
    size_t least = 3; /* further away is another word */
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        size_t here = distance(name, commands[i].name);
        if (here < least) {
            least = here;
            nearest = &commands[i];
        }
    }
    if (nearest)
        fprintf(stderr, "lapse: no command '%s'; did you mean '%s'?\n", name, nearest->name);
    else
        fprintf(stderr, "lapse: no command '%s'; `lapse --help` lists them\n", name);
    return LAPSE_STATUS_BAD;
}

static int run(const struct command *command, int argc, char **argv)
{
    static char name[16 + NAME_MAX_BYTES];
    snprintf(name, sizeof name, "lapse %s", command->name);
    argv[0] = name;
    /* What stands behind `record` is another program's. */
    if (command->run != lapse_command_record && !lapse_name_source_options(command->name, &argc, argv))
        return LAPSE_STATUS_BAD;
    return command->run(argc, argv);
}

/* Where a standard descriptor is closed, the next file would get its number, and messages would go into
 * that file. What stands there instead fails as a closed one does, and no command inherits it. */
static void fill_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", (fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) | O_CLOEXEC) < 0)
            return;
}

int main(int argc, char **argv)
{
    static char help_option[] = "--help";
    const struct command *command;
    fill_standard_descriptors();
    lapse_guard_error_stream();
    if (argc < 2)
        return help(stderr);
    if (!strcmp(argv[1], "--version"))
        return printf("lapse %s\n", LAPSE_VERSION) < 0 || fflush(stdout) ? LAPSE_STATUS_BAD : 0;
    bool asked = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help");
    if (asked && argc == 2)
        return help(stdout);
    command = find(argv[asked ? 2 : 1]);
    if (!command)
        return unknown(argv[asked ? 2 : 1]);
    if (asked) {
        argv[2] = help_option;
        return run(command, 2, argv + 1);
    }
    return run(command, argc - 1, argv + 1);
}
