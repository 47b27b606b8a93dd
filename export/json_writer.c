/* SPDX-License-Identifier: MIT */
/* See json_writer.h. UTF-8 as in RFC 3629: no overlong forms, no surrogates, nothing above 10ffff. */
#include "json_writer.h"

#include <stdbool.h>

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

static int continues(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t lapse_utf8_sequence(const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    if (at[0] < 0x80)
        return 1;
    if (at[0] < 0xc2 || !continues(text[1]))
        return 0;
    if (at[0] < 0xe0)
        return 2;
    if (at[0] < 0xf0) {
        int overlong = at[0] == 0xe0 && at[1] < 0xa0, surrogate = at[0] == 0xed && at[1] >= 0xa0;
        return !overlong && !surrogate && continues(text[2]) ? 3 : 0;
    }
    if (at[0] > 0xf4 || (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90))
        return 0;
    return continues(text[2]) && continues(text[3]) ? 4 : 0;
}

static void put_unicode_escape(struct lapse_output *output, unsigned value)
{
    char escape[6] = { '\\', 'u', '0', '0', "0123456789abcdef"[value >> 4 & 15],
                       "0123456789abcdef"[value & 15] };
    escape[2] = "0123456789abcdef"[value >> 12 & 15];
    escape[3] = "0123456789abcdef"[value >> 8 & 15];
    lapse_output_bytes(output, escape, sizeof escape);
}

static void put_special(struct lapse_output *output, char c)
{
    switch (c) {
    case '"': lapse_output_text(output, "\\\""); break;
    case '\\': lapse_output_text(output, "\\\\"); break;
    case '\n': lapse_output_text(output, "\\n"); break;
    case '\t': lapse_output_text(output, "\\t"); break;
    case '\r': lapse_output_text(output, "\\r"); break;
    default: put_unicode_escape(output, (unsigned char)c); break;
    }
}

/* `</` and `<!` mean something inside a script element; the `<` of templates does not, unless it is
 * the last and something is put behind it. */
static bool is_plain(const char *at)
{
    unsigned char c = (unsigned char)*at;
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' &&
           !(c == '<' && (at[1] == '/' || at[1] == '!' || !at[1]));
}

/* Length of the run that needs no change. */
static size_t plain_run(const char *text)
{
    size_t size = 0;
    while (is_plain(text + size))
        size++;
    return size;
}

void lapse_json_escaped(struct lapse_output *output, const char *text)
{
    for (;;) {
        size_t size = plain_run(text);
        lapse_output_bytes(output, text, size);
        text += size;
        if (!*text)
            return;
        if ((unsigned char)*text < 0x80) {
            put_special(output, *text++);
            continue;
        }
        size = lapse_utf8_sequence(text);
        if (!size) {
            lapse_output_bytes(output, replacement, 3);
            text++;
        } else if (size == 3 && !memcmp(text, "\xe2\x80", 2) && (text[2] & ~1) == (char)0xa8) {
            put_unicode_escape(output, 0x2000u | (unsigned char)(text[2] - '\x80'));
            text += 3;
        } else {
            lapse_output_bytes(output, text, size);
            text += size;
        }
    }
}

void lapse_json_string(struct lapse_output *output, const char *text)
{
    lapse_output_char(output, '"');
    lapse_json_escaped(output, text);
    lapse_output_char(output, '"');
}

void lapse_output_utf8(struct lapse_output *output, const char *text)
{
    while (*text) {
        size_t size = lapse_utf8_sequence(text);
        if (size) {
            lapse_output_bytes(output, text, size);
            text += size;
        } else {
            lapse_output_bytes(output, replacement, 3);
            text++;
        }
    }
}
