/* SPDX-License-Identifier: MIT */
/* See sort.h. */
#include "sort.h"

void lapse_sort(uint32_t *items, uint32_t count, lapse_less *less, void *context)
{
    for (uint32_t end = count, start = count / 2; end > 1;) {
        uint32_t at, item;
        if (start) {
            at = --start;
            item = items[at];
        } else {
            item = items[--end];
            items[end] = items[0];
            at = 0;
        }
        for (uint32_t child; (child = 2 * at + 1) < end; at = child) {
            if (child + 1 < end && less(context, items[child], items[child + 1]))
                child++;
            if (!less(context, item, items[child]))
                break;
            items[at] = items[child];
        }
        items[at] = item;
    }
}
