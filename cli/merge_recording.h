/* SPDX-License-Identifier: MIT */
/* Recordings as inputs of `lapse merge`: each is folded as `lapse export --to=folded` does it. Where
 * the inputs hold different builds of one module, its functions carry the build id. */
#ifndef LAPSE_CLI_MERGE_RECORDING_H
#define LAPSE_CLI_MERGE_RECORDING_H

#include <stdbool.h>

#include "folded_merge.h"
#include "index.h"

struct lapse_merge_builds {
    struct lapse_strings paths;  /* of modules, by number */
    struct lapse_strings builds; /* build ids */
    uint32_t *first;             /* build of each path; LAPSE_INDEX_NONE: there are several */
};

/* First pass: note which builds of which modules a recording holds. Second: add its stacks, as those
 * of the input `name`. Both return the exit status. */
int lapse_merge_note_builds(struct lapse_merge_builds *builds, const char *path);
int lapse_merge_add_recording(struct lapse_folded_merge *merge,
                              const struct lapse_merge_builds *builds, const char *path,
                              const char *name);
void lapse_merge_builds_free(struct lapse_merge_builds *builds);

#endif
