/* SPDX-License-Identifier: MIT */
/* Makes a recording out of somebody else's profile: readers of other formats (import_*.c) define
 * modules, functions and locations, then add samples; out comes one session.
 *
 * Names live at addresses that are made up: each module has a range, functions count up from its
 * start, locations that have lines or inlined functions from its middle. What has no line needs no
 * address: its pc is 0, as for folded text.
 *
 * Samples with times are streamed out; samples without are summed per stack, then written with times
 * that follow from their weights, and a note says so.
 * Called by `lapse import`. Offline only; memory: distinct stacks. */
#ifndef LAPSE_EXPORT_IMPORTER_H
#define LAPSE_EXPORT_IMPORTER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct lapse_importer;

struct lapse_importer_head {
    const char *program, *command;
    uint64_t period_ns;
    uint64_t start_realtime_ns; /* 0 unknown */
    uint32_t pid;
    bool wall; /* weights are elapsed, not CPU time */
    bool counts; /* the input has counts, not times: each stands for a period */
    uint64_t identity; /* anything that tells this input from others */
};

/* Returns 0 or -ENOMEM. `to` stays the caller's. */
int lapse_importer_create(struct lapse_importer **importer, FILE *to);
/* Samples without times become a sample for each count, up to so many in all (20 million unless
 * said); of more, each stack is one sample. */
void lapse_importer_expand(struct lapse_importer *importer, uint64_t most);
/* To be called once, before the first sample. */
void lapse_importer_head(struct lapse_importer *importer, const struct lapse_importer_head *head);

/* All return numbers for later use, or LAPSE_INDEX_NONE without memory. Equal things are one. */
uint32_t lapse_importer_module(struct lapse_importer *importer, const char *path,
                               const char *build_id_hex);
struct lapse_imported_function {
    const char *name, *system_name, *file; /* the last two may be NULL */
    uint32_t line;
    uint32_t module; /* LAPSE_INDEX_NONE: none known */
};
uint32_t lapse_importer_function(struct lapse_importer *importer,
                                 const struct lapse_imported_function *function);
struct lapse_imported_line { uint32_t function, line; };
/* A place in the code: the real function first, then what is inlined into it. */
uint32_t lapse_importer_location(struct lapse_importer *importer,
                                 const struct lapse_imported_line *lines, uint32_t count);
uint32_t lapse_importer_thread(struct lapse_importer *importer, uint32_t tid, const char *name);
/* A label set: `count` pairs of key and value. 0 is the empty set. */
uint32_t lapse_importer_labels(struct lapse_importer *importer, const char *const *pairs,
                               uint32_t count);

struct lapse_imported_sample {
    const uint32_t *locations; /* outermost first */
    uint32_t depth;
    uint32_t thread, labels;
    uint64_t time_ns; /* 0: unknown */
    uint64_t count;   /* samples, for those without a time */
    uint64_t weight_ns; /* of all of them; with head.counts: not used */
};
void lapse_importer_sample(struct lapse_importer *importer, const struct lapse_imported_sample *sample);

void lapse_importer_note(struct lapse_importer *importer, const char *text);
/* Write what is left. Returns 0 or the first failure of all. */
int lapse_importer_finish(struct lapse_importer *importer);
void lapse_importer_destroy(struct lapse_importer *importer);

/* Readers: each takes the whole input from `from` and makes a session of it. `name` is the input's,
 * for the program's name. Return 0 or a negative errno with one line in `error`. */
struct lapse_import_input {
    FILE *from;
    const char *name;
    uint64_t period_ns; /* what one count stands for where the input does not say */
};
typedef int lapse_import_reader(struct lapse_importer *importer,
                                const struct lapse_import_input *input, char *error,
                                size_t error_size);
lapse_import_reader lapse_import_folded, lapse_import_pprof, lapse_import_perf,
    lapse_import_speedscope;

/* Whether a line begins a sample of `perf script`. */
bool lapse_import_is_perf(char *line);

/* Read all of a file, unpacked if it is gzip. The caller frees. Inputs above a bound are refused. */
int lapse_import_slurp(FILE *from, char **bytes, size_t *size);

#endif
