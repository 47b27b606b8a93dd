/* SPDX-License-Identifier: MIT */
/* Readers of sample and edge lines, used by `lapse events` and `lapse fold`. They run over hundreds
 * of megabytes: one pass over each column, nothing is copied. */
#include "event_text.h"

#include <string.h>

#include "text.h"

bool lapse_decimal_parse(const char *at, const char *end, uint64_t *value)
{
    uint64_t sum = 0;
    if (at == end)
        return false;
    for (; at < end; at++) {
        unsigned digit = (unsigned char)*at - '0';
        if (digit > 9)
            return false;
        if (sum > (UINT64_MAX - digit) / 10)
            return false;
        sum = sum * 10 + digit;
    }
    *value = sum;
    return true;
}

/* The column at *at, which moves behind the tab; NULL at the end of the line. */
static char *column(char **at, char *end, size_t *size)
{
    char *first = *at, *tab;
    if (!first)
        return NULL;
    tab = memchr(first, '\t', (size_t)(end - first));
    *size = (size_t)((tab ? tab : end) - first);
    *at = tab ? tab + 1 : NULL;
    return first;
}

static const char *time_and_thread(char **at, char *end, uint64_t *time, const char **thread,
                                   size_t *thread_size)
{
    size_t size;
    char *text = column(at, end, &size);
    if (!text || !lapse_decimal_parse(text, text + size, time))
        return "the time is not a whole number";
    *thread = column(at, end, thread_size);
    if (!*thread || !*thread_size)
        return "no thread";
    return NULL;
}

const char *lapse_sample_parse(char *line, size_t size, struct lapse_sample_line *sample)
{
    char *at = line, *end = line + size;
    const char *cause = time_and_thread(&at, end, &sample->time, &sample->thread,
                                        &sample->thread_size);
    if (cause)
        return cause;
    sample->stack = column(&at, end, &sample->stack_size);
    if (!sample->stack)
        return "no stack (expected TIME TAB THREAD TAB STACK)";
    if (at)
        return "more than three columns";
    if (memchr(line, 0, size))
        return "a NUL byte";
    char *stack = sample->stack;
    size_t left = sample->stack_size;
    bool fresh = true;
    for (size_t i = 0; i < left; i++) { /* an empty frame is a slip of the writer */
        if (stack[i] == ';' && (fresh || i + 1 == left))
            return "a frame without a name";
        fresh = stack[i] == ';';
        i += stack[i] == '\\' && i + 1 < left;
    }
    return NULL;
}

static bool proof_or_bound(const char *text, size_t size)
{
    uint64_t value;
    return lapse_name_is(text, size, "inferred") || lapse_name_is(text, size, "ambiguous") ||
           lapse_name_is(text, size, "-") || lapse_decimal_parse(text, text + size, &value);
}

const char *lapse_edge_parse(char *line, size_t size, struct lapse_edge_line *edge)
{
    char *at = line, *end = line + size, *text;
    size_t length;
    uint64_t depth;
    const char *cause = time_and_thread(&at, end, &edge->time, &edge->thread, &edge->thread_size);
    if (cause)
        return cause;
    text = column(&at, end, &length);
    if (!text)
        return "no kind (expected TIME TAB THREAD TAB start|end TAB DEPTH TAB NAME)";
    edge->is_start = lapse_name_is(text, length, "start");
    if (!edge->is_start && !lapse_name_is(text, length, "end"))
        return "unknown kind of event (expected start or end)";
    text = column(&at, end, &length);
    if (!text || !lapse_decimal_parse(text, text + length, &depth) || depth > UINT32_MAX - 1)
        return "the depth is not a whole number";
    edge->depth = (uint32_t)depth;
    edge->name = column(&at, end, &edge->name_size);
    if (!edge->name || !edge->name_size)
        return "no name";
    for (int extra = 0; (text = column(&at, end, &length)); extra++)
        if (extra == 3 || !proof_or_bound(text, length))
            return "too many columns";
    if (memchr(edge->name, '\\', edge->name_size))
        edge->name_size = lapse_unescape_name(edge->name, edge->name_size);
    return memchr(edge->name, 0, edge->name_size) ? "a NUL byte" : NULL;
}

bool lapse_stack_next(char **stack, size_t *left, char **name, size_t *size)
{
    char *first = *stack;
    size_t length = 0;
    bool escaped = false;
    if (!*left)
        return false;
    while (length < *left && first[length] != ';') {
        if (first[length] == '\\' && length + 1 < *left) {
            escaped = true;
            length++;
        }
        length++;
    }
    *name = first;
    *size = escaped ? lapse_unescape_name(first, length) : length;
    *stack = first + length + (length < *left);
    *left -= length + (length < *left);
    return true;
}
