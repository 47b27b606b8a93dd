/* SPDX-License-Identifier: MIT */
/* Folded text, line by line: `root;...;leaf VALUE`. What follows the last space or tab is the value,
 * a whole number. Blank lines and comments, which begin with `#`, are passed over. Frames are taken out of a stack by lapse_stack_next
 * of event_text.h, which undoes `\;` and the other escapes of our own writers; text of other tools,
 * which know no escapes, seldom has a backslash and then keeps it unless it looks like one.
 * Used by `lapse merge` and by every command that takes folded text. Offline only. */
#ifndef LAPSE_EXPORT_FOLDED_READER_H
#define LAPSE_EXPORT_FOLDED_READER_H

#include "line_reader.h"

struct lapse_folded_line {
    char *stack; /* writable, valid until the next line is read */
    size_t size;
    uint64_t value;
};

/* The next line that has a stack. Returns 1, 0 at the end, a negative errno, or -EBADMSG for a bad
 * line, with *cause; the number of the line is lines->number, and reading can go on. */
int lapse_folded_next(struct lapse_lines *lines, struct lapse_folded_line *line,
                      const char **cause);

/* Does the stack begin with a marker for missing outer frames? Bytes of the marker and its `;`
 * (without one when nothing follows), else 0. */
size_t lapse_folded_marker(const char *stack, size_t size);

/* Frames of a stack, the marker not counted. */
uint32_t lapse_folded_depth(const char *stack, size_t size);

/* Where the innermost `depth` frames begin, 0 when there are no more than that. */
size_t lapse_folded_innermost(const char *stack, size_t size, uint32_t depth);

#endif
