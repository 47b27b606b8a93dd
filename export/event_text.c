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

/* The column at *at, which moves behind the tab; NULL at the end of the line. Most columns have a
 * few bytes: a loop is done before memchr has begun. */
static char *column(char **at, char *end, size_t *size)
{
    char *first = *at, *tab = first;
    if (!first)
        return NULL;
    while (tab < end && *tab != '\t')
        tab++;
    *size = (size_t)(tab - first);
    *at = tab < end ? tab + 1 : NULL;
    return first;
}

/* A number and the tab behind it. */
static bool number_column(char **at, char *end, uint64_t *value)
{
    enum { SAFE_DIGITS = 19 }; /* do not overflow */
    char *digit = *at, *safe = end - digit < SAFE_DIGITS ? end : digit + SAFE_DIGITS;
    uint64_t sum = 0;
    while (digit < safe && (unsigned char)(*digit - '0') <= 9)
        sum = sum * 10 + (unsigned char)(*digit++ - '0');
    if (digit < end && digit > *at && *digit == '\t') {
        *value = sum;
        *at = digit + 1;
        return true;
    }
    size_t size = 0;
    char *text = column(at, end, &size);
    return lapse_decimal_parse(text, text + size, value);
}

/* Has the word a tab, NUL or backslash? All of its bytes are looked at together. */
static bool has_mark(const char *at)
{
    const uint64_t ones = 0x0101010101010101u, highs = 0x8080808080808080u;
    uint64_t word;
    memcpy(&word, at, sizeof word);
    uint64_t tab = word ^ ones * '\t', backslash = word ^ ones * '\\';
    return (((word - ones) & ~word) | ((tab - ones) & ~tab) | ((backslash - ones) & ~backslash)) &
           highs;
}

/* Is [at, end) the last column, and a name as it stands? */
static bool plain_rest(const char *at, const char *end)
{
    if (end - at < 8) {
        for (; at < end; at++)
            if (*at == '\t' || *at == '\\' || !*at)
                return false;
        return true;
    }
    for (; end - at > 8; at += 8)
        if (has_mark(at))
            return false;
    return !has_mark(end - 8); /* again what was seen before, in part */
}

static const char *time_and_thread(char **at, char *end, uint64_t *time, const char **thread,
                                   size_t *thread_size)
{
    if (!number_column(at, end, time))
        return "the time is not a whole number";
    *thread = column(at, end, thread_size); /* *at is NULL: there is none */
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
    if (!at || !number_column(&at, end, &depth) || depth > UINT32_MAX - 1)
        return "the depth is not a whole number";
    edge->depth = (uint32_t)depth;
    if (at && at < end && plain_rest(at, end)) {
        edge->name = at;
        edge->name_size = (size_t)(end - at);
        return NULL;
    }
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
