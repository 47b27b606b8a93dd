/* SPDX-License-Identifier: MIT */
/* Round trips: what is exported and imported again has the same stacks and weights. Plus what the
 * readers make of inputs of other tools, and of damaged ones. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format.h"
#include "importer.h"
#include "make_recording.h"

static char folder[] = "/tmp/lapse-import-XXXXXX";

static void setup(void)
{
    cr_assert_not_null(mkdtemp(folder));
}

static void teardown(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(import, .init = setup, .fini = teardown);

static const char *path_of(const char *name)
{
    static char paths[4][64];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

struct text { char *bytes; size_t size; };

/* A file in a format; `profile_counts` (may be NULL) gets samples and weight. */
static struct text export_file(const char *path, const char *format_name,
                               const struct lapse_export_options *options, uint64_t counts[2])
{
    struct text text;
    char error[256] = "";
    struct lapse_profile *profile;
    const struct lapse_export_format *format = lapse_export_format_find(format_name);
    struct lapse_profile_options opening = { .lines = format->lines };
    int result = lapse_profile_open(&profile, &path, 1, &opening, error, sizeof error);
    cr_assert_eq(result, 0, "%s", error);
    FILE *to = open_memstream(&text.bytes, &text.size);
    result = format->write(profile, to, options, error, sizeof error);
    cr_assert_eq(result, 0, "%s: %s", format_name, error);
    fclose(to);
    if (counts) {
        counts[0] = profile->count;
        counts[1] = profile->weight_ns;
    }
    lapse_profile_close(profile);
    return text;
}

static int import_bytes(lapse_import_reader *reader, const void *bytes, size_t size, const char *path,
                        char *error, size_t error_size)
{
    struct lapse_importer *importer;
    FILE *from = fmemopen((void *)(uintptr_t)bytes, size, "r"), *to = fopen(path, "w");
    struct lapse_import_input input = { .from = from, .name = "input", .period_ns = 5000000 };
    cr_assert(from && to);
    cr_assert_eq(lapse_importer_create(&importer, to), 0);
    int result = reader(importer, &input, error, error_size);
    if (!result)
        result = lapse_importer_finish(importer);
    lapse_importer_destroy(importer);
    fclose(from);
    fclose(to);
    return result;
}

static void import_text(lapse_import_reader *reader, struct text text, const char *path)
{
    char error[256] = "";
    int result = import_bytes(reader, text.bytes, text.size, path, error, sizeof error);
    cr_assert_eq(result, 0, "%s", error);
}

static const struct lapse_export_options in_ns = { .unit = LAPSE_UNIT_NS };

/* import(export(recording)) as folded text in nanoseconds is that of the recording. */
static void expect_round_trip(const struct lapse_test_recording *recording, const char *format,
                              lapse_import_reader *reader, bool keeps_counts)
{
    uint64_t before[2], after[2];
    const char *original = path_of("original.lapse"), *copy = path_of("copy.lapse");
    unlink(original);
    lapse_test_make_recording(original, recording);
    struct text file = export_file(original, format, &in_ns, NULL);
    import_text(reader, file, copy);
    struct text left = export_file(original, "folded", &in_ns, before);
    struct text right = export_file(copy, "folded", &in_ns, after);
    cr_expect(left.size > 100);
    cr_expect_str_eq(right.bytes, left.bytes, "%s, seed %llu", format,
                     (unsigned long long)recording->seed);
    cr_expect_eq(after[1], before[1]);
    if (keeps_counts)
        cr_expect_eq(after[0], before[0]);
    free(file.bytes);
    free(left.bytes);
    free(right.bytes);
}

static struct lapse_test_recording recording_of(uint64_t seed)
{
    return (struct lapse_test_recording){
        .seed = seed, .processes = 1 + seed % 2, .threads = 1 + seed % 3, .stacks = 1 + seed * 13 % 200,
        .samples = 100 + seed * 97 % 2000, .depth = 1 + seed * 7 % 60, .lines = seed % 2,
        .labels = seed % 3 == 0, .cut = seed % 4 == 1, .late = seed % 5 == 2, .spans = seed % 2,
    };
}

