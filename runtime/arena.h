/* SPDX-License-Identifier: MIT */
/* Memory of the runtime, mapped from the kernel: the host's malloc is never called. Blocks of up to
 * 64 KiB come from size classes (powers of two and their halves) cut out of mapped regions and are
 * kept for reuse; larger ones are mappings of their own.
 *
 * One owner at a time: the session's arena belongs to the thread that starts the session and then to
 * the drain thread. lapse_arena_reset gives everything back at once (after fork: what the drain
 * thread was doing in the parent does not matter then). */
#ifndef LAPSE_RUNTIME_ARENA_H
#define LAPSE_RUNTIME_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "lapse/diff.h"

#define LAPSE_ARENA_CLASSES 28

struct lapse_arena {
    void *free[LAPSE_ARENA_CLASSES]; /* lists of blocks given back, by class */
    char *bump, *bump_end;           /* what is left of the newest region */
    void *regions;                   /* every mapping, newest first, for reset */
    size_t mapped;                   /* bytes mapped now */
    size_t limit;                    /* no more than this is ever mapped; 0: no limit */
};

/* Like realloc of struct lapse_allocator; `arena` is the context. */
void *lapse_arena_resize(void *arena, void *old, size_t old_size, size_t new_size);
struct lapse_allocator lapse_arena_allocator(struct lapse_arena *arena);
void lapse_arena_reset(struct lapse_arena *arena);

/* After fork, in the child: what a thread that is gone held is free again. */
void lapse_arena_fork_child(void);

#endif
