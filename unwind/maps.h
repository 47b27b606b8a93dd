/* SPDX-License-Identifier: MIT */
/* /proc/thread-self/maps, line by line, through raw system calls. Used by modules.c; drain thread. */
#ifndef LAPSE_UNWIND_MAPS_H
#define LAPSE_UNWIND_MAPS_H

#include <stdint.h>

#define LAPSE_MAPS_BUFFER 8192 /* longest line: a path of 4,096 bytes, escaped in part */

struct lapse_maps_line {
    uint64_t start, end, offset, device, inode;
    int readable, executable;
    const char *path; /* unescaped, without the mark of deleted files; valid until the next line */
    uint32_t path_size;
};

struct lapse_maps {
    int fd;
    uint32_t begin, end; /* bytes of the buffer that are not yet given out */
    char buffer[LAPSE_MAPS_BUFFER];
};

int lapse_maps_open(struct lapse_maps *maps);
void lapse_maps_close(struct lapse_maps *maps);
/* Returns 1, 0 at the end, or a negative errno. */
int lapse_maps_next(struct lapse_maps *maps, struct lapse_maps_line *line);

#endif