Test(import, pprof_there_and_back)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct lapse_test_recording recording = recording_of(seed);
        expect_round_trip(&recording, "pprof", lapse_import_pprof, true);
    }
}

Test(import, speedscope_there_and_back)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct lapse_test_recording recording = recording_of(seed);
        expect_round_trip(&recording, "speedscope", lapse_import_speedscope, false);
    }
}

/* Folded text has counts of periods: the same text must come out, in that unit. */
Test(import, folded_there_and_back)
{
    static const struct lapse_export_options as_is = { 0 };
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct lapse_test_recording recording = recording_of(seed);
        const char *original = path_of("original.lapse"), *copy = path_of("copy.lapse");
        unlink(original);
        lapse_test_make_recording(original, &recording);
        struct text left = export_file(original, "folded", &as_is, NULL);
        import_text(lapse_import_folded, left, copy);
        struct text right = export_file(copy, "folded", &as_is, NULL);
        cr_expect_str_eq(right.bytes, left.bytes, "seed %llu", (unsigned long long)seed);
        free(left.bytes);
        free(right.bytes);
    }
}

static void expect_folded(lapse_import_reader *reader, const char *input,
                          const struct lapse_export_options *options, const char *wanted)
{
    const char *copy = path_of("copy.lapse");
    import_text(reader, (struct text){ (char *)(uintptr_t)input, strlen(input) }, copy);
    struct text text = export_file(copy, "folded", options, NULL);
    cr_expect_str_eq(text.bytes, wanted);
    free(text.bytes);
}

Test(import, perf_script_of_a_clock_event)
{
    expect_folded(lapse_import_perf,
                  "# captured on a machine\n"
                  "my prog 1200/1201 [003] 12345.678901:   10000000 cpu-clock:u: \n"
                  "\t    55e0a1 inner(int (*)(char))+0x12 (inlined)\n"
                  "\t    55e0a1 outer+0x1f (/usr/bin/my prog)\n"
                  "\t    7f00b2 main+0x2 (/usr/bin/my prog)\n"
                  "\n"
                  "my prog 1200/1200 [000] 12345.679901:   20000000 cpu-clock:u: \n"
                  "\t    7f00b2 main+0x2 (/usr/bin/my prog)\n"
                  "\n",
                  &in_ns,
                  "main 20000000\n"
                  "main;outer;inner(int (*)(char)) 10000000\n");
}

Test(import, perf_script_keeps_threads_and_times)
{
    static const char input[] = "a 7 1.000000001: cycles: \n\t1 f (x)\n\n"
                                "a 7 3.5: cycles: \n\t1 f (x)\n\nb 8 2.25: cycles: \n\t2 [unknown] (y)\n\n";
    const char *copy = path_of("copy.lapse");
    char error[256];
    struct lapse_profile *profile;
    import_text(lapse_import_perf, (struct text){ (char *)(uintptr_t)input, sizeof input - 1 }, copy);
    cr_assert_eq(lapse_profile_open(&profile, &copy, 1, &(struct lapse_profile_options){ 0 }, error,
                                    sizeof error), 0);
    cr_expect_eq(profile->count, 3);
    cr_assert_eq(profile->thread_count, 2);
    cr_expect_str_eq(profile->threads[0].name, "a");
    cr_expect_eq(profile->threads[1].tid, 8);
    cr_expect_eq(profile->last_ns - profile->first_ns, 2499999999u);
    lapse_profile_close(profile);
}

/* What `perf script` prints depends on how was recorded and on -F. Each line of heads is the same two
 * samples: leaf under main, and main alone. */
