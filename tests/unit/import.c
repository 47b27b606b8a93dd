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
#include "wire.h"

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

static int import_bytes_with(struct lapse_import_input *input, lapse_import_reader *reader, struct text text,
                             const char *path, char *error, size_t error_size)
{
    struct lapse_importer *importer;
    FILE *from = fmemopen(text.bytes, text.size, "r"), *to = fopen(path, "w");
    cr_assert(from && to);
    input->from = from;
    cr_assert_eq(lapse_importer_create(&importer, to), 0);
    int result = reader(importer, input, error, error_size);
    if (!result)
        result = lapse_importer_finish(importer);
    lapse_importer_destroy(importer);
    fclose(from);
    fclose(to);
    return result;
}

static int import_bytes(lapse_import_reader *reader, const void *bytes, size_t size, const char *path,
                        char *error, size_t error_size)
{
    struct lapse_import_input input = { .name = "input", .period_ns = 5000000 };
    return import_bytes_with(&input, reader, (struct text){ (char *)(uintptr_t)bytes, size }, path, error, error_size);
}

static void import_with(struct lapse_import_input *input, lapse_import_reader *reader, struct text text,
                        const char *path)
{
    char error[256] = "";
    cr_assert_eq(import_bytes_with(input, reader, text, path, error, sizeof error), 0, "%s", error);
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

/* Names, depths and weights as odd as may be, made of a seed. Nothing that folded text cannot say. */
static struct text odd_folded(uint64_t seed)
{
    static const char *const pieces[] = {
        "main", "f", "\xc3\xbc", "\xe2\x80\xae", "a b", "<&\">", "'\\", "_[k]", "(9)", "0x12", "{x}", "%s", "[", "]",
        "\xf0\x9f\x98\x80", ":", "::~x<y, z>", "\xff\xfe", "-", "__proto__", "[truncated]", "_Z1fv", "7", "x+0x1",
    };
    struct text text;
    FILE *to = open_memstream(&text.bytes, &text.size);
    uint64_t state = seed * 2654435761u + 1;
    for (uint32_t line = 0; line < 1 + seed % 40; line++) {
        uint32_t depth = 1 + line * 7 % 50;
        for (uint32_t i = 0; i < depth; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            uint32_t which = (uint32_t)(state >> 33), size = sizeof pieces / sizeof *pieces;
            bool recursion = which % 3 == 0, is_empty = which % 11 == 0;
            fprintf(to, "%s%s%s", i ? ";" : "", is_empty ? "" : recursion ? "again" : pieces[which % size],
                    is_empty || recursion ? "" : pieces[which / 64 % size]);
        }
        fprintf(to, "x %llu\n", (unsigned long long)(line % 5 == 4 ? (UINT64_C(1) << 53) + (state >> 40) * 2 + 1
                                                                    : state >> (56 + state % 8)));
    }
    fclose(to);
    return text;
}

/* import(export(x)) of any of the formats that are read back is x: stacks with weights in nanoseconds. */
Test(import, odd_names_and_weights_there_and_back)
{
    static const struct { const char *format; lapse_import_reader *reader; } formats[] = {
        { "pprof", lapse_import_pprof }, { "speedscope", lapse_import_speedscope }, { "folded", lapse_import_folded },
    };
    for (uint64_t seed = 1; seed <= 60; seed++) {
        const char *original = path_of("original.lapse"), *copy = path_of("copy.lapse");
        struct lapse_import_input input = { .name = "odd", .period_ns = 1 };
        struct text odd = odd_folded(seed);
        import_with(&input, lapse_import_folded, odd, original);
        struct text left = export_file(original, "folded", &in_ns, NULL);
        cr_expect(left.size > 4 || seed < 3, "seed %llu", (unsigned long long)seed);
        for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
            struct text file = export_file(original, formats[i].format, &in_ns, NULL);
            import_with(&input, formats[i].reader, file, copy);
            struct text right = export_file(copy, "folded", &in_ns, NULL);
            cr_expect_str_eq(right.bytes, left.bytes, "%s, seed %llu", formats[i].format, (unsigned long long)seed);
            free(file.bytes);
            free(right.bytes);
        }
        free(odd.bytes);
        free(left.bytes);
    }
}

