/* SPDX-License-Identifier: MIT */
/* The cases of tests/golden/engine through the C API: samples by lapse_diff_push, edges by the
 * replay, folded text by the call tree. tests/golden/engine.py runs the same files through the
 * commands and tells their form. */
#include <criterion/criterion.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event_text.h"
#include "index.h"
#include "lapse/diff.h"
#include "line_reader.h"
#include "replay.h"

enum { MOST_SECTIONS = 8 };

struct section { char name[32]; char *text; size_t size; };

struct test_case {
    const char *path;
    char *bytes;
    char options[256];
    struct section sections[MOST_SECTIONS];
    int section_count;
};

static void read_case(struct test_case *the_case, const char *path)
{
    struct lapse_lines lines;
    char *line;
    size_t size;
    *the_case = (struct test_case){ .path = path };
    cr_assert_eq(lapse_lines_open(&lines, path), 0, "%s", path);
    while (lapse_lines_next(&lines, &line, &size) > 0) {
        struct section *section = the_case->sections + the_case->section_count;
        if (size > 4 && !memcmp(line, "--- ", 4)) {
            cr_assert_lt(the_case->section_count, MOST_SECTIONS);
            the_case->section_count++;
            snprintf(section->name, sizeof section->name, "%.*s", (int)size - 4, line + 4);
        } else if (the_case->section_count) {
            section--; /* the one that is open */
            section->text = realloc(section->text, section->size + size + 2);
            memcpy(section->text + section->size, line, size);
            section->size += size;
            section->text[section->size++] = '\n';
            section->text[section->size] = 0;
        } else if (!memcmp(line, "options: ", 9)) {
            snprintf(the_case->options, sizeof the_case->options, "%.*s ", (int)size - 9, line + 9);
        }
    }
    lapse_lines_close(&lines);
}

static struct section *find(struct test_case *the_case, const char *name)
{
    for (int i = 0; i < the_case->section_count; i++)
        if (!strcmp(the_case->sections[i].name, name))
            return &the_case->sections[i];
    return NULL;
}

static uint64_t number(const struct test_case *the_case, const char *option)
{
    const char *at = strstr(the_case->options, option);
    return at ? strtoull(at + strlen(option), NULL, 10) : 0;
}

/* ---- samples ---- */

struct output {
    struct lapse_strings names, threads;
    char edges[8192];
    struct lapse_interval intervals[64];
    size_t interval_count;
    struct lapse_replay *replay;
};

static void on_edge(void *context, const struct lapse_edge *edge)
{
    struct output *out = context;
    size_t used = strlen(out->edges);
    const char *name = out->names.texts[edge->function - 16];
    const char *thread = out->threads.texts[edge->thread];
    snprintf(out->edges + used, sizeof out->edges - used, "%llu\t%s\t%s\t%u\t%s\n",
             (unsigned long long)edge->time_ns, thread,
             edge->kind == LAPSE_EDGE_START ? "start" : "end", edge->depth, name);
    cr_expect_eq(edge->proof, LAPSE_PROVEN);
    cr_expect_eq(lapse_replay_event(out->replay, edge->time_ns, thread, strlen(thread),
                                    edge->kind == LAPSE_EDGE_START, edge->depth, name,
                                    strlen(name)), 0);
}

static void on_interval(void *context, const struct lapse_interval *interval)
{
    struct output *out = context;
    cr_assert_lt(out->interval_count, 64);
    out->intervals[out->interval_count++] = *interval;
}

static int by_start(const void *left, const void *right)
{
    const struct lapse_interval *a = left, *b = right;
    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    if (a->depth != b->depth)
        return a->depth < b->depth ? -1 : 1;
    return (a->thread > b->thread) - (a->thread < b->thread);
}

static void expect_intervals(struct test_case *the_case, struct output *out)
{
    char text[8192] = "";
    struct section *wanted = find(the_case, "intervals");
    qsort(out->intervals, out->interval_count, sizeof *out->intervals, by_start);
    for (size_t i = 0; i < out->interval_count; i++) {
        const struct lapse_interval *interval = &out->intervals[i];
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%llu\t%llu\t%s\t%u\t%s\n",
                 (unsigned long long)interval->start_ns, (unsigned long long)interval->end_ns,
                 out->threads.texts[interval->thread], interval->depth,
                 out->names.texts[interval->function - 16]);
    }
    if (wanted)
        cr_expect_str_eq(text, wanted->text, "%s", the_case->path);
}

static int push_line(struct lapse_diff *diff, struct output *out, char *line, size_t size)
{
    struct lapse_sample_line sample;
    struct lapse_diff_frame frames[32] = { 0 };
    uint32_t depth = 0;
    char *name;
    size_t length;
    cr_assert_null(lapse_sample_parse(line, size, &sample));
    while (lapse_stack_next(&sample.stack, &sample.stack_size, &name, &length))
        frames[depth++].function = 16 + lapse_strings_number(&out->names, name, length);
    return lapse_diff_push(diff, sample.time,
                           lapse_strings_number(&out->threads, sample.thread, sample.thread_size),
                           frames, depth, 0);
}