Test(import, perf_script_in_all_its_field_selections)
{
    static const char *const heads[][2] = {
        { "prog 12 1.000001:   5000000 cpu-clock: ", "prog 12 1.000002:   5000000 cpu-clock: " },
        { "prog 12/13 [001] 1.000001:   5000000 cpu-clock:u: ", "prog 12/13 [000] 1.000002:   5000000 cpu-clock:u: " },
        { "        prog    12 1.000001: cpu-clock: ", "   my prog 7    12 1.000002: cpu-clock: " },
        { "[kworker/0:1] 12 1.000001: cycles: ", "a [b] 1 12 1.000002: cycles: " },
        { "prog 12 cpu-clock: ", "7 12 cpu-clock: " },
        { "prog 12/12 5000000 cpu-clock: ", "a b: 3 12/13   5000000 cpu-clock: " },
        { "1.000001: cpu-clock: ", "1.000002: cpu-clock: " },
        { "prog 12 1.000001:    5000000 ", "prog 12 1.000002:    5000000 " },
        { "prog [002] 1.000001: ", "prog [002] 1.000002: " },
        { "prog 12 [000] 1.000001: sched:sched_switch: prev_comm=prog prev_pid=12 ==> next_comm=dead",
          "prog 12 [000] 1.000002: sched:sched_switch: prev_comm=a: ==> next_comm=b 3.5: x" },
    };
    static const char *const line_ends[] = { "\n", "\r\n" };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        for (size_t j = 0; j < 2; j++) {
            char text[1024], *first = strdup(heads[i][0]);
            const char *end = line_ends[j];
            snprintf(text, sizeof text, "%s%s\t    7f01 leaf+0x1 (/x (deleted))%s\t    7f02 main+0x2 (/a (b)/x)%s%s"
                     "%s%s\t    7f03 main+0x3 (/a (b)/x)%s%s", heads[i][0], end, end, end, end, heads[i][1], end, end, end);
            cr_expect(lapse_import_is_perf(first), "%s", first);
            expect_folded(lapse_import_perf, text, &in_ns, "main 5000000\nmain;leaf 5000000\n");
            free(first);
        }
}

Test(import, perf_script_without_call_chains)
{
    expect_folded(lapse_import_perf,
                  "            bash 7 5.000001:    4000000 cpu-clock:      7f0000001234 f(int (*)(char))+0x4a (/lib/a)\n"
                  "              dd 8 5.000002:    4000000 cpu-clock:      7f0000001235 [unknown] ([unknown])\n"
                  "          bad ad 8 5.000003:    4000000 cpu-clock:      7f0000001236 f(int (*)(char))+0x4b (/lib/a)\n",
                  &in_ns, "0x7f0000001235 4000000\nf(int (*)(char)) 8000000\n");
}

/* Counts of two events are no sum: the clock's samples are taken, or those of the one that has most. */
Test(import, perf_script_of_several_events)
{
    static const char clock[] = "a 1 1.0: 1 page-faults: \n\t10 f+0x1 (x)\n\na 1 1.1: 7000 task-clock: \n\t10 g+0x1 (x)\n\n"
                                "a 1 1.2: 1 page-faults: \n\t10 h+0x1 (x)\n\n";
    static const char most[] = "a 1 1.0: 9 cache-misses: \n\t10 f+0x1 (x)\n\na 1 1.1: 20 cycles: \n\t10 g+0x1 (x)\n\n"
                               "a 1 1.2: 30 cycles: \n\t10 g+0x1 (x)\n\n";
    const char *copy = path_of("copy.lapse");
    char error[256];
    struct lapse_profile *profile;
    expect_folded(lapse_import_perf, most, &in_ns, "g 50\n");
    expect_folded(lapse_import_perf, clock, &in_ns, "g 7000\n");
    import_text(lapse_import_perf, (struct text){ (char *)(uintptr_t)clock, sizeof clock - 1 }, copy);
    cr_assert_eq(lapse_profile_open(&profile, &copy, 1, &(struct lapse_profile_options){ 0 }, error, sizeof error), 0);
    bool told = false;
    for (uint32_t i = 0; i < profile->note_count; i++)
        told |= strstr(profile->notes[i], "2 samples of other events than task-clock were left out") != NULL;
    cr_expect(told);
    lapse_profile_close(profile);
}

Test(import, folded_text_is_no_perf_script)
{
    static const char *const lines[] = { "a;b 3", "main 4", "operator new 12 5", "a;b 12 c: 3", "x:1:2 5" };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char *line = strdup(lines[i]);
        cr_expect_not(lapse_import_is_perf(line), "%s", lines[i]);
        free(line);
    }
}

