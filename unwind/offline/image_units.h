/* SPDX-License-Identifier: MIT */
/* The units of an image: listed once, built on demand, dropped when the cache is full.
 * image.c holds the other half. Offline only. */
#ifndef LAPSE_OFFLINE_IMAGE_UNITS_H
#define LAPSE_OFFLINE_IMAGE_UNITS_H

#include "image.h"
#include "split_unit.h"

struct lapse_image_unit {
    struct lapse_image_unit *newer, *older; /* in the cache */
    struct lapse_unit_place skeleton;       /* in the image's own file */
    struct lapse_unit_place place;          /* where the entries are */
    const struct lapse_unit_source *source;
    struct lapse_split_unit *split;
    struct lapse_unit built;
    bool is_built;
};

struct lapse_image {
    struct lapse_module_files files;
    struct lapse_image_services *services;
    struct lapse_symbol_table symbols;
    bool symbols_loaded, units_listed, package_tried;
    Dwarf *dwarf, *alternate;
    struct lapse_unit_source source;
    struct lapse_object_file *package; /* .dwp */
    char *cut_split; /* path of a .dwo file that became shorter while it was read */
    struct {
        uint64_t start, end;
    } code[16]; /* executable segments */
    uint32_t code_count;
    struct lapse_image_unit *units;
    size_t unit_count, unit_capacity;
    uint64_t read_bytes; /* of entries, since pages were last given back */
    struct lapse_range_map unit_map;
};

/* The unit that covers an address, built; NULL when there is none. Valid until the next call. */
struct lapse_image_unit *lapse_image_units_find(struct lapse_image *image, uint64_t address);
void lapse_image_units_free(struct lapse_image *image);

#endif
