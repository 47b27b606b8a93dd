/* SPDX-License-Identifier: MIT */
/* Frames of liblapse itself in captured stacks: interposed functions in which a tick that was held
 * back is delivered, those that stand between a host's call and the C library's function, the start
 * of threads. They are no part of the program and are taken out before a stack is interned.
 * Context: the drain thread. */
#ifndef LAPSE_RUNTIME_OWN_FRAMES_H
#define LAPSE_RUNTIME_OWN_FRAMES_H

#include <stdint.h>

/* Addresses [start, end). */
struct lapse_own_code { uint64_t start, end; };

/* Where liblapse.so is mapped; empty when lapse is part of another file, whose other code cannot be
 * told from it by address. No lock, no allocation. */
struct lapse_own_code lapse_own_code_find(void);

/* Takes what lies in `own` out of a stack (leaf first, as captured). When that was the leaf, its
 * caller is it now, at the call instruction. Returns the new depth. */
uint32_t lapse_own_frames_strip(const struct lapse_own_code *own, uint64_t *pcs, uint32_t depth);

#endif
