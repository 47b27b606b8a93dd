/* SPDX-License-Identifier: MIT */
/* The subcommands of `lapse`: one file each, called by main.c. A command gets "lapse NAME" as
 * argv[0], which getopt's messages begin with, and returns the exit status: 0 done, 1 the command's
 * own "no" (a gate that fails, a child that failed), 2 wrong usage or input that cannot be read.
 * Messages are one line on standard error, `lapse NAME: cause`. */
#ifndef LAPSE_CLI_COMMAND_H
#define LAPSE_CLI_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "output.h"

enum { LAPSE_STATUS_BAD = 2 };

int lapse_command_annotate(int argc, char **argv);
int lapse_command_diff(int argc, char **argv);
int lapse_command_events(int argc, char **argv);
int lapse_command_export(int argc, char **argv);
int lapse_command_fold(int argc, char **argv);
int lapse_command_import(int argc, char **argv);
int lapse_command_merge(int argc, char **argv);
int lapse_command_power(int argc, char **argv);
int lapse_command_record(int argc, char **argv);
int lapse_command_recover(int argc, char **argv);
int lapse_command_report(int argc, char **argv);
int lapse_command_symbolize(int argc, char **argv);
int lapse_command_view(int argc, char **argv);

/* From here on nothing on standard error steers a terminal. */
void lapse_guard_error_stream(void);

/* Say `lapse NAME: ...` on standard error. Returns LAPSE_STATUS_BAD. */
int lapse_complain(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A whole decimal number. Complains when `text` is none. */
bool lapse_option_number(const char *command, const char *option, const char *text,
                         uint64_t *value);

/* The answer to --help, on standard output. Returns the exit status. */
int lapse_show_help(const char *command, const char *text);

/* Flush what was written to standard output; a failure is a failure of the command. */
int lapse_finish_output(const char *command, struct lapse_output *output);

#endif
