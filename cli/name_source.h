/* SPDX-License-Identifier: MIT */
/* Where the commands get names and lines beyond what a recording holds: one offline symbolizer for
 * the whole command, opened at its first use, and the options that all commands share for it:
 * --symfs=DIR, --debug-dir=DIR, --demangle=full|simple|none. */
#ifndef LAPSE_CLI_NAME_SOURCE_H
#define LAPSE_CLI_NAME_SOURCE_H

#include "offline.h"

/* Take the shared options out of a command's arguments (up to `--`). False after a complaint. */
bool lapse_name_source_options(const char *command, int *argc, char **argv);

/* NULL when memory is short. Valid to the end of the process. */
struct lapse_offline *lapse_name_source(void);

/* Say once each what the symbolizer refused. */
void lapse_name_source_notes(const char *command);

#endif
