/* SPDX-License-Identifier: MIT */
/* One module's files and tables: frames, function and symbol of an address as linked.
 * Offline only; one owner. */
#ifndef LAPSE_OFFLINE_IMAGE_H
#define LAPSE_OFFLINE_IMAGE_H

#include "debug_file.h"
#include "names.h"
#include "symbol_table.h"
#include "unit.h"

struct lapse_image;
struct lapse_image_unit;

/* Built units of all images, least used first out. */
struct lapse_unit_cache {
    size_t bytes, limit;
    struct lapse_image_unit *newest, *oldest;
};

/* Shared by all images of one symbolizer. */
struct lapse_image_services {
    struct lapse_names *names;
    struct lapse_unit_cache cache;
    const struct lapse_offline_options *options;
};

/* Takes over the files in `files`. NULL when memory is short (files are then closed). */
struct lapse_image *lapse_image_create(struct lapse_module_files *files,
                                       struct lapse_image_services *services);
void lapse_image_destroy(struct lapse_image *image);

/* A file of it that became shorter while it was read, NULL none: nothing is named any more. */
const char *lapse_image_cut_path(const struct lapse_image *image);

/* Outermost first. Beyond `max` the frames next to the outermost are left out. A single frame
 * without a name: only a line is known (padding between functions). */
uint32_t lapse_image_frames(struct lapse_image *image, uint64_t address,
                            struct lapse_inline_frame *frames, uint32_t max);
bool lapse_image_function(struct lapse_image *image, uint64_t address,
                          struct lapse_offline_function *function);
const char *lapse_image_code_path(const struct lapse_image *image);

#endif
