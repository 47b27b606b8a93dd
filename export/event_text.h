/* SPDX-License-Identifier: MIT */
/* Text of samples and of edges, column by column. Offline only.
 *
 *   samples  TIME TAB THREAD TAB STACK         root first, joined by `;`, empty: no frames
 *   edges    TIME TAB THREAD TAB start|end TAB DEPTH TAB NAME [TAB PROOF] [TAB AFTER TAB BEFORE]
 *
 * PROOF is `inferred` or `ambiguous`. Names are escaped as lapse_escaped_name does. A thread is any
 * text without a tab. A first frame [truncated] or [unwind failed] makes a cut stack. */
#ifndef LAPSE_EXPORT_EVENT_TEXT_H
#define LAPSE_EXPORT_EVENT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lapse_sample_line {
    uint64_t time;
    const char *thread;
    size_t thread_size;
    char *stack;
    size_t stack_size;
};

struct lapse_edge_line {
    uint64_t time;
    const char *thread;
    size_t thread_size;
    bool is_start;
    uint32_t depth;
    char *name; /* unescaped in place */
    size_t name_size;
};

/* Both return NULL, or what is wrong with the line; the line is written to. */
const char *lapse_sample_parse(char *line, size_t size, struct lapse_sample_line *sample);
const char *lapse_edge_parse(char *line, size_t size, struct lapse_edge_line *edge);

/* Take the next frame off *stack (of *left bytes), unescaped in place. Returns false at the end. */
bool lapse_stack_next(char **stack, size_t *left, char **name, size_t *size);

/* All of [at, end) as a decimal number. Returns false when it is none or too large. */
bool lapse_decimal_parse(const char *at, const char *end, uint64_t *value);

#define LAPSE_TRUNCATED_NAME "[truncated]"
#define LAPSE_UNWIND_FAILED_NAME "[unwind failed]"

static inline bool lapse_name_is(const char *name, size_t size, const char *literal)
{
    return size == __builtin_strlen(literal) && !__builtin_memcmp(name, literal, size);
}

#endif
