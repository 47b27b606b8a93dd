/* SPDX-License-Identifier: MIT */
/* One frame unwound by libunwind from its real registers, where no rule can stand for all frames at
 * that address. Called by the walker in the handler; rare, 2 to 3 us each, under the resolver's gate.
 * Memory that libunwind asks for is read from the module's tables or from the checked stack. */
#include <errno.h>

#include "binding.h"
#include "resolve.h"

static unw_addr_space_t space;

/* The frame in question; static, since only the holder of the gate has one. */
static struct {
    unw_cursor_t cursor;
    struct lapse_stack_view *view;
    struct lapse_frame frame;
} live;

static int access_mem(unw_addr_space_t in, unw_word_t at, unw_word_t *value, int write,
                      void *argument)
{
    const struct lapse_unwind_entry *entry = &lapse_resolver_entry;
    (void)in, (void)argument;
    if (write)
        return -UNW_EINVAL;
    if (at >= entry->map_start && at < entry->map_end)
        return lapse_windows_read(&lapse_resolver_windows, value, at, sizeof *value) ? -UNW_EINVAL
                                                                                     : 0;
    return lapse_stack_read(live.view, at, value) ? 0 : -UNW_EINVAL;
}

/* In frames that were called, only what the walk has carried so far is known. */
static int access_reg(unw_addr_space_t in, unw_regnum_t reg, unw_word_t *value, int write,
                      void *argument)
{
    (void)in, (void)argument;
    if (write)
        return -UNW_EREADONLYREG;
    return lapse_frame_register(&live.frame, (unsigned)reg, value) ? 0 : -UNW_EBADREG;
}

LAPSE_SIGSAFE int lapse_live_step(struct lapse_stack_view *view, uint64_t key,
                                  struct lapse_frame *frame)
{
    int cancel, result = 0;
    unw_word_t pc, sp, bp;
    uint64_t epoch = lapse_rule_cache_epoch();
    if (!lapse_resolver_enter_in_turn(&cancel))
        return -EBUSY;
    live.view = view;
    live.frame = *frame;
    live.frame.pc = key;
    unw_cursor_t *cursor = &live.cursor;
    if (!lapse_resolver_look_up(epoch, key) && lapse_resolver_entry.covered &&
        lapse_libunwind.init_remote(cursor, space, &live) >= 0 &&
        lapse_libunwind.step(cursor) > 0 &&
        lapse_libunwind.get_reg(cursor, UNW_X86_64_RIP, &pc) >= 0 &&
        lapse_libunwind.get_reg(cursor, UNW_X86_64_RSP, &sp) >= 0) {
        if (lapse_libunwind.get_reg(cursor, UNW_X86_64_RBP, &bp) < 0)
            bp = 0;
        *frame = (struct lapse_frame){ .pc = pc, .sp = sp, .bp = bp };
        result = 1;
    }
    lapse_resolver_leave(cancel);
    return result;
}

int lapse_live_init(void)
{
    static unw_accessors_t accessors;
    accessors = lapse_resolver_accessors;
    accessors.access_mem = access_mem;
    accessors.access_reg = access_reg;
    space = lapse_libunwind.create_addr_space(&accessors, 0);
    if (!space)
        return -ENOMEM;
    lapse_libunwind.set_caching_policy(space, UNW_CACHE_NONE);
    return 0;
}
