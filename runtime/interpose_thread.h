/* SPDX-License-Identifier: MIT */
/* Threads that the host makes: pthread_create is interposed so that a thread ticks from its first
 * instruction to its last key destructor. */
#ifndef LAPSE_RUNTIME_INTERPOSE_THREAD_H
#define LAPSE_RUNTIME_INTERPOSE_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "slots.h"

/* Before the session's first thread: finds the real functions, makes the key. Returns 0 or -errno. */
int lapse_threads_init(void);

/* The calling thread's slot, made if it has none. `from_ns`: CPU time already used that counts. */
void lapse_thread_adopt_self(struct lapse_stack_bounds stack, uint64_t from_ns);
/* NULL when it has none in this session. */
struct lapse_slot *lapse_thread_self(void);
/* Bounds of the main thread's stack. */
struct lapse_stack_bounds lapse_thread_main_bounds(void);
struct lapse_stack_bounds lapse_thread_own_bounds(void);
/* After fork: the slot table was reset; the calling thread has no slot any more. */
void lapse_thread_forget_self(void);

/* What a new thread runs; its frame is left out of stacks. */
void *lapse_thread_start(void *slot);

#endif
