/* SPDX-License-Identifier: MIT */
/* Debug files from a server, through libdebuginfod (which keeps the cache). Loaded when needed
 * only, so that the command runs without it. Offline only. */
#ifndef LAPSE_OFFLINE_DEBUGINFOD_H
#define LAPSE_OFFLINE_DEBUGINFOD_H

#include "object_file.h"
#include "offline.h"

/* Path of the cached debug file (allocated), or NULL: not asked (DEBUGINFOD_URLS is unset, or the
 * options say no), no library, or the servers do not have it. */
char *lapse_debuginfod_find(const struct lapse_build_id *id,
                            const struct lapse_offline_options *options);

#endif
