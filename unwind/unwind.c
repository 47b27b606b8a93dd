/* SPDX-License-Identifier: MIT */
/* Setting up the unwinder, and its questions outside the handler. walk.h is the interface. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "binding.h"
#include "resolve.h"
#include "system_call.h"
#include "unwind_table.h"
#include "walk_frame.h"

enum { INIT_TURNS = 10000, INIT_PAUSE_NS = 100000 };

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

/* Changed by the holder of init_owner alone, from NEW on. */
static _Atomic enum { NEW, READY, UNUSABLE } state;
static _Atomic int32_t init_owner; /* thread that initialises or forks; 0: none */

bool lapse_unwind_init_hold(void)
{
    /* acquire: what was initialised; pairs with the release in lapse_unwind_init */
    for (uint64_t turns = 0; atomic_load_explicit(&state, memory_order_acquire) == NEW; turns++) {
        int32_t none = 0, self = (int32_t)lapse_system_call3(SYS_gettid, 0, 0, 0);
        /* acquire: what the last owner did; pairs with the release below */
        if (atomic_compare_exchange_strong_explicit(&init_owner, &none, self, memory_order_acquire,
                                                    memory_order_relaxed))
            return true;
        if (none == self || turns == INIT_TURNS)
            break; /* forked in a signal handler, or by a raw call while another thread had it */
        struct timespec pause = { 0, INIT_PAUSE_NS };
        lapse_system_call3(SYS_nanosleep, (long)&pause, 0, 0);
    }
    return false;
}

void lapse_unwind_init_release(void)
{
    atomic_store_explicit(&init_owner, 0, memory_order_release);
}

int lapse_unwind_init(char *error, uint32_t error_size)
{
    static const char message[] = "no memory for unwind rules";
    if (error_size)
        error[0] = 0;
    bool held = lapse_unwind_init_hold();
    int result = 0;
    if (atomic_load_explicit(&state, memory_order_relaxed) == UNUSABLE)
        result = -ENOENT;
    else if (held) {
        result = initialise(error, error_size);
        /* release: pairs with the acquire in lapse_unwind_init_hold */
        atomic_store_explicit(&state, result ? UNUSABLE : READY, memory_order_release);
    } else if (atomic_load_explicit(&state, memory_order_relaxed) == NEW)
        result = -EBUSY;
    if (held)
        lapse_unwind_init_release();
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
