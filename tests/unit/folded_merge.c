/* SPDX-License-Identifier: MIT */
/* Merge of folded text: sums, order, grouping, parts that spill, depth limits, bad lines. Random
 * files are judged by a map of stacks kept as a plain list. */
#include "folded_merge.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILES = 5 };

static char folder[] = "/tmp/lapse-test-merge-XXXXXX";
static char paths[FILES + 2][64];

static void begin(void)
{
    cr_assert_not_null(mkdtemp(folder));
    for (int i = 0; i < FILES + 2; i++)
        snprintf(paths[i], sizeof paths[i], "%s/%d", folder, i);
}

static void end(void)
{
    for (int i = 0; i < FILES + 2; i++)
        unlink(paths[i]);
    rmdir(folder);
}

TestSuite(folded_merge, .init = begin, .fini = end);

static void put(int file, const char *text)
{
    FILE *to = fopen(paths[file], "w");
    cr_assert_not_null(to);
    fputs(text, to);
    fclose(to);
}

/* The merge of some files; freed by the caller. */
static char *merged(struct lapse_folded_merge_options options, const int *files, int count)
{
    struct lapse_folded_merge *merge;
    struct lapse_output output;
    cr_assert_eq(lapse_folded_merge_create(&merge, &options), 0);
    for (int i = 0; i < count; i++)
        cr_assert_eq(lapse_folded_merge_file(merge, paths[files[i]]), 0, "%s",
                     lapse_folded_merge_error(merge));
    cr_assert_eq(lapse_output_init(&output, NULL), 0);
    cr_assert_eq(lapse_folded_merge_write(merge, &output), 0);
    lapse_output_char(&output, 0);
    char *text = strdup(output.bytes);
    lapse_output_fini(&output);
    lapse_folded_merge_destroy(merge);
    return text;
}

static void expect(struct lapse_folded_merge_options options, int count, const char *wanted)
{
    static const int files[] = { 0, 1, 2, 3, 4 };
    char *text = merged(options, files, count);
    cr_expect_str_eq(text, wanted);
    free(text);
}

Test(folded_merge, sums_equal_stacks)
{
    put(0, "a 1\na;b 2\n");
    put(1, "a 10\na b 5\nb 1");
    expect((struct lapse_folded_merge_options){ 0 }, 2, "a 11\na b 5\na;b 2\nb 1\n");
}

Test(folded_merge, order_of_stacks_is_by_bytes_not_by_line)
{
    put(0, "a 9\na 10;x 1\na;x 2\n"); /* as lines, the second would come first */
    expect((struct lapse_folded_merge_options){ 0 }, 1, "a 9\na 10;x 1\na;x 2\n");
}

Test(folded_merge, unsorted_repeated_crlf_blank)
{
    put(0, "b 1\r\n\r\na;c 2\r\nb 3\n  \na;c\t4");
    expect((struct lapse_folded_merge_options){ 0 }, 1, "a;c 6\nb 4\n");
}

Test(folded_merge, nothing)
{
    put(0, "");
    put(1, "\n");
    expect((struct lapse_folded_merge_options){ 0 }, 2, "");
}

Test(folded_merge, cut_stacks_stay_apart_and_depth_brings_them_together)
{
    put(0, "[truncated];c;d 5\n");
    put(1, "a;b;c;d 7\na;x 1\n");
    expect((struct lapse_folded_merge_options){ 0 }, 2,
           "[truncated];c;d 5\na;b;c;d 7\na;x 1\n");
    expect((struct lapse_folded_merge_options){ .depth = 2 }, 2, "[truncated];c;d 12\na;x 1\n");
    expect((struct lapse_folded_merge_options){ .depth = 1 }, 2, "[truncated];d 12\n[truncated];x 1\n");
}

Test(folded_merge, an_escaped_separator_is_no_frame)
{
    put(0, "a;b\\;c;d 1\n");
    expect((struct lapse_folded_merge_options){ .depth = 2 }, 1, "[truncated];b\\;c;d 1\n");
}

Test(folded_merge, says_which_limits_differ)
{
    struct lapse_folded_merge *merge;
    struct lapse_folded_limits limits;
    put(0, "[truncated];b;c;d 1\n");
    put(1, "[truncated];c;d 1\n");
    cr_assert_eq(lapse_folded_merge_create(&merge, &(struct lapse_folded_merge_options){ 0 }), 0);
    lapse_folded_merge_file(merge, paths[1]);
    cr_expect_not(lapse_folded_merge_limits(merge, &limits));
    lapse_folded_merge_file(merge, paths[0]);
    cr_assert(lapse_folded_merge_limits(merge, &limits));
    cr_expect(limits.low == 2 && limits.high == 3);
    cr_expect_str_eq(limits.low_path, paths[1]);
    lapse_folded_merge_destroy(merge);
}

static void expect_refused(const char *text, const char *cause)
{
    struct lapse_folded_merge *merge;
    char wanted[256];
    put(0, text);
    snprintf(wanted, sizeof wanted, "%s%s", paths[0], cause);
    cr_assert_eq(lapse_folded_merge_create(&merge, &(struct lapse_folded_merge_options){ 0 }), 0);
    cr_expect_lt(lapse_folded_merge_file(merge, paths[0]), 0);
    cr_expect_str_eq(lapse_folded_merge_error(merge), wanted);
    lapse_folded_merge_destroy(merge);
}

