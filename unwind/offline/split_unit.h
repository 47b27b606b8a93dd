/* SPDX-License-Identifier: MIT */
/* Split DWARF: the entries of a unit in a .dwo file of its own, or in one .dwp package beside the
 * binary. Either way the unit becomes one small image in memory with the plain section names, and
 * libdw reads names from it; only the strings that the unit uses are copied. Offline only. */
#ifndef LAPSE_OFFLINE_SPLIT_UNIT_H
#define LAPSE_OFFLINE_SPLIT_UNIT_H

#include "object_file.h"
#include "unit.h"

struct lapse_split_unit {
    struct lapse_object_file *file;
    struct lapse_unit_source source;
    struct lapse_unit_place place;
};

/* What the skeleton says about its split unit. */
struct lapse_skeleton {
    uint64_t id;
    const char *name, *compile_dir;
    struct lapse_range_bases bases;       /* addr and address count */
    struct lapse_range_sections sections; /* addr and ranges of the skeleton's file */
};

/* `package` is an opened .dwp file or NULL, `binary` the path of the file with the skeleton.
 * Returns 0 or a negative errno; -ESTALE: a .dwo file, whose path then is in cut[size], became shorter while
 * it was read. */
int lapse_split_unit_open(struct lapse_split_unit **split, const struct lapse_skeleton *skeleton,
                          const struct lapse_object_file *package, const char *binary,
                          const char *symfs, char *cut, size_t size);
void lapse_split_unit_close(struct lapse_split_unit *split);

#endif
