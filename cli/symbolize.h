/* SPDX-License-Identifier: MIT */
/* lapse symbolize in parts: symbolize.c reads options and replaces files, symbolize_session.c finds
 * what a session needs and writes it as chunks. */
#ifndef LAPSE_CLI_SYMBOLIZE_H
#define LAPSE_CLI_SYMBOLIZE_H

#include <stdio.h>

#include "offline.h"
#include "recording.h"

struct lapse_symbolize {
    struct lapse_recording *recording;
    struct lapse_offline *offline;
    FILE *to;
    bool progress;               /* on a terminal */
    /* So far, all sessions: how many have a name and a line now, and had before. */
    uint64_t addresses, named, named_before, lines, lines_before;
};

/* Append the names of all sessions' addresses to `to`. Returns 0 or a negative errno. */
int lapse_symbolize_sessions(struct lapse_symbolize *symbolize);

#endif
