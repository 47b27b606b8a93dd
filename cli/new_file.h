/* SPDX-License-Identifier: MIT */
/* A file that the commands make: it appears under its name when it is whole, and what was there before
 * stays until then. A command that fails or is killed in the middle leaves nothing behind where the
 * file system knows files without a name. What is no regular file (a device, a pipe) is written
 * straight. */
#ifndef LAPSE_CLI_NEW_FILE_H
#define LAPSE_CLI_NEW_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

struct lapse_new_file {
    FILE *file;
    char path[PATH_MAX], temporary[PATH_MAX];
    bool direct, named; /* written straight; the temporary file has a name already */
    bool must_be_new;   /* the user's: -EEXIST where something is by then */
};

/* Returns 0 or a negative errno. */
int lapse_new_file_create(struct lapse_new_file *file, const char *path);

/* Close it; keep it under its name, or throw it away. Returns 0 or a negative errno; a file that cannot
 * be kept is thrown away. */
int lapse_new_file_close(struct lapse_new_file *file, bool keep);

#endif
