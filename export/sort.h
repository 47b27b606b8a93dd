/* SPDX-License-Identifier: MIT */
/* Heap sort of numbers that stand for things: no recursion and no memory, so that it runs inside the
 * host as well. Equal things come in any order. */
#ifndef LAPSE_EXPORT_SORT_H
#define LAPSE_EXPORT_SORT_H

#include <stdbool.h>
#include <stdint.h>

typedef bool lapse_less(void *context, uint32_t a, uint32_t b);
void lapse_sort(uint32_t *items, uint32_t count, lapse_less *less, void *context);

#endif
