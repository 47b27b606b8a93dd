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

/* Making a file is the dearest of what ending a session costs (0.4 ms on ext4). So under `lapse record` a
 * process whose whole profile is small and is written at its end shares a file with others: chunks are
 * held in memory, and go to the end of that file in one write. What is too large for that, or finds no
 * such file, goes into a file of its own. */
#define LAPSE_SPOOL_HELD (256u << 10)
#define LAPSE_SPOOL_SHARED_SUFFIX ".many.lapse" /* a spool of its own ends in a pid, or a pid and a number */

struct lapse_spool {
    char base[LAPSE_PATH_MAX]; /* absolute, expanded, with its number once the file exists */
    char path[LAPSE_PATH_MAX]; /* base + ".lapse" */
    _Atomic int fd;            /* -1: none; read by the interposed close and its kin */
    bool exists;
    uint64_t device, inode;
    uint64_t size;
    uint64_t errors;
    char *held;                /* chunks that are in no file yet; NULL: they are not held back */
    uint32_t held_size;
};

/* Write a chunk with this body. Makes the file when it is the first. Returns 0 or a negative errno;
 * the file then ends where it ended before. */
int lapse_spool_append(struct lapse_spool *spool, const void *body, uint32_t size);
/* Read back at `offset`; fewer bytes than asked only at the end. Returns bytes or -errno. */
long lapse_spool_read(struct lapse_spool *spool, void *to, size_t size, uint64_t offset);
void lapse_spool_close(struct lapse_spool *spool);

/* From now on chunks are held in `memory` (LAPSE_SPOOL_HELD bytes), as long as they fit and there is no file. */
void lapse_spool_hold(struct lapse_spool *spool, void *memory);
/* What is held goes into the file that this user's processes share (its name begins with `shared`), or into
 * one of the spool's own. Returns 0 or a negative errno. */
int lapse_spool_let_go(struct lapse_spool *spool, const char *shared);

/* Make a file next to the spool (base + suffix; a number before the suffix when it exists), high and
 * close-on-exec. Returns the descriptor or -errno. `path` has LAPSE_PATH_MAX bytes. */
int lapse_spool_create_output(const struct lapse_spool *spool, const char *suffix, char *path);
/* All bytes, or -errno. Never raises SIGXFSZ: the limit is looked at before. */
int lapse_spool_write_all(int fd, const void *bytes, size_t size, uint64_t offset);

#endif
