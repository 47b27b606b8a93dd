/* SPDX-License-Identifier: MIT */
/* Where the debug information of a module is. Offline only; called once per module. */
#ifndef LAPSE_OFFLINE_DEBUG_FILE_H
#define LAPSE_OFFLINE_DEBUG_FILE_H

#include "object_file.h"
#include "offline.h"

struct lapse_module_files {
    struct lapse_object_file *main; /* the module itself; NULL when it was refused or is gone */
    struct lapse_object_file
        *debug; /* holds .debug_info or a symbol table; NULL when there is none */
    struct lapse_object_file *mini;      /* unpacked .gnu_debugdata */
    struct lapse_object_file *alternate; /* what dwz moved out */
};

/* Find what can be found. `note` (256 bytes or more) gets one line when a file was refused, else
 * "". `wanted` may have size 0 (unknown): then a file changed after `until_realtime_ns` is refused.
 */
void lapse_debug_files_find(struct lapse_module_files *files, const char *path,
                            const struct lapse_build_id *wanted, uint64_t until_realtime_ns,
                            const struct lapse_offline_options *options, char *note,
                            size_t note_size);
void lapse_debug_files_close(struct lapse_module_files *files);

/* The alternate file that `dwarf` of `files->debug` (or main) names, opened; NULL: none. */
struct lapse_object_file *lapse_debug_files_alternate(Dwarf *dwarf, const char *debug_path,
                                                      const struct lapse_offline_options *options);

bool lapse_object_file_has_dwarf(const struct lapse_object_file *file);

#endif
