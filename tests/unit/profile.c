/* SPDX-License-Identifier: MIT */
/* The profile's builder: names, inlined functions, time, several inputs. */
#include "profile.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "make_recording.h"

static char path[64], other[64], error[256];

static void fresh(void)
{
    snprintf(path, sizeof path, "/tmp/lapse-unit-profile-%d", (int)getpid());
    snprintf(other, sizeof other, "/tmp/lapse-unit-profile-%d.2", (int)getpid());
    unlink(path);
    unlink(other);
}

static void clean(void)
{
    unlink(path);
    unlink(other);
}

TestSuite(profile, .init = fresh, .fini = clean);

static struct lapse_profile *must_open(uint32_t count, const struct lapse_profile_options *options)
{
    const char *paths[] = { path, other };
    struct lapse_profile *profile;
    cr_assert_eq(lapse_profile_open(&profile, paths, count, options, error, sizeof error), 0, "%s", error);
    return profile;
}

static void put_text(const char *to, const char *text)
{
    FILE *file = fopen(to, "w");
    cr_assert(file && fputs(text, file) >= 0 && !fclose(file));
}

/* "a;b;c" of a leaf, inlined frames in brackets, lines as `name:line`. */
static const char *stack_of(const struct lapse_profile *profile, uint32_t leaf)
{
    static char text[512];
    uint32_t path_nodes[64], depth = 0, node = profile->leaves[leaf].node, line = profile->leaves[leaf].line;
    size_t size = 0;
    text[0] = 0;
    for (; node; node = profile->nodes[node].parent)
        path_nodes[depth++] = node;
    while (depth-- > 0) {
        const struct lapse_profile_node *at = &profile->nodes[path_nodes[depth]];
        uint32_t here = depth ? profile->nodes[path_nodes[depth - 1]].call_line : line;
        size += (size_t)snprintf(text + size, sizeof text - size, "%s%s%s%s", size ? ";" : "",
                                 at->flags & LAPSE_NODE_INLINED ? "(" : "",
                                 profile->functions[at->function].name,
                                 at->flags & LAPSE_NODE_INLINED ? ")" : "");
        if (here)
            size += (size_t)snprintf(text + size, sizeof text - size, ":%u", here);
    }
    return text;
}

static void put_small(const char *to, uint32_t pid, uint64_t base)
{
    struct lapse_test_spool spool;
    const struct lapse_test_sample samples[] = {
        { 2000, 2, base + 0x110, 5, 0, 0 }, { 2005, 2, base + 0x114, 5, 0, 0 },
        { 2010, 3, base + 0x208, 10, 0, 0 }, { 2020, 4, 0, 5, 0, 0 }, { 2025, 5, 0x7000010, 5, 0, 0 },
    };
    lapse_test_spool_open(&spool, to);
    lapse_test_spool_header(&spool, pid, "/bin/x", 5);
    lapse_test_spool_module(&spool, 1, "/bin/x", base, base + 0x1000, base, 0, 0);
    lapse_test_spool_module(&spool, 2, "[anon:exec]", 0x7000000, 0x7001000, 0, 0, 0);
    lapse_test_spool_thread(&spool, 1, pid, "main thread");
    lapse_test_spool_node(&spool, 0, 0, base, 0);
    lapse_test_spool_node(&spool, 1, base + 8, base + 0x100, 0);
    lapse_test_spool_node(&spool, 1, base + 16, base + 0x200, 0);
    lapse_test_spool_node(&spool, 0, 0, 3, 0);
    lapse_test_spool_node(&spool, 1, base + 24, 0x7000000, 0);
    lapse_test_spool_samples(&spool, 1, samples, 5);
    lapse_test_spool_symbol(&spool, base, 0x100, "main", 0, 0);
    lapse_test_spool_symbol(&spool, base + 0x100, 0x100, "work(int)", 0, 0);
    lapse_test_spool_end(&spool, 1, 0, 9000, 25, 5);
    lapse_test_spool_close(&spool);
}

Test(profile, names_and_weights)
{
    put_small(path, 7, 0x400000);
    struct lapse_profile *profile = must_open(1, NULL);
    cr_assert_eq(profile->leaf_count, 4);
    cr_expect_str_eq(stack_of(profile, 0), "main;work(int)");
    cr_expect(profile->leaves[0].count == 2 && profile->leaves[0].weight_ns == 10 &&
              profile->leaves[0].squares == 50);
    cr_expect_str_eq(stack_of(profile, 1), "main;x+0x200");
    cr_expect_str_eq(stack_of(profile, 2), "[not sampled]");
    cr_expect_str_eq(stack_of(profile, 3), "main;[anon:exec]");
    cr_expect(profile->count == 5 && profile->weight_ns == 30 && profile->period_ns == 5);
    cr_expect(profile->first_ns == 2000 && profile->last_ns == 2025 && profile->has_times);
    cr_expect(profile->process_count == 1 && profile->processes[0].cpu_ns == 30);
    cr_expect_str_eq(profile->processes[0].command, "/bin/x 'two words'");
    cr_expect(profile->thread_count == 1 && profile->threads[0].weight_ns == 30);
    lapse_profile_close(profile);
}

