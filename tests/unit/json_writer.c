/* SPDX-License-Identifier: MIT */
#include "json_writer.h"

#include <criterion/criterion.h>
#include <errno.h>

static struct lapse_output output;

static void setup(void)
{
    cr_assert_eq(lapse_output_init(&output, NULL), 0);
}

static void teardown(void)
{
    lapse_output_fini(&output);
}

TestSuite(json_writer, .init = setup, .fini = teardown);

static void expect(const char *wanted)
{
    lapse_output_char(&output, '\0');
    cr_expect_str_eq(output.bytes, wanted);
    output.size = 0;
}

Test(json_writer, quotes_backslashes_and_controls_are_escaped)
{
    lapse_json_string(&output, "a\"b\\c\n\t\r\x01\x7f");
    expect("\"a\\\"b\\\\c\\n\\t\\r\\u0001\\u007f\"");
}

Test(json_writer, a_script_end_is_inert)
{
    lapse_json_string(&output, "</script>");
    expect("\"\\u003c/script>\"");
    lapse_json_string(&output, "<!--<script>");
    expect("\"\\u003c!--<script>\"");
}

Test(json_writer, templates_stay)
{
    lapse_json_string(&output, "map<int, set<long>>::operator<=");
    expect("\"map<int, set<long>>::operator<=\"");
    lapse_json_string(&output, "operator<"); /* its user may go on with a slash */
    expect("\"operator\\u003c\"");
}

Test(json_writer, valid_utf8_stays)
{
    lapse_json_string(&output, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    expect("\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

Test(json_writer, line_separators_are_escaped)
{
    lapse_json_string(&output, "\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa");
    expect("\"\\u2028\\u2029\xe2\x80\xaa\"");
}

Test(json_writer, each_invalid_byte_is_replaced)
{
    /* a stray continuation, an overlong slash, a surrogate, a cut sequence */
    lapse_json_string(&output, "\x80|\xc0\xaf|\xed\xa0\x80|\xe2\x82");
    expect("\"\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|"
           "\xef\xbf\xbd\xef\xbf\xbd\"");
}

Test(json_writer, numbers)
{
    lapse_output_uint(&output, 0);
    lapse_output_char(&output, ' ');
    lapse_output_uint(&output, UINT64_MAX);
    lapse_output_char(&output, ' ');
    lapse_output_thousandths(&output, 12345);
    lapse_output_char(&output, ' ');
    lapse_output_thousandths(&output, 12000);
    lapse_output_char(&output, ' ');
    lapse_output_thousandths(&output, 1050);
    lapse_output_char(&output, ' ');
    lapse_output_millionths(&output, 1);
    expect("0 18446744073709551615 12.345 12 1.05 0.000001");
}

Test(json_writer, memory_grows)
{
    for (int i = 0; i < 100000; i++)
        lapse_output_text(&output, "0123456789");
    cr_expect_eq(lapse_output_finish(&output), 0);
    cr_expect_eq(output.size, 1000000);
}

Test(json_writer, a_failed_write_sticks)
{
    struct lapse_output full;
    FILE *file = fopen("/dev/full", "w");
    cr_assert_not_null(file);
    cr_assert_eq(lapse_output_init(&full, file), 0);
    for (int i = 0; i < 100000; i++)
        lapse_output_text(&full, "0123456789");
    cr_expect_eq(lapse_output_finish(&full), -ENOSPC);
    lapse_output_fini(&full);
    fclose(file);
}
