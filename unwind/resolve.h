/* SPDX-License-Identifier: MIT */
/* The resolver: asks libunwind for the rule of one address. rules.h says what a rule is. */
#ifndef LAPSE_UNWIND_RESOLVE_H
#define LAPSE_UNWIND_RESOLVE_H

#include <libunwind-x86_64.h>

#include "memory.h"
#include "rules.h"
#include "unwind_table.h"
#include "walk_frame.h"

/* After lapse_libunwind_bind, outside any handler. Returns 0 or a negative errno. */
int lapse_resolver_init(void);

/* The gate: who is inside may ask libunwind. Enter returns 0 when someone else is inside; `cancel` is
 * for leave. */
LAPSE_SIGSAFE int lapse_resolver_enter(int *cancel);
/* The same, tried a fixed number of times. */
LAPSE_SIGSAFE int lapse_resolver_enter_in_turn(int *cancel);
LAPSE_SIGSAFE void lapse_resolver_leave(int cancel);

/* For the holder of the gate: windows on unwind tables, the entry that find_proc_info answers with,
 * and the accessors of every address space of ours, those of memory and registers still to be set. */
extern struct lapse_windows lapse_resolver_windows;
extern struct lapse_unwind_entry lapse_resolver_entry;
LAPSE_SIGSAFE int lapse_resolver_look_up(uint64_t epoch, uint64_t key);
extern const unw_accessors_t lapse_resolver_accessors;

/* live_sig.c: unwind this very frame where no rule can say it for all. `interrupted` is the frame further
 * in, on the same stack, whose registers are all known. Returns 1 with `frame` changed to the caller, 0 when
 * libunwind fails, -EBUSY when the gate was closed. */
int lapse_live_init(void);
LAPSE_SIGSAFE int lapse_live_step(struct lapse_stack_view *view, const struct lapse_frame *interrupted,
                                  struct lapse_frame *frame);

/* Does a call instruction end right before `address`? `code` holds the 7 bytes before it. */
LAPSE_SIGSAFE int lapse_is_after_call(const uint8_t code[7]);

#endif
