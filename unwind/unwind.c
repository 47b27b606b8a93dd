/* SPDX-License-Identifier: MIT */
/* Setting up the unwinder, and its questions outside the handler. walk.h is the interface. */
#include <errno.h>
#include <string.h>

#include "binding.h"
#include "resolve.h"
#include "unwind_table.h"
#include "walk_frame.h"

extern void *__libc_stack_end; /* glibc's, in no header */

static int initialise(char *error, uint32_t error_size)
{
    int result = lapse_libunwind_bind(error, error_size);
    if (!result)
        result = lapse_rule_cache_init();
    if (!result)
        result = lapse_resolver_init();
    if (!result)
        result = lapse_live_init();
    if (result)
        return result;
    lapse_guess_first_sp = (uintptr_t)__libc_stack_end;
    /* libunwind initialises itself, under a mutex, at its first question. */
    lapse_rule_resolve((uintptr_t)&lapse_unwind_init);
    return 0;
}

int lapse_unwind_init(char *error, uint32_t error_size)
{
    static const char message[] = "no memory for unwind rules";
    static enum { NEW, READY, UNUSABLE } state;
    if (error_size)
        error[0] = 0;
    if (state == READY)
        return 0;
    int result = state == UNUSABLE ? -ENOENT : initialise(error, error_size);
    state = result ? UNUSABLE : READY;
    if (result == -ENOMEM && error_size >= sizeof message)
        memcpy(error, message, sizeof message);
    return result;
}

LAPSE_SIGSAFE void lapse_unwind_forget(void)
{
    lapse_rule_cache_forget();
}

uint64_t lapse_unwind_function(uint64_t pc, int *covered)
{
    uint64_t start, rule;
    struct lapse_window slots[4];
    struct lapse_windows windows = { slots, 4 };
    struct lapse_unwind_entry entry;
    if (pc >> LAPSE_EPOCH_SHIFT)
        return *covered = 0, 0;
    if (lapse_rule_cache.buckets && lapse_rule_cache_start(pc, &start, &rule)) {
        *covered = start && lapse_rule_kind(rule) != LAPSE_RULE_NO_INFO;
        return start;
    }
    lapse_windows_reset(&windows);
    if (lapse_unwind_table_find(&windows, pc, &entry))
        return *covered = 0, 0;
    *covered = entry.covered;
    return entry.start;
}

uint64_t lapse_unwind_cache_full(void)
{
    return atomic_load_explicit(&lapse_rule_cache.full, memory_order_relaxed);
}
