/* SPDX-License-Identifier: MIT */
/* Opening profiles for the commands that read them: messages, progress on a terminal, names. */
#ifndef LAPSE_CLI_INPUT_H
#define LAPSE_CLI_INPUT_H

#include "line_reader.h"
#include "profile.h"

struct lapse_input_options {
    bool lines, no_inlines; /* as in struct lapse_profile_options */
    bool quiet;             /* no progress */
    bool no_symbols;        /* names of the recording alone: files and debug information are not read */
};

/* Returns 0, or LAPSE_STATUS_BAD after a message. */
int lapse_input_open(const char *command, struct lapse_profile **profile, char *const *paths, int count,
                     const struct lapse_input_options *options);
void lapse_input_close(struct lapse_profile *profile);
/* Before a message in the middle of a pass over the samples. */
void lapse_input_hide_progress(void);

/* A recording that `lines` has begun to read from a pipe: all of it goes into a temporary file, since
 * its reader goes back and forth. Returns 0, the file's path and its descriptor, or a negative errno. */
enum { LAPSE_SPOOL_PATH = 32 };
int lapse_input_spool(struct lapse_lines *lines, char path[LAPSE_SPOOL_PATH], int *fd);

/* Standard input can be read once. Complains, and returns false, when it is named twice. */
bool lapse_inputs_differ(const char *command, const char *const *paths, int count);

/* Would writing to `output` destroy what is to be read? Complains when it is one of the inputs. */
bool lapse_output_is_input(const char *command, const char *output, const char *const *paths,
                           int count);

#endif
