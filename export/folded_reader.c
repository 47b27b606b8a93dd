/* SPDX-License-Identifier: MIT */
/* Folded text, line by line. See folded_reader.h. */
#include "folded_reader.h"

#include <errno.h>
#include <string.h>

#include "event_text.h"

/* NULL, or what is wrong with the line. */
static const char *parse(char *text, size_t size, struct lapse_folded_line *line)
{
    size_t at = size;
    while (at && text[at - 1] != ' ' && text[at - 1] != '\t')
        at--;
    if (!at)
        return "no value after the stack (expected STACK SPACE VALUE)";
    if (!lapse_decimal_parse(text + at, text + size, &line->value))
        return "the value is not a whole number";
    if (at == 1)
        return "no stack before the value";
    line->stack = text;
    line->size = at - 1; /* further spaces belong to the name of the leaf */
    return NULL;
}

static bool is_blank(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] != ' ' && text[i] != '\t')
            return false;
    return true;
}

int lapse_folded_next(struct lapse_lines *lines, struct lapse_folded_line *line,
                      const char **cause)
{
    char *text;
    size_t size;
    int status;
    while ((status = lapse_lines_next(lines, &text, &size)) > 0) {
        if (is_blank(text, size) || *text == '#') /* a comment */
            continue;
        *cause = parse(text, size, line);
        return *cause ? -EBADMSG : 1;
    }
    return status;
}

static size_t begins_with(const char *stack, size_t size, const char *name)
{
    size_t length = strlen(name);
    if (size < length || memcmp(stack, name, length))
        return 0;
    if (size == length)
        return length;
    return stack[length] == ';' ? length + 1 : 0;
}

size_t lapse_folded_marker(const char *stack, size_t size)
{
    if (!size || *stack != '[')
        return 0;
    size_t marker = begins_with(stack, size, LAPSE_TRUNCATED_NAME);
    return marker ? marker : begins_with(stack, size, LAPSE_UNWIND_FAILED_NAME);
}

/* Simple on purpose: at -O3, which this file is built with, it becomes vector code. */
static uint32_t count_bytes(const char *bytes, size_t size, char wanted)
{
    uint32_t count = 0;
    for (size_t i = 0; i < size; i++)
        count += bytes[i] == wanted;
    return count;
}

uint32_t lapse_folded_depth(const char *stack, size_t size)
{
    size_t at = lapse_folded_marker(stack, size);
    if (at == size)
        return 0;
    if (!memchr(stack, '\\', size))
        return 1 + count_bytes(stack + at, size - at, ';');
    uint32_t depth = 1;
    for (; at < size; at++) {
        depth += stack[at] == ';';
        at += stack[at] == '\\';
    }
    return depth;
}

size_t lapse_folded_innermost(const char *stack, size_t size, uint32_t depth)
{
    uint32_t above = lapse_folded_depth(stack, size);
    size_t at = lapse_folded_marker(stack, size);
    if (above <= depth)
        return 0;
    for (above -= depth; above && at < size; at++) {
        above -= stack[at] == ';';
        at += stack[at] == '\\';
    }
    return at;
}
