/* SPDX-License-Identifier: MIT */
/* A server for one file on this machine alone: `lapse view` shows a page with it. It listens on
 * 127.0.0.1, on a port of the kernel's choice, and answers one path with 128 random bits in it.
 * Requests that name another host are refused, so a web page elsewhere cannot reach it by a name
 * that it points at this machine. One thread; no reply depends on what another client does. */
#ifndef LAPSE_CLI_LOOPBACK_H
#define LAPSE_CLI_LOOPBACK_H

#include <stdint.h>

struct lapse_loopback {
    int listener;
    uint16_t port;
    char path[40];    /* "/" 32 hex digits "/" */
    char address[80]; /* all of it, for people and browsers */
};

/* Begin to listen. Returns 0 or a negative errno. */
int lapse_loopback_open(struct lapse_loopback *server);
/* Serve the file until `stop` (a descriptor) is readable. Returns 0 or a negative errno. */
int lapse_loopback_run(struct lapse_loopback *server, int file, int stop);
void lapse_loopback_close(struct lapse_loopback *server);

#endif
