/* SPDX-License-Identifier: MIT */
/* export [SCALE [FORMAT...]]: made recordings of 10 million samples over 200,000 distinct stacks (both
 * divided by SCALE, 1 by default) go through every format. Printed for each: CPU seconds, user and system
 * together, for opening (names, stacks, two passes over the samples) and for writing, how much of both was
 * the system's, bytes, samples a second of all of it, peak memory. The system's part is the file system's:
 * 0.2 to 0.5 s for a GiB, up to 3 s on a busy machine.
 * Two streams of samples: in the first a few calls return and a few are made between samples, as
 * programs do; in the second every third sample draws any stack, in any of eight places of its innermost
 * function (so that pprof and its like have up to 1.6 million stacks): no program does that, it is the
 * worst that calls over time and caches can meet, and not part of the exit status.
 * The files lie in TMPDIR and have no names, so that nothing is left of them however this ends. Folded
 * text is also copied, the yardstick for its own time: writing may take five times as long. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"
#include "format.h"
#include "make_recording.h"

#define SAMPLES 10000000u
#define STACKS 200000u
#define WANTED_RATE 1e6
#define WANTED_COPIES 5

static char recording_path[64], output_path[64], copy_path[64];

/* A file that is gone when the last process that has it open is; children find it under the same path. */
static void make_file(char path[64])
{
    char name[256];
    snprintf(name, sizeof name, "%s/bench-export.XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    int fd = mkstemp(name);
    if (fd < 0 || unlink(name)) {
        perror(name);
        exit(2);
    }
    snprintf(path, 64, "/proc/self/fd/%d", fd);
}

static void empty_file(const char *path)
{
    if (truncate(path, 0)) {
        perror(path);
        exit(2);
    }
}

/* CPU time of this process, user and system: the figure wanted is per core, the machine may be busy. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* The kernel's part of it. */
static double kernel_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_stime.tv_sec + 1e-6 * (double)usage.ru_stime.tv_usec;
}

/* What `cat FILE` does, into another file. */
static double copy_seconds(void)
{
    char *bytes = malloc(1u << 17);
    FILE *from = fopen(output_path, "r"), *to = fopen(copy_path, "w");
    double start = seconds();
    size_t size;
    if (!from || !to || !bytes)
        exit(2);
    setvbuf(from, NULL, _IONBF, 0);
    setvbuf(to, NULL, _IONBF, 0);
    while ((size = fread(bytes, 1, 1u << 17, from)) > 0)
        fwrite(bytes, 1, size, to);
    fclose(to);
    double end = seconds();
    fclose(from);
    empty_file(copy_path);
    free(bytes);
    return end - start;
}

/* One format in a process of its own, so that its peak memory is its own. Returns 0 when fast enough. */
static int measure(const struct lapse_export_format *format)
{
    char error[256] = "";
    const char *path = recording_path;
    struct lapse_profile *profile;
    struct lapse_profile_options options = { .lines = format->lines };
    struct rusage usage;
    double start = seconds(), kernel = kernel_seconds();
    if (lapse_profile_open(&profile, &path, 1, &options, error, sizeof error)) {
        fprintf(stderr, "bench-export: %s\n", error);
        return 2;
    }
    double opened = seconds();
    FILE *to = fopen(output_path, "w");
    int result =
        to ? format->write(profile, to, &(struct lapse_export_options){ 0 }, error, sizeof error)
           : -errno;
    if (!to || result || fclose(to)) {
        fprintf(stderr, "bench-export: %s %s\n", format->name, error);
        return 2;
    }
    double written = seconds();
    kernel = kernel_seconds() - kernel;
    double rate = (double)profile->count / (written - start);
    uint32_t stacks = profile->leaf_count;
    FILE *back = fopen(output_path, "r");
    fseek(back, 0, SEEK_END);
    getrusage(RUSAGE_SELF, &usage);
    printf(
        "%-11s %6.2f s open %6.2f s write (%5.2f s system) %7.1f MiB %6.2f M samples/s %6ld MiB peak "
        "%7u stacks\n",
        format->name, opened - start, written - opened, kernel, (double)ftell(back) / 1048576,
        rate / 1e6, usage.ru_maxrss / 1024, stacks);
    fclose(back);
    bool good = rate >= WANTED_RATE;
    if (!strcmp(format->name, "folded")) {
        double copied = copy_seconds();
        printf("%-11s writing takes %.1f times as long as copying its output (%.3f s)\n", "",
               (written - opened) / copied, copied);
        good &= written - opened <= WANTED_COPIES * copied;
    }
    fflush(stdout);
    return good ? 0 : 1;
}

static int count_edge(void *context, const struct lapse_call_edge *edge)
{
    (void)edge;
    ++*(uint64_t *)context;
    return 0;
}

/* How much the stream moves: starts and ends of calls a sample. */
static void print_edges(void)
{
    char error[256];
    const char *path = recording_path;
    struct lapse_profile *profile;
    uint64_t edges = 0;
    struct lapse_calls_options options = {
        .edge = count_edge,
        .context = &edges,
        .export_options = &(struct lapse_export_options){ 0 },
    };
    if (lapse_profile_open(&profile, &path, 1, NULL, error, sizeof error) ||
        lapse_calls(profile, &options))
        exit(2);
    printf("%.1f starts and ends of calls a sample, %u distinct stacks by function\n",
           (double)edges / (double)profile->count, profile->leaf_count);
    fflush(stdout);
    lapse_profile_close(profile);
}

static int measure_apart(const struct lapse_export_format *format)
{
    int status = 0;
    pid_t child = fork();
    if (!child)
        _exit(measure(format));
    if (child < 0 || waitpid(child, &status, 0) != child)
        return 2;
    empty_file(output_path);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}

/* Every format that is asked for. Returns the worst result. */
static int measure_all(const struct lapse_test_recording *recording, int argc, char **argv)
{
    int worst = 0;
    lapse_test_make_recording(recording_path, recording);
    printf("%u samples, %u stacks up to %u frames deep, %u threads, %s\n", recording->samples,
           recording->stacks, recording->depth, recording->threads,
           recording->walk ? "a few calls change between samples" : "every third sample any stack");
    print_edges();
    for (const struct lapse_export_format *format = lapse_export_formats; format->name; format++) {
        bool wanted = argc < 3;
        for (int i = 2; i < argc; i++)
            wanted |= !strcmp(argv[i], format->name);
        int result = wanted ? measure_apart(format) : 0;
        worst = result > worst ? result : worst;
    }
    empty_file(recording_path);
    return worst;
}

int main(int argc, char **argv)
{
    unsigned long scale = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    if (!scale)
        scale = 1;
    make_file(recording_path);
    make_file(output_path);
    make_file(copy_path);
    struct lapse_test_recording recording = {
        .samples = (uint32_t)(SAMPLES / scale), .stacks = (uint32_t)(STACKS / scale), .threads = 8,
        .depth = 40, .functions = (uint32_t)(20000 / scale + 10), .modules = 10, .seed = 1,
        .walk = true, .leaf_pcs = 1,
    };
    int result = measure_all(&recording, argc, argv);
    recording.walk = false;
    recording.leaf_pcs = 8;
    int worst = measure_all(&recording, argc, argv);
    return worst > 1 ? worst : result;
}
