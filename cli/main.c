/* SPDX-License-Identifier: MIT */
/* The `lapse` command: finds the subcommand and calls it. */
#include <stdio.h>
#include <string.h>

#include "command.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    { "diff", lapse_command_diff, "did the program get slower? with intervals, p-values and gates" },
    { "events", lapse_command_events, "start and end events of calls, from samples" },
    { "fold", lapse_command_fold, "folded stacks with their time, from events" },
    { "import", lapse_command_import, "other profilers' files become a recording" },
    { "merge", lapse_command_merge, "sum folded stacks of many files" },
    { "power", lapse_command_power, "how many runs are needed to see a change" },
    { "view", lapse_command_view, "a recording in the browser" },
};

static int help(FILE *file)
{
    fputs("usage: lapse COMMAND [OPTIONS] [FILE...]\n\n", file);
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        fprintf(file, "  %-10s %s\n", commands[i].name, commands[i].help);
    fputs("\n`lapse COMMAND --help` tells all about one of them.\n", file);
    return file == stderr ? LAPSE_STATUS_BAD : 0;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return help(stderr);
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
        return help(stdout);
    if (!strcmp(argv[1], "--version"))
        return printf("lapse %s\n", LAPSE_VERSION) < 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        static char name[64];
        if (strcmp(argv[1], commands[i].name))
            continue;
        snprintf(name, sizeof name, "lapse %s", argv[1]);
        argv[1] = name;
        return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "lapse: no command '%s'; `lapse --help` lists them\n", argv[1]);
    return LAPSE_STATUS_BAD;
}
