/* SPDX-License-Identifier: MIT */
/* Growing arrays for the offline symbolizer: the one place that computes capacities. */
#ifndef LAPSE_OFFLINE_ARRAY_H
#define LAPSE_OFFLINE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Make room for one more item of `size` bytes in *items, which holds `count` of *capacity.
 * False when memory is short; *items is then unchanged. */
static inline bool lapse_array_room(void *items, size_t count, size_t *capacity, size_t size)
{
    void **pointer = items;
    if (count < *capacity)
        return true;
    size_t more = *capacity ? *capacity + *capacity / 2 : 16;
    void *moved = reallocarray(*pointer, more, size);
    if (!moved)
        return false;
    *pointer = moved;
    *capacity = more;
    return true;
}

#endif
