/* SPDX-License-Identifier: MIT */
/* Lines of source files, for annotate and report --lines. Keeps one file. */
#ifndef LAPSE_CLI_SOURCE_TEXT_H
#define LAPSE_CLI_SOURCE_TEXT_H

#include <stddef.h>
#include <stdint.h>

struct lapse_source_text {
    char *path;  /* of the file that is kept */
    char *bytes; /* NULL: it could not be read */
    char **lines;
    uint32_t line_count;
};

/* Text of a line (from 1) without its end, NULL when the file is not there or too short. Valid until
 * the next call. */
const char *lapse_source_line(struct lapse_source_text *source, const char *path, uint32_t line);
void lapse_source_text_free(struct lapse_source_text *source);

#endif