Test(import, folded_with_threads_decimals_and_comments)
{
    expect_folded(lapse_import_folded, "# a comment\n[pool tid=12];a;b c 3\na;b c 1.6\r\n\nx 0\n",
                  &(struct lapse_export_options){ .threads = true, .unit = LAPSE_UNIT_DEFAULT },
                  "[folded tid=1];a;b c 2\n[pool tid=12];a;b c 3\n");
}

Test(import, speedscope_events_become_stretches)
{
    expect_folded(lapse_import_speedscope,
                  "{\"shared\":{\"frames\":[{\"name\":\"a\"},{\"name\":\"b\",\"file\":\"f.c\",\"line\":3}]},"
                  "\"profiles\":[{\"type\":\"evented\",\"name\":\"t\",\"unit\":\"microseconds\","
                  "\"startValue\":10,\"endValue\":20,\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":10},"
                  "{\"type\":\"O\",\"frame\":1,\"at\":12},{\"type\":\"C\",\"frame\":1,\"at\":15},"
                  "{\"type\":\"C\",\"frame\":0,\"at\":20}]}]}",
                  &in_ns, "a 7000\na;b 3000\n");
}

static void expect_refusal(lapse_import_reader *reader, const char *input, size_t size)
{
    char error[256] = "";
    int result = import_bytes(reader, input, size, path_of("copy.lapse"), error, sizeof error);
    cr_expect_lt(result, 0, "%.*s", (int)size, input);
    cr_expect(*error && !strchr(error, '\n'), "%s", error);
}

Test(import, wrong_input_is_refused_with_a_line)
{
    static const char *const speedscopes[] = {
        "{", "[]", "{\"profiles\":3}", "{\"shared\":{\"frames\":[]},\"profiles\":[{\"type\":\"sampled\","
        "\"unit\":\"none\",\"samples\":[[0]],\"weights\":[1]}]}",
        "{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\","
        "\"samples\":[[0]],\"weights\":[]}]}",
        "{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"type\":\"sampled\",\"unit\":\"none\","
        "\"samples\":[[0]],\"weights\":[-1]}]}",
        "{\"shared\":{\"frames\":[{\"name\":\"a\"}]},\"profiles\":[{\"type\":\"evented\",\"unit\":\"none\","
        "\"events\":[{\"type\":\"C\",\"frame\":0,\"at\":1}]}]}",
    };
    for (size_t i = 0; i < sizeof speedscopes / sizeof *speedscopes; i++)
        expect_refusal(lapse_import_speedscope, speedscopes[i], strlen(speedscopes[i]));
    expect_refusal(lapse_import_folded, "a;b c\n", 6);
    expect_refusal(lapse_import_folded, "a -5\n", 5);
    expect_refusal(lapse_import_perf, "nothing here\n", 13);
    expect_refusal(lapse_import_pprof, "\x0a\x7f", 2);
    expect_refusal(lapse_import_pprof, "\x1f\x8b\x08nonsense", 11);
}

/* Any single wrong byte of a profile: an error or a profile, never a crash or an endless run. */
Test(import, damaged_pprof_is_survived)
{
    struct lapse_test_recording recording = { .seed = 3, .stacks = 5, .samples = 20, .lines = true };
    const char *original = path_of("original.lapse");
    char error[256], *bytes;
    size_t size;
    lapse_test_make_recording(original, &recording);
    struct text packed = export_file(original, "pprof", &in_ns, NULL);
    FILE *from = fmemopen(packed.bytes, packed.size, "r");
    cr_assert_eq(lapse_import_slurp(from, &bytes, &size), 0);
    fclose(from);
    int read = 0;
    for (size_t i = 0; i < size; i++) {
        char kept = bytes[i];
        bytes[i] = (char)(kept ^ (1 + i * 37 % 255));
        if (bytes[0] != '\x1f')
            read += !import_bytes(lapse_import_pprof, bytes, size, path_of("copy.lapse"), error,
                                  sizeof error);
        bytes[i] = kept;
    }
    cr_expect_gt(read, 0);
    free(bytes);
    free(packed.bytes);
}
