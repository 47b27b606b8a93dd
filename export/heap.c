/* SPDX-License-Identifier: MIT */
/* See heap.h. */
#include "heap.h"

#include <stdlib.h>

static void *heap_resize(void *context, void *old, size_t old_size, size_t new_size)
{
    (void)context;
    (void)old_size;
    if (new_size)
        return realloc(old, new_size);
    free(old);
    return NULL;
}

const struct lapse_allocator lapse_heap = { .resize = heap_resize };
