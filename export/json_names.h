/* SPDX-License-Identifier: MIT */
/* The names of a profile's functions as JSON strings, escaped once for all their uses.
 * Offline only. */
#ifndef LAPSE_EXPORT_JSON_NAMES_H
#define LAPSE_EXPORT_JSON_NAMES_H

#include "json_writer.h"
#include "profile.h"

struct lapse_json_names {
    struct lapse_output text;
    size_t *offsets; /* of each function's string, quotes included; one more at the end */
    uint32_t *numbers; /* by function: equal for equal names */
};

int lapse_json_names_init(struct lapse_json_names *names, const struct lapse_profile *profile);
void lapse_json_names_fini(struct lapse_json_names *names);

/* Lay a name behind what is there already (lapse_lay). */
static inline size_t lapse_json_name_size(const struct lapse_json_names *names, uint32_t function)
{
    return names->offsets[function + 1] - names->offsets[function];
}
static inline char *lapse_json_name_lay(char *to, const struct lapse_json_names *names,
                                        uint32_t function)
{
    return lapse_lay(to, names->text.bytes + names->offsets[function],
                     lapse_json_name_size(names, function));
}

#endif
