/* SPDX-License-Identifier: MIT */
/* Lines of a text file, one after the other, of any length. LF and CRLF end a line, the last one
 * may lack its end. Every text input of the command line is read through this. Offline only. */
#ifndef LAPSE_EXPORT_LINE_READER_H
#define LAPSE_EXPORT_LINE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lapse_lines {
    const char *path; /* the caller's */
    int fd;           /* -1: all is in memory */
    char *bytes;
    size_t at, end, capacity;
    uint64_t number;  /* of the line given out last, from 1 */
    bool ended, owned;
};

/* "-" is standard input. Returns 0 or a negative errno. */
int lapse_lines_open(struct lapse_lines *lines, const char *path);
/* Lines of an open file, from where it stands; the descriptor stays the caller's. */
int lapse_lines_attach(struct lapse_lines *lines, int fd, const char *path);
/* Lines of bytes in memory, which must be writable and outlive the reader. */
void lapse_lines_memory(struct lapse_lines *lines, char *bytes, size_t size);
void lapse_lines_close(struct lapse_lines *lines);

/* The first bytes, without taking them (fewer than 64 only at the end). 0 or a negative errno. */
int lapse_lines_peek(struct lapse_lines *lines, const char **bytes, size_t *size);

/* The next line without its end; writable, valid until the next call. Returns 1, 0 at the end of
 * the file, or a negative errno. */
int lapse_lines_next(struct lapse_lines *lines, char **line, size_t *size);

#endif
