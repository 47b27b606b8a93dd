/* SPDX-License-Identifier: MIT */
/* What lapse says on stderr: one line by one write(2), `lapse: ` first, each cause once, and nothing
 * unless output is lost or LAPSE_VERBOSE asks. A file that the host has put at the number of an error output
 * which it closed, or never had, is left alone. Also text without stdio and locale. Any thread of ours
 * or the host's outside the handler. */
#ifndef LAPSE_RUNTIME_MESSAGE_H
#define LAPSE_RUNTIME_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Text put together in a caller's buffer; what does not fit is cut. Always ends in NUL. */
struct lapse_text {
    char *bytes;
    size_t size, capacity;
};

void lapse_text_bytes(struct lapse_text *text, const char *bytes, size_t size);
void lapse_text_string(struct lapse_text *text, const char *string);
void lapse_text_number(struct lapse_text *text, uint64_t number);
void lapse_text_hex(struct lapse_text *text, uint64_t number); /* 0x first */

enum lapse_message {
    LAPSE_MESSAGE_OPTION,  /* an option was refused: not profiled */
    LAPSE_MESSAGE_SETUP,   /* set-up failed: not profiled */
    LAPSE_MESSAGE_SPOOL,   /* the spool cannot be written */
    LAPSE_MESSAGE_OUTPUT,  /* an output cannot be written */
    LAPSE_MESSAGE_CLOCK,   /* another clock than asked for */
    LAPSE_MESSAGE_RING,    /* words in the ring that no handler wrote */
    LAPSE_MESSAGE_BUDGET,  /* the exit budget was not enough */
    LAPSE_MESSAGE_SIGNAL,  /* the host has the signal */
    LAPSE_MESSAGE_INFO,    /* only with LAPSE_VERBOSE; may repeat */
};

void lapse_message_configure(bool quiet, bool verbose);
/* Up to four parts make the line; NULL parts are left out. */
void lapse_message(enum lapse_message cause, const char *a, const char *b, const char *c,
                   const char *d);
/* Words for an errno without the C library's tables; "error N" where there are none. */
const char *lapse_error_text(int error);

#endif
