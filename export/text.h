/* SPDX-License-Identifier: MIT */
/* Names in text outputs: what is escaped how. Used in the host as well: no allocation, no locale. */
#ifndef LAPSE_EXPORT_TEXT_H
#define LAPSE_EXPORT_TEXT_H

#include <stddef.h>

/* A frame name as folded text wants it (docs: no reader knows an escape): `;` becomes `:`, control
 * characters become spaces, both ends trimmed, invalid UTF-8 becomes U+FFFD, an empty name becomes
 * [unknown], a leading `#` is kept apart by `_`, and a trailing " 123" becomes "_123".
 * Writes at most `size` bytes, never cut inside a UTF-8 sequence; returns the bytes written. */
size_t lapse_folded_name(char *to, size_t size, const char *name);

/* A name in our own event and sample text, where it can be read back exactly: `;` tab, newline, CR
 * and backslash become \; \t \n \r \\, other control characters \xNN. */
size_t lapse_escaped_name(char *to, size_t size, const char *name);

/* A name for a terminal: control characters (C0, C1, DEL) shown as \xNN, nothing else changed. */
size_t lapse_terminal_name(char *to, size_t size, const char *name);

/* Undo lapse_escaped_name in place; returns the new length. */
size_t lapse_unescape_name(char *name, size_t size);

#endif
