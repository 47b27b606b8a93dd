/* SPDX-License-Identifier: MIT */
/* Opening profiles for the commands that read them: messages, progress on a terminal, names. */
#ifndef LAPSE_CLI_INPUT_H
#define LAPSE_CLI_INPUT_H

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

#endif
