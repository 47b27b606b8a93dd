/* SPDX-License-Identifier: MIT */
/* Sample and edge lines, lines of files, and replays that are not among the golden cases. */
#include "event_text.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "line_reader.h"
#include "replay.h"

static char line[256];

static const char *sample_cause(const char *text)
{
    struct lapse_sample_line sample;
    strcpy(line, text);
    return lapse_sample_parse(line, strlen(line), &sample);
}

Test(event_text, samples)
{
    struct lapse_sample_line sample;
    char *name;
    size_t size;
    strcpy(line, "12\tworker 1\tma\\;in;f\\\\;a b");
    cr_assert_null(lapse_sample_parse(line, strlen(line), &sample));
    cr_expect_eq(sample.time, 12);
    cr_expect(sample.thread_size == 8 && !memcmp(sample.thread, "worker 1", 8));
    cr_assert(lapse_stack_next(&sample.stack, &sample.stack_size, &name, &size));
    cr_expect(lapse_name_is(name, size, "ma;in"));
    cr_assert(lapse_stack_next(&sample.stack, &sample.stack_size, &name, &size));
    cr_expect(lapse_name_is(name, size, "f\\"));
    cr_assert(lapse_stack_next(&sample.stack, &sample.stack_size, &name, &size));
    cr_expect(lapse_name_is(name, size, "a b"));
    cr_expect_not(lapse_stack_next(&sample.stack, &sample.stack_size, &name, &size));
}

Test(event_text, bad_samples_are_refused)
{
    static const char *const bad[] = {
        "", "x\t1\ta", "-1\t1\ta", "1.5\t1\ta", "18446744073709551616\t1\ta", "1", "1\t\ta",
        "1\t1", "1\t1\ta\tb", "1\t1\t;a", "1\t1\ta;", "1\t1\ta;;b", " 1\t1\ta",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_not_null(sample_cause(bad[i]), "%s", bad[i]);
    cr_expect_null(sample_cause("1\t1\t"));
    cr_expect_null(sample_cause("18446744073709551615\t1\ta\\;;b"));
    memcpy(line, "1\t1\ta\0b", 7);
    cr_expect_not_null(lapse_sample_parse(line, 7, &(struct lapse_sample_line){ 0 }));
}

Test(event_text, edges)
{
    struct lapse_edge_line edge;
    static const char *const bad[] = {
        "", "1\t1\tbegin\t0\ta", "1\t1\tstart\t-1\ta", "1\t1\tstart\t0", "1\t1\tstart\t0\t",
        "1\t1\tstart\t0\ta\tmaybe", "1\t1\tstart\t0\ta\tinferred\t1\t2\t3", "1\t1\tstart\t0\t\\x00",
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        strcpy(line, bad[i]);
        cr_expect_not_null(lapse_edge_parse(line, strlen(line), &edge), "%s", bad[i]);
    }
    strcpy(line, "7\tT\tend\t3\ta\\tb\tinferred\t5\t-");
    cr_assert_null(lapse_edge_parse(line, strlen(line), &edge));
    cr_expect(edge.time == 7 && !edge.is_start && edge.depth == 3);
    cr_expect(lapse_name_is(edge.name, edge.name_size, "a\tb"));
}

Test(event_text, lines_of_any_length_from_a_pipe)
{
    struct lapse_lines lines;
    char *text, *long_line = malloc(300000);
    size_t size, total = 0;
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    memset(long_line, 'x', 300000);
    memcpy(long_line + 299998, "\r\n", 2);
    if (!fork()) {
        for (size_t done = 0; done < 300000;) {
            ssize_t wrote = write(ends[1], long_line + done, 300000 - done);
            done += wrote > 0 ? (size_t)wrote : 0;
        }
        _exit(write(ends[1], "\nlast", 5) != 5);
    }
    close(ends[1]);
    cr_assert_eq(lapse_lines_attach(&lines, ends[0], "pipe"), 0);
    while (lapse_lines_next(&lines, &text, &size) > 0)
        total = total * 10 + (lines.number == 1 ? size == 299998 : size);
    cr_expect_eq(total, 104, "one long, one empty, one of four bytes");
    lapse_lines_close(&lines);
    close(ends[0]);
    free(long_line);
}

/* ---- replay ---- */

static struct lapse_replay *replay;

static int event(uint64_t time, bool is_start, uint32_t depth, const char *name)
{
    return lapse_replay_event(replay, time, "1", 1, is_start, depth, name, strlen(name));
}

static void expect_folded(const char *wanted)
{
    struct lapse_output output;
    lapse_output_init(&output, NULL);
    cr_expect_eq(lapse_replay_write(replay, &output), 0);
    lapse_output_char(&output, 0);
    cr_expect_str_eq(output.bytes, wanted);
    lapse_output_fini(&output);
    lapse_replay_destroy(replay);
}

Test(event_text, replay_repairs_each_kind)
{
    cr_assert_eq(lapse_replay_create(&replay, true), 0);
    event(0, true, 0, "a");
    event(10, true, 3, "b");   /* lost starts below */
    event(15, true, 1, "c");   /* b lost its exit */
    event(12, true, 2, "d");   /* time goes back */
    event(20, false, 9, "x");  /* stray */
    event(30, true, 3, "a");   /* recursion */
    event(40, false, 0, "a");  /* by depth the outer one: three lost exits */
    event(50, true, 0, "z");
    event(60, true, 1, "y");
    cr_expect_eq(lapse_replay_finish(replay), 0);
    struct lapse_replay_repairs repairs = lapse_replay_repairs(replay);
    cr_expect_eq(repairs.lost_starts, 1);
    cr_expect_eq(repairs.lost_exits, 4);
    cr_expect_eq(repairs.times, 1);
    cr_expect_eq(repairs.stray_ends, 1);
    cr_expect_eq(repairs.unclosed, 2);
    expect_folded("a 10\na;b 5\na;c;d 15\na;c;d;a 10\nz 10\n");
}

Test(event_text, strict_replay_checks_depth_and_time)
{
    cr_assert_eq(lapse_replay_create(&replay, false), 0);
    cr_expect_eq(event(5, true, 0, "a"), 0);
    cr_expect_lt(event(5, true, 2, "b"), 0);
    cr_expect_str_eq(lapse_replay_cause(replay),
                     "event 1: start of 'b' at depth 2, but the stack has 1 frames");
    cr_expect_lt(event(4, true, 1, "b"), 0);
    cr_expect_str_eq(lapse_replay_cause(replay), "event 1: time goes back from 5 to 4 in thread 1");
    lapse_replay_destroy(replay);
}

Test(event_text, folded_lines_are_sorted_by_bytes_of_the_stack)
{
    static const char *const names[] = { "b", "a", "a b", "a:", "a;", "a\t", "a!" };
    uint64_t time = 0;
    cr_assert_eq(lapse_replay_create(&replay, false), 0);
    for (int i = 0; i < 7; i++) {
        event(time, true, 0, names[i]);
        event(++time, true, 1, "x");
        event(++time, false, 1, "x");
        event(time, false, 0, names[i]);
    }
    expect_folded("a 1\na b 1\na b;x 1\na! 1\na!;x 1\na: 1\na:;x 1\na;x 1\n"
                  "a\\; 1\na\\;;x 1\na\\t 1\na\\t;x 1\nb 1\nb;x 1\n");
}
