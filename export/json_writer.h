/* SPDX-License-Identifier: MIT */
/* JSON strings for the exporters: `"`, `\` and control characters escaped, invalid UTF-8 replaced by
 * U+FFFD, `</`, `<!`, a `<` at the end and U+2028/2029 escaped too, so that the text is inert inside a
 * script element.
 * Offline only. */
#ifndef LAPSE_EXPORT_JSON_WRITER_H
#define LAPSE_EXPORT_JSON_WRITER_H

#include "output.h"

/* The text with quotes around it. */
void lapse_json_string(struct lapse_output *output, const char *text);
/* The same without quotes, for strings that are put together from parts. */
void lapse_json_escaped(struct lapse_output *output, const char *text);

/* Bytes of the valid UTF-8 sequence at `text` (NUL-terminated), 0 when there is none. */
size_t lapse_utf8_sequence(const char *text);

/* Append the text with invalid UTF-8 replaced, nothing else changed. */
void lapse_output_utf8(struct lapse_output *output, const char *text);

#endif