static void expect_folded(struct test_case *the_case, struct lapse_replay *replay)
{
    struct section *wanted = find(the_case, "folded");
    struct lapse_output folded;
    if (!wanted)
        return;
    lapse_output_init(&folded, NULL);
    cr_expect_eq(lapse_replay_finish(replay), 0);
    cr_expect_eq(lapse_replay_write(replay, &folded), 0);
    lapse_output_char(&folded, 0);
    cr_expect_str_eq(folded.bytes, wanted->text, "%s", the_case->path);
    lapse_output_fini(&folded);
}

static void check_samples(struct test_case *the_case)
{
    static struct output out;
    struct section *samples = find(the_case, "samples"), *edges = find(the_case, "edges");
    struct section *error = find(the_case, "error");
    struct lapse_diff_options options = {
        .min_samples = (uint32_t)number(the_case, "--min-samples="),
        .confirm = (uint32_t)number(the_case, "--confirm="),
        .period_ns = number(the_case, "--period="),
        .edge = on_edge, .interval = on_interval, .context = &out,
    };
    struct lapse_lines lines;
    struct lapse_diff *diff;
    char *line;
    size_t size;
    int refused = 0;
    if (strstr(the_case->options, "--close=open"))
        options.close = LAPSE_CLOSE_OPEN;
    if (strstr(the_case->options, "--close=next"))
        options.close = LAPSE_CLOSE_NEXT;
    out = (struct output){ 0 };
    cr_assert_eq(lapse_replay_create(&out.replay, false), 0);
    cr_assert_eq(lapse_diff_create(&diff, &options), 0);
    lapse_lines_memory(&lines, samples->text, samples->size);
    while (!refused && lapse_lines_next(&lines, &line, &size) > 0)
        refused = push_line(diff, &out, line, size);
    lapse_diff_finish(diff);
    if (error) {
        char position[64];
        snprintf(position, sizeof position, "line %llu\n", (unsigned long long)lines.number);
        cr_expect_eq(refused, -EINVAL);
        cr_expect_str_eq(error->text, position);
    } else {
        cr_expect_eq(refused, 0);
        if (edges)
            cr_expect_str_eq(out.edges, edges->text ? edges->text : "", "%s", the_case->path);
        expect_intervals(the_case, &out);
        expect_folded(the_case, out.replay);
    }
    lapse_diff_destroy(diff);
    lapse_replay_destroy(out.replay);
    lapse_strings_free(&out.names);
    lapse_strings_free(&out.threads);
}

/* ---- edges and folded text ---- */

static void check_edges(struct test_case *the_case)
{
    struct section *edges = find(the_case, "input-edges"), *error = find(the_case, "error");
    bool repair = strstr(the_case->options, "--repair") != NULL;
    struct lapse_replay *replay;
    struct lapse_lines lines;
    struct lapse_edge_line edge;
    char *line;
    size_t size;
    int refused = 0;
    cr_assert_eq(lapse_replay_create(&replay, repair), 0);
    lapse_lines_memory(&lines, edges->text, edges->size);
    while (!refused && lapse_lines_next(&lines, &line, &size) > 0) {
        cr_assert_null(lapse_edge_parse(line, size, &edge));
        refused = lapse_replay_event(replay, edge.time, edge.thread, edge.thread_size,
                                     edge.is_start, edge.depth, edge.name, edge.name_size);
    }
    if (!refused)
        refused = lapse_replay_finish(replay);
    if (error) {
        cr_expect_eq(refused, -EINVAL);
        error->text[error->size - 1] = 0;
        cr_expect(strstr(lapse_replay_cause(replay), error->text), "%s", the_case->path);
    } else {
        struct lapse_replay_repairs repairs = lapse_replay_repairs(replay);
        cr_expect_eq(refused, 0);
        expect_folded(the_case, replay);
        cr_expect_eq(repairs.lost_exits + repairs.stray_ends + repairs.lost_starts +
                         repairs.unclosed + repairs.times,
                     strtoull(find(the_case, "repairs")->text, NULL, 10), "%s", the_case->path);
    }
    lapse_replay_destroy(replay);
}

Test(engine_vectors, all)
{
    glob_t paths;
    cr_assert_eq(glob(LAPSE_TEST_FOLDER "/golden/engine/*.txt", 0, NULL, &paths), 0);
    cr_assert_geq(paths.gl_pathc, 21);
    for (size_t i = 0; i < paths.gl_pathc; i++) {
        struct test_case the_case;
        read_case(&the_case, paths.gl_pathv[i]);
        if (find(&the_case, "samples"))
            check_samples(&the_case);
        else if (find(&the_case, "input-edges"))
            check_edges(&the_case);
        else /* of folded text, which lapse report takes in (golden/engine.py) */
            cr_expect(find(&the_case, "functions"), "%s", the_case.path);
        for (int section = 0; section < the_case.section_count; section++)
            free(the_case.sections[section].text);
    }
    globfree(&paths);
}
