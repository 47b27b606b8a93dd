/* SPDX-License-Identifier: MIT */
/* The resolver: asks libunwind for the rule of one address. rules.h says what a rule is. */
#ifndef LAPSE_UNWIND_RESOLVE_H
#define LAPSE_UNWIND_RESOLVE_H

#include "rules.h"

/* After lapse_libunwind_bind, outside any handler. Returns 0 or a negative errno. */
int lapse_resolver_init(void);

/* Does a call instruction end right before `address`? `code` holds the 7 bytes before it. */
LAPSE_SIGSAFE int lapse_is_after_call(const uint8_t code[7]);

#endif
