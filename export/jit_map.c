/* SPDX-License-Identifier: MIT */
/* Reader of perf maps for the command line (jit_code.h): whole lines "START SIZE name", hexadecimal. */
#include "jit_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER_BYTES = 1 << 16, NAME_BYTES = 4096 };
#define FILE_BYTES_MAX (UINT64_C(1) << 30)

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
                              name_size < NAME_BYTES ? (uint32_t)name_size : NAME_BYTES);
}

int lapse_jit_code_read_map(struct lapse_jit_code *code, int fd)
{
    char *buffer = malloc(BUFFER_BYTES);
    uint64_t offset = 0;
    size_t held = 0;
    bool skipping = false; /* a line longer than the buffer */
    int error = buffer ? 0 : -ENOMEM;
    while (!error && offset < FILE_BYTES_MAX) {
        ssize_t got = pread(fd, buffer + held, BUFFER_BYTES - held, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break; /* without its newline the last line may still be being written */
        offset += (uint64_t)got;
        held += (size_t)got;
        char *line = buffer, *end;
        while (!error && (end = memchr(line, '\n', held - (size_t)(line - buffer)))) {
            error = skipping ? 0 : take_line(code, line, end);
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
    free(buffer);
    return error;
}