Test(folded_merge, bad_lines_are_named)
{
    expect_refused("a 1\nb\n", ":2: no value after the stack (expected STACK SPACE VALUE)");
    expect_refused("a 1.5\n", ":1: the value is not a whole number");
    expect_refused("a 99999999999999999999\n", ":1: the value is not a whole number");
    expect_refused("a 1\n 7\n", ":2: no stack before the value");
}

Test(folded_merge, bad_lines_are_counted_once)
{
    struct lapse_folded_merge *merge;
    struct lapse_folded_merge_options options = { .skip_bad = true };
    struct lapse_output output;
    put(0, "b 1\nbad\na 2\nworse\n");
    put(1, "a 1\nbad\nb 2\n");
    cr_assert_eq(lapse_folded_merge_create(&merge, &options), 0);
    cr_expect_eq(lapse_folded_merge_file(merge, paths[0]), 0);
    cr_expect_eq(lapse_folded_merge_file(merge, paths[1]), 0);
    lapse_output_init(&output, NULL);
    cr_expect_eq(lapse_folded_merge_write(merge, &output), 0);
    lapse_output_char(&output, 0);
    cr_expect_str_eq(output.bytes, "a 3\nb 3\n");
    cr_expect_eq(lapse_folded_merge_bad_lines(merge), 3);
    lapse_output_fini(&output);
    lapse_folded_merge_destroy(merge);
}

Test(folded_merge, a_sum_that_does_not_fit_is_refused)
{
    struct lapse_folded_merge *merge;
    struct lapse_output output;
    put(0, "a 18446744073709551615\n");
    put(1, "a 1\n");
    cr_assert_eq(lapse_folded_merge_create(&merge, &(struct lapse_folded_merge_options){ 0 }), 0);
    lapse_folded_merge_file(merge, paths[0]);
    lapse_folded_merge_file(merge, paths[1]);
    lapse_output_init(&output, NULL);
    cr_expect_eq(lapse_folded_merge_write(merge, &output), -EOVERFLOW);
    lapse_output_fini(&output);
    lapse_folded_merge_destroy(merge);
}

/* ---- random files ---- */

struct line { char stack[24]; unsigned long value; };

static int by_stack(const void *left, const void *right)
{
    return strcmp(((const struct line *)left)->stack, ((const struct line *)right)->stack);
}

/* Sums by looking at every line before: slow, and right by sight. */
static size_t sum_up(struct line *lines, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        size_t at = 0;
        while (at < kept && strcmp(lines[at].stack, lines[i].stack))
            at++;
        if (at == kept)
            lines[kept++] = lines[i];
        else
            lines[at].value += lines[i].value;
    }
    qsort(lines, kept, sizeof *lines, by_stack);
    return kept;
}

static void random_stack(char *stack)
{
    static const char *const names[] = { "a", "b", "a b", "ab", "a.", "\xc3\xa4", "z" };
    int depth = 1 + rand() % 4;
    *stack = 0;
    for (int i = 0; i < depth; i++) {
        strcat(stack, i ? ";" : "");
        strcat(stack, names[rand() % 7]);
    }
}

static size_t write_random(int file, struct line *lines)
{
    size_t count = (size_t)rand() % 60;
    FILE *to = fopen(paths[file], "w");
    cr_assert_not_null(to);
    for (size_t i = 0; i < count; i++) {
        random_stack(lines[i].stack);
        lines[i].value = (unsigned long)rand() % 1000;
    }
    if (rand() % 2) /* half of the files are sorted; equal lines stay in them */
        qsort(lines, count, sizeof *lines, by_stack);
    for (size_t i = 0; i < count; i++)
        fprintf(to, "%s %lu\n", lines[i].stack, lines[i].value);
    fclose(to);
    return count;
}

static void expect_groupings(const char *wanted, struct lapse_folded_merge_options options)
{
    static const int forward[] = { 0, 1, 2, 3, 4 }, backward[] = { 4, 3, 2, 1, 0 };
    static const int left[] = { 3, 0 }, groups[] = { FILES, FILES + 1, 2 };
    static const int right[] = { 4, 1 };
    char *text = merged(options, forward, FILES);
    cr_assert_str_eq(text, wanted);
    free(text);
    text = merged(options, backward, FILES);
    cr_assert_str_eq(text, wanted);
    free(text);
    text = merged(options, left, 2);
    put(FILES, text);
    free(text);
    text = merged(options, right, 2);
    put(FILES + 1, text);
    free(text);
    text = merged(options, groups, 3);
    cr_assert_str_eq(text, wanted);
    free(text);
}

Test(folded_merge, any_order_and_grouping_gives_the_same_bytes)
{
    for (unsigned seed = 1; seed <= 60; seed++) {
        static struct line lines[FILES * 60];
        static char wanted[FILES * 60 * 48];
        size_t count = 0, used = 0;
        srand(seed);
        for (int file = 0; file < FILES; file++)
            count += write_random(file, lines + count);
        count = sum_up(lines, count);
        wanted[0] = 0;
        for (size_t i = 0; i < count; i++)
            used += (size_t)sprintf(wanted + used, "%s %lu\n", lines[i].stack, lines[i].value);
        expect_groupings(wanted, (struct lapse_folded_merge_options){ 0 });
        /* Parts so small that nearly every line spills, and runs are joined. */
        expect_groupings(wanted, (struct lapse_folded_merge_options){ .part_bytes = 100 });
    }
}
