/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

static char to[256];

typedef size_t writer(char *to, size_t size, const char *name);

static void expect(writer *write, const char *name, const char *wanted)
{
    size_t size = write(to, sizeof to - 1, name);
    to[size] = 0;
    cr_expect_str_eq(to, wanted);
}

Test(text, folded_names_survive_readers_without_escapes)
{
    expect(lapse_folded_name, "operator new(unsigned long)", "operator new(unsigned long)");
    expect(lapse_folded_name, "a;b", "a:b");
    expect(lapse_folded_name, " \ta\nb\r ", "a b");
    expect(lapse_folded_name, "", "[unknown]");
    expect(lapse_folded_name, " \t", "[unknown]");
    expect(lapse_folded_name, "#1", "_#1");
    expect(lapse_folded_name, " #1", "_#1");
    expect(lapse_folded_name, "line 42", "line_42");
    expect(lapse_folded_name, "at 1.5", "at_1.5");
    expect(lapse_folded_name, "a 1 2", "a 1_2");
    expect(lapse_folded_name, "42", "42");
    expect(lapse_folded_name, "gr\xc3\xb6\xc3\x9f" "e", "gr\xc3\xb6\xc3\x9f" "e");
    expect(lapse_folded_name, "x\xc2\x85y", "x y"); /* C1 */
}

Test(text, invalid_utf8_becomes_the_replacement_character)
{
    expect(lapse_folded_name, "a\xff" "b", "a\xef\xbf\xbd" "b");
    expect(lapse_folded_name, "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"); /* overlong */
    expect(lapse_folded_name, "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"); /* surrogate */
    expect(lapse_folded_name, "a\xe2\x82", "a\xef\xbf\xbd\xef\xbf\xbd"); /* cut at the end */
    expect(lapse_folded_name, "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80");
}

Test(text, output_is_never_cut_inside_a_sequence)
{
    for (size_t size = 0; size < 12; size++) {
        size_t used = lapse_folded_name(to, size, "a\xc3\xb6" "b\xe2\x82\xac" "c");
        cr_expect_leq(used, size);
        cr_expect(used == 0 || used == 1 || used == 3 || used == 4 || used == 7 || used == 8);
    }
}

Test(text, escaped_names_read_back)
{
    char all[256], name[256];
    for (int i = 1; i < 256; i++)
        all[i - 1] = (char)i;
    all[255] = 0;
    for (int start = 0; start < 255; start++) {
        char text[1024];
        size_t size = lapse_escaped_name(text, sizeof text, all + start);
        cr_expect_null(memchr(text, '\t', size));
        cr_expect_null(memchr(text, '\n', size));
        memcpy(name, all + start, 256 - (size_t)start);
        size = lapse_unescape_name(text, size);
        cr_expect(size == strlen(name) && !memcmp(text, name, size));
    }
    expect(lapse_escaped_name, "a;b\\c\td\n\x01", "a\\;b\\\\c\\td\\n\\x01");
}

Test(text, what_is_no_escape_stays)
{
    char text[] = "\\q\\x1\\xzz\\";
    size_t size = lapse_unescape_name(text, strlen(text));
    cr_expect(size == 10 && !memcmp(text, "\\q\\x1\\xzz\\", size));
}

Test(text, terminals_get_no_control_characters)
{
    expect(lapse_terminal_name, "a\x1b[31m;\\", "a\\x1b[31m;\\");
    expect(lapse_terminal_name, "\xc2\x9b" "2J\x7f\x9b", "\\x9b2J\\x7f\\x9b");
    expect(lapse_terminal_name, "\xc3\xb6\xff", "\xc3\xb6\xff");
}
