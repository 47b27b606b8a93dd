/* SPDX-License-Identifier: MIT */
/* The options of a session: LAPSE_* variables and struct lapse_options, checked, in one place. Called
 * before a session starts, outside the handler, without malloc. */
#ifndef LAPSE_RUNTIME_OPTIONS_H
#define LAPSE_RUNTIME_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "lapse.h"
#include "lapse/diff.h"
#include "message.h"

#define LAPSE_PATH_MAX 4096
#define LAPSE_RINGS_MAX 256

struct lapse_settings {
    char out[LAPSE_PATH_MAX]; /* pattern, not yet expanded */
    uint32_t hz;
    uint64_t period_ns;
    enum lapse_clock clock;
    uint32_t depth;
    uint32_t exports; /* LAPSE_EXPORT_FOLDED | LAPSE_EXPORT_EVENTS */
    uint32_t min_samples;
    enum lapse_close close;
    uint64_t gap_ns;
    bool start_paused;
    int toggle_signal;
    uint64_t duration_ns, delay_ns;
    bool follow;
    int signal;
    bool respect_mask, quiet, verbose;
    uint32_t exit_budget_ms;
    uint8_t run_id[16];
    bool has_run_id;
    uint32_t run_index, run_variant;
    char rings[LAPSE_RINGS_MAX]; /* folder for the ring's file; empty: private memory */
    char shared[LAPSE_RINGS_MAX]; /* start of the name of a file for profiles of short processes; empty: none */
};

/* Defaults, then `options` (NULL: none), then, if `environment` is not NULL, its LAPSE_* variables.
 * Returns 0, or -EINVAL with one line about the first bad value in `error`. */
int lapse_options_read(struct lapse_settings *settings, const struct lapse_options *options,
                       char *const *environment, struct lapse_text *error);

/* Expand %p %e %t %% of `pattern` into an absolute path. `cwd` is put before a relative one.
 * Returns 0, -ENAMETOOLONG, or -EINVAL (unknown %). */
struct lapse_path_values {
    uint32_t pid;
    const char *program;
    uint64_t realtime_s;
    const char *cwd;
};
int lapse_path_expand(char path[LAPSE_PATH_MAX], const char *pattern,
                      const struct lapse_path_values *values);

/* The value of a variable in an environment block, or NULL. */
const char *lapse_environment_get(char *const *environment, const char *name);

#endif