Test(profile, the_same_program_elsewhere_is_the_same)
{
    put_small(path, 7, 0x400000);
    put_small(path, 8, 0x900000); /* a second process in the file */
    put_small(other, 9, 0x700000);
    struct lapse_profile *profile = must_open(2, NULL);
    cr_expect_eq(profile->process_count, 3);
    cr_expect_eq(profile->module_count, 2);
    cr_expect_eq(profile->leaf_count, 4);
    cr_expect_eq(profile->leaves[0].weight_ns, 30);
    cr_expect_eq(profile->leaves[0].pc, 0x400110);
    cr_expect_eq(profile->threads[2].process, 2);
    lapse_profile_close(profile);
}

Test(profile, lines_and_inlined_functions)
{
    struct lapse_test_spool spool;
    const struct lapse_test_frame call[] = { { "main", "x.c", 10 }, { "helper", "x.h", 3 } };
    const struct lapse_test_frame leaf[] = { { "work", "x.c", 40 } };
    const struct lapse_test_sample samples[] = {
        { 2000, 2, 0x400104, 5, 0, 0 }, { 2005, 2, 0x400108, 5, 0, 0 },
    };
    struct lapse_profile_options options = { .lines = true };
    lapse_test_spool_open(&spool, path);
    lapse_test_spool_header(&spool, 1, "/bin/x", 5);
    lapse_test_spool_module(&spool, 1, "/bin/x", 0x400000, 0x401000, 0x400000, 0, 0);
    lapse_test_spool_node(&spool, 0, 0, 0x400000, 0);
    lapse_test_spool_node(&spool, 1, 0x400008, 0x400100, 0);
    lapse_test_spool_samples(&spool, 1, samples, 2);
    lapse_test_spool_symbol(&spool, 0x400000, 0x100, "main", 0, 0);
    lapse_test_spool_symbol(&spool, 0x400100, 0x100, "work", 0, 0);
    lapse_test_spool_address(&spool, 0x400008, true, call, 2);
    lapse_test_spool_address(&spool, 0x400104, false, leaf, 1);
    lapse_test_spool_close(&spool);
    struct lapse_profile *profile = must_open(1, NULL);
    cr_assert_eq(profile->leaf_count, 1);
    cr_expect_str_eq(stack_of(profile, 0), "main:10;(helper):3;work:40");
    lapse_profile_close(profile);
    profile = must_open(1, &options);
    cr_assert_eq(profile->leaf_count, 2);
    cr_expect_str_eq(stack_of(profile, 1), "main:10;(helper):3;work");
    lapse_profile_close(profile);
    options = (struct lapse_profile_options){ .no_inlines = true };
    profile = must_open(1, &options);
    cr_expect_str_eq(stack_of(profile, 0), "main:10;work:40");
    lapse_profile_close(profile);
}

static uint32_t two_frames(void *context, const struct lapse_session *session, uint64_t pc, bool is_return,
                           uint64_t time_ns, struct lapse_inline_frame *frames, uint32_t max)
{
    (void)session, (void)time_ns, (void)max;
    ++*(unsigned *)context;
    if (pc < 0x400200 || pc >= 0x400300 || is_return)
        return 0;
    frames[0] = (struct lapse_inline_frame){ .name = (char *)"found", .file = (char *)"f.c", .line = 20 };
    frames[1] = (struct lapse_inline_frame){ .name = (char *)"inside", .file = (char *)"f.h", .line = 2 };
    return pc == 0x400200 ? 1 : 2;
}

Test(profile, a_symbolizer_fills_what_is_unnamed)
{
    unsigned calls = 0;
    struct lapse_symbolizer symbolizer = { .frames = two_frames, .context = &calls };
    struct lapse_profile_options options = { .symbolizer = &symbolizer };
    put_small(path, 7, 0x400000);
    struct lapse_profile *profile = must_open(1, &options);
    cr_expect_str_eq(stack_of(profile, 1), "main;found:20;(inside):2");
    unsigned before = calls;
    lapse_profile_close(profile);
    put_small(path, 8, 0x400000);
    profile = must_open(1, &options);
    cr_expect_eq(calls, 3 * before, "each place of each session is asked once");
    lapse_profile_close(profile);
}