/* A pprof profile by hand: two sample types and values, a comment, one function `f`. */
static struct text small_pprof(const char *const types[2], const char *unit, const char *standard, int64_t first)
{
    static uint8_t bytes[512];
    const char *const strings[] = { "", types[0], types[1], unit, standard, "a remark", "f" };
    struct lapse_wire wire = { .bytes = bytes, .capacity = sizeof bytes };
    for (uint64_t i = 1; i <= 2; i++) {
        size_t type = lapse_wire_begin(&wire, 1);
        lapse_wire_uint(&wire, 1, i);
        lapse_wire_uint(&wire, 2, 3);
        lapse_wire_end(&wire, type);
    }
    size_t sample = lapse_wire_begin(&wire, 2);
    lapse_wire_uint(&wire, 1, 1);
    lapse_wire_uint(&wire, 2, (uint64_t)first);
    lapse_wire_uint(&wire, 2, 700);
    lapse_wire_end(&wire, sample);
    size_t location = lapse_wire_begin(&wire, 4);
    lapse_wire_uint(&wire, 1, 1);
    size_t line = lapse_wire_begin(&wire, 4);
    lapse_wire_uint(&wire, 1, 1);
    lapse_wire_end(&wire, line);
    lapse_wire_end(&wire, location);
    size_t function = lapse_wire_begin(&wire, 5);
    lapse_wire_uint(&wire, 1, 1);
    lapse_wire_uint(&wire, 2, 6);
    lapse_wire_end(&wire, function);
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        lapse_wire_bytes(&wire, 6, strings[i], strlen(strings[i]));
    lapse_wire_uint(&wire, 13, 5);
    for (uint64_t i = 1; i <= 2; i++) /* an index of the table, as the type has it */
        if (!strcmp(strings[i], standard))
            lapse_wire_uint(&wire, 14, i);
    cr_assert_not(wire.overflow);
    return (struct text){ (char *)bytes, wire.size };
}

static void expect_pprof(struct text input, uint64_t weight_ns, const char *const notes[])
{
    const char *copy = path_of("copy.lapse");
    char error[256];
    struct lapse_profile *profile;
    import_text(lapse_import_pprof, input, copy);
    cr_assert_eq(lapse_profile_open(&profile, &copy, 1, &(struct lapse_profile_options){ 0 }, error, sizeof error), 0);
    cr_expect_eq(profile->weight_ns, weight_ns, "%llu", (unsigned long long)profile->weight_ns);
    for (; *notes; notes++) {
        bool told = false;
        for (uint32_t i = 0; i < profile->note_count; i++)
            told |= strstr(profile->notes[i], *notes) != NULL;
        cr_expect(told, "%s", *notes);
    }
    lapse_profile_close(profile);
}

Test(import, pprof_takes_the_values_that_pprof_shows_and_says_what_they_are)
{
    static const char *const clocks[] = { "cpu", "wall" }, *const heap[] = { "alloc_space", "inuse_space" };
    static const char *const remark[] = { "a remark", NULL }, *const negative[] = { "1 negative values", NULL },
                      *const unit[] = { "weights are inuse_space (bytes), each shown as a period", NULL };
    expect_pprof(small_pprof(clocks, "microseconds", "", 3), 700000, remark);
    expect_pprof(small_pprof(clocks, "microseconds", "cpu", 3), 3000, remark);
    expect_pprof(small_pprof(clocks, "nanoseconds", "wall", 3), 700, remark);
    expect_pprof(small_pprof(clocks, "nanoseconds", "cpu", -3), 0, negative);
    expect_pprof(small_pprof(heap, "bytes", "", 3), 700 * UINT64_C(5000000), unit);
}

Test(import, weights_beyond_the_range_are_an_error)
{
    static const char text[] = "a 9999999999999999999\n"; /* times the period */
    char error[256] = "";
    cr_expect_eq(import_bytes(lapse_import_folded, text, sizeof text - 1, path_of("copy.lapse"), error, sizeof error),
                 -EOVERFLOW);
}

Test(import, folded_frames_without_a_name_stay_frames)
{
    expect_folded(lapse_import_folded, "a;;b 1\n;c 2\nd; 3\n", &(struct lapse_export_options){ 0 },
                  "[unknown];c 2\na;[unknown];b 1\nd;[unknown] 3\n");
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
    expect_refusal(lapse_import_folded, "a 99999999999999999999\n", 23);
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
