/* SPDX-License-Identifier: MIT */
/* What is lost is told by every format; ids are unique in a file; calls over time are balanced. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calls.h"
#include "captions.h"
#include "importer.h"
#include "make_recording.h"

static char path[] = "/tmp/lapse-formats-XXXXXX";

static void setup(void)
{
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    close(fd);
    unlink(path);
}

static void teardown(void)
{
    unlink(path);
}

TestSuite(formats, .init = setup, .fini = teardown);

static struct lapse_profile *open_profile(bool lines)
{
    const char *paths[] = { path };
    char error[256] = "";
    struct lapse_profile *profile;
    int result = lapse_profile_open(&profile, paths, 1, &(struct lapse_profile_options){ .lines = lines },
                                    error, sizeof error);
    cr_assert_eq(result, 0, "%s", error);
    return profile;
}

/* Two processes that share a pid and a tid, as in recordings of two machines; 7 dropped samples. */
static void make_lossy(void)
{
    static const uint64_t counters[][2] = { { 1, 9 }, { 3, 2 }, { 4, 7 }, { 0, 0 } };
    struct lapse_test_spool spool;
    lapse_test_spool_open(&spool, path);
    for (int i = 0; i < 2; i++) {
        lapse_test_spool_header(&spool, 77, "/bin/lossy", 5000000);
        lapse_test_spool_module(&spool, 1, "/bin/lossy", 0x1000, 0x9000, 0x1000, 1000000000, 0);
        lapse_test_spool_symbol(&spool, 0x1100, 0x100, "work", 0, 0);
        lapse_test_spool_thread(&spool, 1, 77, "");
        uint32_t node = lapse_test_spool_node(&spool, 0, 0, 0x1100, 0);
        struct lapse_test_sample samples[] = {
            { .time_ns = 1005000000, .node = node, .leaf_pc = 0x1110, .weight_ns = 5000000 },
            { .time_ns = 1010000000, .node = node, .leaf_pc = 0x1120, .weight_ns = 5000000 },
        };
        lapse_test_spool_samples(&spool, 1, samples, 2);
        lapse_test_spool_counters(&spool, counters);
        lapse_test_spool_end(&spool, 1, 0, 1020000000, 20000000, 0);
    }
    lapse_test_spool_close(&spool);
}

Test(formats, losses_are_in_every_format_that_has_a_place_for_them)
{
    static const char *const names[] = { "chrome", "perfetto", "firefox", "callgrind", "svg", "pprof" };
    make_lossy();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct lapse_export_format *format = lapse_export_format_find(names[i]);
        struct lapse_profile *profile = open_profile(format->lines);
        char error[256] = "", *bytes, *unpacked;
        size_t size;
        FILE *to = open_memstream(&bytes, &size);
        cr_assert_eq(format->write(profile, to, &(struct lapse_export_options){ 0 }, error, sizeof error),
                     0, "%s", error);
        fclose(to);
        FILE *back = fmemopen(bytes, size, "r");
        cr_assert_eq(lapse_import_slurp(back, &unpacked, &size), 0);
        cr_expect(memmem(unpacked, size, "dropped: ring full", 18), "%s", names[i]);
        fclose(back);
        free(bytes);
        free(unpacked);
        lapse_profile_close(profile);
    }
}

Test(formats, ids_are_unique_in_a_file)
{
    struct lapse_ids ids;
    make_lossy();
    struct lapse_profile *profile = open_profile(false);
    cr_assert_eq(lapse_ids_init(&ids, profile), 0);
    cr_assert_eq(profile->process_count, 2);
    cr_assert_eq(profile->thread_count, 2);
    cr_expect_eq(ids.processes[0], 77);
    cr_expect_gt(ids.processes[1], 4194304);
    cr_expect_eq(ids.threads[0], 77);
    cr_expect_gt(ids.threads[1], 4194304);
    cr_expect_str_eq(lapse_caption_thread(profile, 0), "lossy", "a thread without a name has the program's");
    lapse_ids_fini(&ids);
    lapse_profile_close(profile);
}

struct balance { uint32_t depth[8]; uint64_t last_ns[8]; uint64_t starts, bad; };

static int check_edge(void *context, const struct lapse_call_edge *edge)
{
    struct balance *balance = context;
    uint32_t *depth = &balance->depth[edge->thread % 8];
    balance->bad += edge->time_ns < balance->last_ns[edge->thread % 8];
    balance->last_ns[edge->thread % 8] = edge->time_ns;
    if (edge->start)
        balance->bad += edge->depth != (*depth)++;
    else
        balance->bad += !*depth || edge->depth != --*depth;
    balance->starts += edge->start;
    return 0;
}

Test(formats, calls_are_balanced_whatever_the_recording)
{
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct lapse_test_recording recording = {
            .seed = seed, .threads = 1 + seed % 4, .stacks = 3 + seed * 11 % 90, .samples = 400,
            .depth = 1 + seed % 40, .cut = seed % 2, .late = seed % 3 == 0, .lines = seed % 5 == 0,
        };
        struct balance balance = { .starts = 0 };
        unlink(path);
        lapse_test_make_recording(path, &recording);
        struct lapse_profile *profile = open_profile(true);
        struct lapse_export_options options = { .min_samples = seed % 3 };
        struct lapse_calls_options calls = {
            .edge = check_edge, .context = &balance, .export_options = &options,
        };
        cr_assert_eq(lapse_calls(profile, &calls), 0);
        cr_expect_eq(balance.bad, 0, "seed %llu", (unsigned long long)seed);
        cr_expect_gt(balance.starts, 0);
        for (int i = 0; i < 8; i++)
            cr_expect_eq(balance.depth[i], 0, "seed %llu", (unsigned long long)seed);
        lapse_profile_close(profile);
    }
}

Test(formats, what_has_no_times_is_refused_where_times_are_all)
{
    FILE *folded = fopen(path, "w"), *to = fopen("/dev/null", "w");
    char error[256] = "";
    fputs("main;work 3\n", folded);
    fclose(folded);
    struct lapse_profile *profile = open_profile(false);
    cr_expect_lt(lapse_write_chrome(profile, to, &(struct lapse_export_options){ 0 }, error, sizeof error), 0);
    cr_expect(strstr(error, "import"), "%s", error);
    cr_expect_eq(lapse_write_speedscope(profile, to, &(struct lapse_export_options){ 0 }, error, sizeof error), 0);
    cr_expect_eq(lapse_write_firefox(profile, to, &(struct lapse_export_options){ 0 }, error, sizeof error), 0);
    cr_expect_eq(lapse_write_pprof(profile, to, &(struct lapse_export_options){ 0 }, error, sizeof error), 0);
    fclose(to);
    lapse_profile_close(profile);
}
