/* SPDX-License-Identifier: MIT */
/* make-recording FILE [NAME=NUMBER ...]: a made-up recording, for benchmarks and for trying things out.
 * The names are the fields of struct lapse_test_recording. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "make_recording.h"

static int set(struct lapse_test_recording *recording, const char *name, size_t size, uint64_t value)
{
    const struct { const char *name; uint32_t *number; bool *flag; } fields[] = {
        { "processes", &recording->processes, NULL }, { "threads", &recording->threads, NULL },
        { "stacks", &recording->stacks, NULL },       { "samples", &recording->samples, NULL },
        { "depth", &recording->depth, NULL },         { "functions", &recording->functions, NULL },
        { "modules", &recording->modules, NULL },     { "leaf_pcs", &recording->leaf_pcs, NULL },   { "walk", NULL, &recording->walk },
        { "runs", NULL, &recording->runs },
        { "no_symbols", NULL, &recording->no_symbols },
        { "labels", NULL, &recording->labels },       { "spans", NULL, &recording->spans },
        { "lines", NULL, &recording->lines },         { "cut", NULL, &recording->cut },
        { "late", NULL, &recording->late },           { "raw", NULL, &recording->raw },
        { "no_end", NULL, &recording->no_end },       { "build", &recording->build, NULL },
    };
    if (size == 4 && !strncmp(name, "seed", 4)) {
        recording->seed = value;
        return 0;
    }
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        if (strlen(fields[i].name) != size || strncmp(fields[i].name, name, size))
            continue;
        if (fields[i].number)
            *fields[i].number = (uint32_t)value;
        else
            *fields[i].flag = value != 0;
        return 0;
    }
    return -1;
}

int main(int argc, char **argv)
{
    struct lapse_test_recording recording = { 0 };
    if (argc < 2) {
        fputs("usage: make-recording FILE [NAME=NUMBER ...]\n", stderr);
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        const char *equals = strchr(argv[i], '=');
        if (!equals || set(&recording, argv[i], (size_t)(equals - argv[i]), strtoull(equals + 1, NULL, 10))) {
            fprintf(stderr, "make-recording: %s: no such field\n", argv[i]);
            return 2;
        }
    }
    unlink(argv[1]);
    lapse_test_make_recording(argv[1], &recording);
    return 0;
}
