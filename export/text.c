/* SPDX-License-Identifier: MIT */
/* Names in text outputs. Called at the end of a session inside the host and by every command.
 * Byte by byte, without allocation and without looking at the locale. */
#include "text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bytes of the valid UTF-8 sequence at `text`, 0 when it is none. Never reads beyond the NUL. */
static size_t sequence(const unsigned char *text)
{
    unsigned char first = text[0], low = 0x80, high = 0xbf;
    size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3
                : first < 0xf5 ? 4 : 0;
    if (first == 0xe0)
        low = 0xa0; /* shorter forms exist */
    else if (first == 0xed)
        high = 0x9f; /* surrogates */
    else if (first == 0xf0)
        low = 0x90;
    else if (first == 0xf4)
        high = 0x8f;
    for (size_t i = 1; i < size; i++) {
        if (text[i] < low || text[i] > high)
            return 0;
        low = 0x80;
        high = 0xbf;
    }
    return size;
}

static bool is_c1(const unsigned char *text, size_t size)
{
    return size == 2 && text[0] == 0xc2 && text[1] < 0xa0;
}

struct output {
    char *to;
    size_t size, used;
};

/* All of the bytes or none; after the first that does not fit nothing more is taken. */
static void put(struct output *out, const void *bytes, size_t count)
{
    if (count > out->size - out->used) {
        out->size = out->used;
        return;
    }
    memcpy(out->to + out->used, bytes, count);
    out->used += count;
}

static void put_hex(struct output *out, unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    char text[4] = { '\\', 'x', digits[byte >> 4], digits[byte & 15] };
    put(out, text, sizeof text);
}

/* A reader takes what follows the last space for the value: a name must not end like that. */
static void join_trailing_number(char *name, size_t size)
{
    size_t at = size;
    while (at && ((name[at - 1] >= '0' && name[at - 1] <= '9') || name[at - 1] == '.'))
        at--;
    if (at && at < size && name[at - 1] == ' ')
        name[at - 1] = '_';
}

size_t lapse_folded_name(char *to, size_t size, const char *name)
{
    const unsigned char *at = (const unsigned char *)name;
    struct output out = { to, size, 0 };
    while (*at) {
        size_t length = sequence(at);
        if (!length) {
            put(&out, "\xef\xbf\xbd", 3);
            at++;
            continue;
        }
        bool control = *at < 0x20 || *at == 0x7f || is_c1(at, length);
        if (control || *at == ' ') {
            if (out.used) /* leading ones are trimmed */
                put(&out, " ", 1);
        } else if (*at == ';') {
            put(&out, ":", 1);
        } else {
            if (*at == '#' && !out.used)
                put(&out, "_", 1);
            put(&out, at, length);
        }
        at += length;
    }
    while (out.used && to[out.used - 1] == ' ')
        out.used--;
    if (!out.used) {
        out.size = size;
        put(&out, "[unknown]", 9);
    }
    join_trailing_number(to, out.used);
    return out.used;
}

size_t lapse_escaped_name(char *to, size_t size, const char *name)
{
    const unsigned char *at = (const unsigned char *)name;
    struct output out = { to, size, 0 };
    while (*at) {
        size_t length = sequence(at);
        if (*at == ';')
            put(&out, "\\;", 2);
        else if (*at == '\\')
            put(&out, "\\\\", 2);
        else if (*at == '\t')
            put(&out, "\\t", 2);
        else if (*at == '\n')
            put(&out, "\\n", 2);
        else if (*at == '\r')
            put(&out, "\\r", 2);
        else if (*at < 0x20 || *at == 0x7f)
            put_hex(&out, *at);
        else
            put(&out, at, length ? length : 1);
        at += length ? length : 1;
    }
    return out.used;
}

size_t lapse_terminal_name(char *to, size_t size, const char *name)
{
    const unsigned char *at = (const unsigned char *)name;
    struct output out = { to, size, 0 };
    while (*at) {
        size_t length = sequence(at);
        if (*at < 0x20 || *at == 0x7f)
            put_hex(&out, *at);
        else if (is_c1(at, length))
            put_hex(&out, at[1]);
        else if (!length && *at < 0xa0) /* a bare C1 byte still moves some terminals */
            put_hex(&out, *at);
        else
            put(&out, at, length ? length : 1);
        at += length ? length : 1;
    }
    return out.used;
}

static int hex_digit(char character)
{
    if (character >= '0' && character <= '9')
        return character - '0';
    if (character >= 'a' && character <= 'f')
        return character - 'a' + 10;
    if (character >= 'A' && character <= 'F')
        return character - 'A' + 10;
    return -1;
}

/* What the backslash at name[at] stands for into *byte; returns its bytes, 1 when it is no escape. */
static size_t escape(const char *name, size_t at, size_t size, char *byte)
{
    static const char letters[] = ";tnr\\", values[] = ";\t\n\r\\";
    char next = at + 1 < size ? name[at + 1] : 0;
    const char *letter = next ? strchr(letters, next) : NULL;
    if (letter) {
        *byte = values[letter - letters];
        return 2;
    }
    if (next == 'x' && at + 3 < size) {
        int high = hex_digit(name[at + 2]), low = hex_digit(name[at + 3]);
        if (high >= 0 && low >= 0) {
            *byte = (char)(high * 16 + low);
            return 4;
        }
    }
    *byte = '\\';
    return 1;
}

size_t lapse_unescape_name(char *name, size_t size)
{
    char *first = memchr(name, '\\', size);
    if (!first)
        return size;
    size_t used = (size_t)(first - name);
    for (size_t at = used; at < size;) {
        char byte = name[at];
        at += byte == '\\' ? escape(name, at, size, &byte) : 1;
        name[used++] = byte;
    }
    return used;
}
