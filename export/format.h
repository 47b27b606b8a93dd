/* SPDX-License-Identifier: MIT */
/* The table of output formats: what `lapse export --to=NAME` can write. One writer per file; a new
 * one is declared here and gets its line in format.c. Offline only. */
#ifndef LAPSE_EXPORT_FORMAT_H
#define LAPSE_EXPORT_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile.h"

/* Unit of weights where a format leaves the choice. */
enum lapse_export_unit {
    LAPSE_UNIT_DEFAULT, /* samples of one period for folded text, else the format's own */
    LAPSE_UNIT_SAMPLES,
    LAPSE_UNIT_US,
    LAPSE_UNIT_NS,
};

/* All zero is the default. A format takes what applies to it and leaves the rest. */
struct lapse_export_options {
    const char *title;     /* NULL: made from the processes */
    bool threads;          /* a frame per thread below the root */
    bool processes;        /* a frame per process, outside the thread's */
    bool labels;           /* a frame per label set, inside the thread's */
    const char *label_root; /* a frame per value of this label (none without it), inside the thread's */
    bool lines;            /* names with `:LINE`, stacks apart by line */
    enum lapse_export_unit unit;
    bool inverted;         /* pictures: leaf first */
    double minimum;        /* pictures: leave out shares below this (0.001 is 0.1 %) */
    uint32_t width;        /* pictures: pixels, 0 the format's own */
    /* Events, for formats that draw calls over time: options of lapse/diff.h. */
    uint32_t min_samples;
    enum lapse_close close;
    uint64_t gap_ns;
    uint32_t only_thread;  /* callgrind: index of a thread plus one; 0: all of them in one */
};

struct lapse_export_format {
    const char *name;      /* after --to= */
    const char *extension; /* of a file name that is made up: "folded", "pb.gz" */
    const char *help;      /* one line */
    /* Write all of it to `to` (which the caller opens, flushes, checks and closes). Returns 0 or a
     * negative errno with one line in `error`. */
    int (*write)(struct lapse_profile *profile, FILE *to,
                 const struct lapse_export_options *options, char *error, size_t error_size);
    bool lines; /* to be opened with lapse_profile_options.lines: it shows pcs, lines or call sites */
};

/* All formats; ends with an entry whose name is NULL. */
extern const struct lapse_export_format lapse_export_formats[];

/* The entry of that name, or NULL. */
const struct lapse_export_format *lapse_export_format_find(const char *name);

/* The writers. */
int lapse_write_folded(struct lapse_profile *profile, FILE *to,
                       const struct lapse_export_options *options, char *error, size_t error_size);
int lapse_write_events(struct lapse_profile *profile, FILE *to,
                       const struct lapse_export_options *options, char *error, size_t error_size);
int lapse_write_intervals(struct lapse_profile *profile, FILE *to,
                          const struct lapse_export_options *options, char *error,
                          size_t error_size);
int lapse_write_html(struct lapse_profile *profile, FILE *to,
                     const struct lapse_export_options *options, char *error, size_t error_size);
int lapse_write_pprof(struct lapse_profile *profile, FILE *to,
                      const struct lapse_export_options *options, char *error, size_t error_size);
int lapse_write_chrome(struct lapse_profile *profile, FILE *to,
                       const struct lapse_export_options *options, char *error, size_t error_size);
int lapse_write_perfetto(struct lapse_profile *profile, FILE *to,
                         const struct lapse_export_options *options, char *error,
                         size_t error_size);
int lapse_write_speedscope(struct lapse_profile *profile, FILE *to,
                           const struct lapse_export_options *options, char *error,
                           size_t error_size);
int lapse_write_firefox(struct lapse_profile *profile, FILE *to,
                        const struct lapse_export_options *options, char *error, size_t error_size);
int lapse_write_callgrind(struct lapse_profile *profile, FILE *to,
                          const struct lapse_export_options *options, char *error,
                          size_t error_size);
int lapse_write_svg(struct lapse_profile *profile, FILE *to,
                    const struct lapse_export_options *options, char *error, size_t error_size);

#endif
