/* SPDX-License-Identifier: MIT */
/* The spool file: chunks appended as they come, readable whatever happens to the process. Owned by
 * the drain thread; raw system calls. A profiler must never write into its host's files: the
 * descriptor is numbered high, closes on exec, and is proved to be ours before each write; a host
 * that closed it costs one more open. */
#ifndef LAPSE_RUNTIME_SPOOL_H
#define LAPSE_RUNTIME_SPOOL_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"
#include "wire.h"

struct lapse_spool {
    char base[LAPSE_PATH_MAX]; /* absolute, expanded, with its number once the file exists */
    char path[LAPSE_PATH_MAX]; /* base + ".lapse" */
    _Atomic int fd;            /* -1: none; read by the interposed close and its kin */
    bool exists;
    uint64_t device, inode;
    uint64_t size;
    uint64_t errors;
};

/* Write a chunk with this body. Makes the file when it is the first. Returns 0 or a negative errno;
 * the file then ends where it ended before. */
int lapse_spool_append(struct lapse_spool *spool, const void *body, uint32_t size);
/* Read back at `offset`; fewer bytes than asked only at the end. Returns bytes or -errno. */
long lapse_spool_read(struct lapse_spool *spool, void *to, size_t size, uint64_t offset);
void lapse_spool_close(struct lapse_spool *spool);

/* Make a file next to the spool (base + suffix; a number before the suffix when it exists), high and
 * close-on-exec. Returns the descriptor or -errno. `path` has LAPSE_PATH_MAX bytes. */
int lapse_spool_create_output(const struct lapse_spool *spool, const char *suffix, char *path);
/* All bytes, or -errno. Never raises SIGXFSZ: the limit is looked at before. */
int lapse_spool_write_all(int fd, const void *bytes, size_t size, uint64_t offset);

#endif
