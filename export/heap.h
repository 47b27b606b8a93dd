/* SPDX-License-Identifier: MIT */
/* The C library's heap as an allocator: for offline users of call trees, and for applications that
 * make an engine without an allocator of their own. The runtime never uses it. */
#ifndef LAPSE_EXPORT_HEAP_H
#define LAPSE_EXPORT_HEAP_H

#include "lapse/diff.h"

extern const struct lapse_allocator lapse_heap;

#endif
