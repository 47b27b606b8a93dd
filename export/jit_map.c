/* SPDX-License-Identifier: MIT */
/* Reader of perf maps (jit_code.h): whole lines "START SIZE name", hexadecimal. */
#include "jit_code.h"

#include <errno.h>
#include <string.h>

enum { BUFFER_BYTES = 1 << 16 };

static const char *take_hex(const char *at, const char *end, uint64_t *value)
{
    if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
        at += 2;
    for (*value = 0; at < end; at++) {
        unsigned char c = (unsigned char)*at | 0x20;
        if (*at >= '0' && *at <= '9')
            *value = *value << 4 | (uint64_t)(*at - '0');
        else if (c >= 'a' && c <= 'f')
            *value = *value << 4 | (uint64_t)(c - 'a' + 10);
        else
            break;
    }
    return at;
}

static int take_line(struct lapse_jit_code *code, const char *line, const char *end)
{
    struct lapse_jit_load load = { 0 };
    const char *at = take_hex(line, end, &load.start);
    if (at == line || at == end || *at != ' ')
        return 0;
    const char *size_text = at + 1;
    at = take_hex(size_text, end, &load.size);
    if (at == size_text || end - at < 2 || *at != ' ' || memchr(at, 0, (size_t)(end - at)))
        return 0;
    size_t name_size = (size_t)(end - at - 1);
    return lapse_jit_code_add(code, &load, at + 1,
                              name_size < LAPSE_JIT_NAME_MAX ? (uint32_t)name_size : LAPSE_JIT_NAME_MAX);
}

static int take_lines(struct lapse_jit_code *code, const struct lapse_jit_source *source, char *buffer)
{
    uint64_t offset = 0;
    size_t held = 0;
    bool skipping = false; /* a line longer than the buffer */
    for (;;) {
        long got = source->read(source->context, buffer + held, BUFFER_BYTES - held, offset);
        if (got <= 0)
            return (int)got; /* without its newline the last line may still be being written */
        offset += (uint64_t)got;
        if (offset > source->bytes_max)
            return -EFBIG;
        held += (size_t)got;
        char *line = buffer, *end;
        while ((end = memchr(line, '\n', held - (size_t)(line - buffer)))) {
            int error = skipping ? 0 : take_line(code, line, end);
            if (error)
                return error;
            skipping = false;
            line = end + 1;
        }
        held -= (size_t)(line - buffer);
        memmove(buffer, line, held);
        if (held == BUFFER_BYTES) {
            skipping = true;
            held = 0;
        }
    }
}

int lapse_jit_code_read_map(struct lapse_jit_code *code, const struct lapse_jit_source *source)
{
    const struct lapse_allocator *allocator = code->allocator;
    char *buffer = allocator->resize(allocator->context, NULL, 0, BUFFER_BYTES);
    if (!buffer)
        return -ENOMEM;
    int error = take_lines(code, source, buffer);
    allocator->resize(allocator->context, buffer, BUFFER_BYTES, 0);
    return error ? error : lapse_jit_code_settle(code);
}