Test(profile, jit_code_is_named_by_its_time)
{
    struct lapse_test_spool spool;
    const struct lapse_test_sample samples[] = {
        { 2000, 2, 0x9010, 5, 0, 0 }, { 3000, 2, 0x9010, 5, 0, 0 }, { 3005, 2, 0x9010, 5, 0, 0 },
    };
    lapse_test_spool_open(&spool, path);
    lapse_test_spool_header(&spool, 1, "/bin/x", 5);
    lapse_test_spool_node(&spool, 0, 0, 0x9000, 0);
    lapse_test_spool_node(&spool, 1, 0x9008, 0x9000, 0);
    lapse_test_spool_samples(&spool, 1, samples, 3);
    lapse_test_spool_symbol(&spool, 0x9000, 64, "young", 2500, 0);
    lapse_test_spool_symbol(&spool, 0x9000, 64, "old", 10, 2500);
    lapse_test_spool_close(&spool);
    struct lapse_profile *profile = must_open(1, NULL);
    cr_assert_eq(profile->leaf_count, 2);
    cr_expect_str_eq(stack_of(profile, 0), "old;old");
    cr_expect_str_eq(stack_of(profile, 1), "young;young");
    cr_expect_eq(profile->leaves[1].weight_ns, 10);
    cr_expect(profile->functions[0].flags & LAPSE_FUNCTION_JIT);
    lapse_profile_close(profile);
}

Test(profile, folded_text)
{
    put_text(path, "main;work 10\nmain;work;[truncated] 3\nmain;with space 3\r\n\n# note\nmain;work 1\n");
    struct lapse_profile *profile = must_open(1, NULL);
    cr_assert_eq(profile->leaf_count, 3);
    cr_expect_str_eq(stack_of(profile, 0), "main;work");
    cr_expect_eq(profile->leaves[0].weight_ns, 11);
    cr_expect_eq(profile->leaves[1].weight_ns, 3);
    cr_expect_str_eq(stack_of(profile, 2), "main;with space");
    cr_expect(profile->weight_unit == LAPSE_WEIGHT_COUNT && !profile->has_times && profile->weight_ns == 17);
    cr_expect_eq(lapse_profile_each_sample(profile, NULL, NULL), -ENOTSUP);
    lapse_profile_close(profile);
}

Test(profile, a_recording_next_to_folded_text_is_counted_in_samples)
{
    put_small(path, 7, 0x400000);
    put_text(other, "main;work(int) 10\n");
    struct lapse_profile *profile = must_open(2, NULL);
    cr_expect(profile->weight_unit == LAPSE_WEIGHT_COUNT && profile->weight_ns == 10 + 6);
    lapse_profile_close(profile);
}

Test(profile, bad_inputs_are_named)
{
    const char *paths[] = { path };
    struct lapse_profile *profile;
    char expected[128];
    put_text(path, "main;work 10\nno weight here\n");
    cr_expect_eq(lapse_profile_open(&profile, paths, 1, NULL, error, sizeof error), -EBADMSG);
    snprintf(expected, sizeof expected, "%s:2: ", path);
    cr_expect_eq(strncmp(error, expected, strlen(expected)), 0, "%s", error);
    unlink(path);
    cr_expect_eq(lapse_profile_open(&profile, paths, 1, NULL, error, sizeof error), -ENOENT);
    cr_expect_null(profile);
}

struct totals { uint64_t *weights; uint64_t weight, labelled; const struct lapse_profile *profile; };

static int add(void *context, const struct lapse_profile_sample *sample)
{
    struct totals *totals = context;
    totals->weight += sample->weight_ns;
    totals->weights[sample->leaf] += sample->weight_ns;
    totals->labelled += sample->labels != 0;
    return 0;
}

Test(profile, samples_add_up_to_leaves)
{
    struct lapse_test_recording numbers = { .processes = 2, .samples = 3000, .labels = true, .spans = true,
                                            .cut = true, .late = true, .raw = true, .lines = true };
    lapse_test_make_recording(path, &numbers);
    struct lapse_profile *profile = must_open(1, NULL);
    struct totals totals = { calloc(profile->leaf_count, 8), 0, 0, profile };
    cr_assert_eq(lapse_profile_each_sample(profile, add, &totals), 0);
    cr_expect_eq(totals.weight, profile->weight_ns);
    cr_expect_eq(totals.labelled, 2 * 2000);
    for (uint32_t i = 0; i < profile->leaf_count; i++)
        cr_assert_eq(totals.weights[i], profile->leaves[i].weight_ns);
    cr_expect_eq(profile->label_set_count, 3);
    cr_expect_eq(profile->span_count, 4);
    cr_expect_eq(profile->note_count, 0);
    for (uint32_t i = 1; i < profile->node_count; i++)
        cr_assert(profile->nodes[i].parent < i &&
                  profile->nodes[i].depth == profile->nodes[profile->nodes[i].parent].depth + 1);
    free(totals.weights);
    lapse_profile_close(profile);
}
