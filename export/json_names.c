/* SPDX-License-Identifier: MIT */
/* See json_names.h. */
#include "json_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index.h"

int lapse_json_names_init(struct lapse_json_names *names, const struct lapse_profile *profile)
{
    struct lapse_strings distinct = { 0 };
    int error = lapse_output_init(&names->text, NULL);
    names->offsets = calloc(profile->function_count + 1u, sizeof *names->offsets);
    names->numbers = calloc(profile->function_count + 1u, sizeof *names->numbers);
    if (!names->offsets || !names->numbers)
        error = -ENOMEM;
    for (uint32_t i = 0; i < profile->function_count && !error; i++) {
        const char *name = profile->functions[i].name;
        names->numbers[i] = lapse_strings_number(&distinct, name, strlen(name));
        lapse_json_string(&names->text, name);
        names->offsets[i + 1] = names->text.size;
        error = names->numbers[i] == LAPSE_INDEX_NONE ? -ENOMEM : names->text.error;
    }
    lapse_output_pad(&names->text);
    lapse_strings_free(&distinct);
    if (error)
        lapse_json_names_fini(names);
    return error;
}

void lapse_json_names_fini(struct lapse_json_names *names)
{
    lapse_output_fini(&names->text);
    free(names->offsets);
    free(names->numbers);
    *names = (struct lapse_json_names){ 0 };
}
