/* SPDX-License-Identifier: MIT */
/* See json_names.h. */
#include "json_names.h"

#include <errno.h>
#include <stdlib.h>

int lapse_json_names_init(struct lapse_json_names *names, const struct lapse_profile *profile)
{
    int error = lapse_output_init(&names->text, NULL);
    names->offsets = calloc(profile->function_count + 1u, sizeof *names->offsets);
    if (!names->offsets)
        error = -ENOMEM;
    for (uint32_t i = 0; i < profile->function_count && !error; i++) {
        lapse_json_string(&names->text, profile->functions[i].name);
        names->offsets[i + 1] = names->text.size;
        error = names->text.error;
    }
    if (error)
        lapse_json_names_fini(names);
    return error;
}

void lapse_json_names_fini(struct lapse_json_names *names)
{
    lapse_output_fini(&names->text);
    free(names->offsets);
    names->offsets = NULL;
}
