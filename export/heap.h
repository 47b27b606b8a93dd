/* SPDX-License-Identifier: MIT */
/* The C library's heap as an allocator, for offline users of call trees. Never inside a host. */
#ifndef LAPSE_EXPORT_HEAP_H
#define LAPSE_EXPORT_HEAP_H

#include "lapse/diff.h"

extern const struct lapse_allocator lapse_heap;

#endif
