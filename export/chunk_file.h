/* SPDX-License-Identifier: MIT */
/* The chunks of a file, one after the other, past whatever is damaged. The layer below recording.h;
 * `lapse recover` and tests use it too. Offline only; one owner.
 *
 * What is taken for a chunk: a head whose own checksum is right, followed by a body whose checksum is
 * right. Anything else is stepped over byte by byte up to the next head whose checksum is right: a
 * spool that was cut in the middle of a chunk may have another file's chunks right behind it. */
#ifndef LAPSE_EXPORT_CHUNK_FILE_H
#define LAPSE_EXPORT_CHUNK_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "recording.h"

struct lapse_chunk_file {
    int fd;
    uint64_t size, offset; /* size as it was at opening: a file that still grows is read up to there */
    uint8_t *window;       /* bytes from window_offset on */
    uint64_t window_offset;
    size_t window_size;
    uint64_t patience;     /* bytes that may still be read again because of wrong heads */
};

/* Takes over a descriptor from lapse_open_seekable. Returns 0 or a negative errno. */
int lapse_chunk_file_open(struct lapse_chunk_file *file, int fd);
void lapse_chunk_file_close(struct lapse_chunk_file *file);
void lapse_chunk_file_rewind(struct lapse_chunk_file *file);
void lapse_chunk_file_idle(struct lapse_chunk_file *file); /* give the window back until it is needed */

/* The next good chunk: its body, valid until the next call. *gap says that something was lost right
 * before it. Returns 1, 0 at the end, -EIO or the like when the file cannot be read. */
int lapse_chunk_file_next(struct lapse_chunk_file *file, struct lapse_damage *damage,
                          const uint8_t **body, uint32_t *size, bool *gap);

/* A file to read from: "-" is standard input, and what is no regular file is copied to a temporary file
 * without a name first. Returns a descriptor that can be sought, or a negative errno. */
int lapse_open_seekable(const char *path);
/* A device that gives bytes, as /dev/zero: a copy of it would fill the disk, a line of it the memory.
 * Takes a byte of one. */
struct stat;
bool lapse_is_endless(int fd, const struct stat *status);
/* The copy: what was read already, then the rest of `from`. A descriptor at its start, or a negative
 * errno. */
int lapse_copy_to_temporary(const void *head, size_t head_size, int from);

#endif
