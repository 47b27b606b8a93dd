/* SPDX-License-Identifier: MIT */
/* One frame unwound by libunwind from its real registers, where no rule can stand for all frames at
 * that address. Called by the walker in the handler; rare, 2 to 3 us a step, under the resolver's gate.
 * Memory that libunwind asks for is read from the module's tables or from the checked stack.
 *
 * The walk carries RSP and RBP along and no other register that calls preserve. A frame that needs one
 * (_dl_runtime_resolve has its CFA in RBX) is come to again, from the frame that was interrupted. */
#include <errno.h>

#include "binding.h"
#include "resolve.h"

/* Frames between a lazily bound call and where its binding was interrupted are some ten. */
enum { RETRACED_MAX = 32 };

static unw_addr_space_t space;

/* The frame to start from; static, since only the holder of the gate has one. */
static struct {
    unw_cursor_t cursor;
    struct lapse_stack_view *view;
    struct lapse_frame frame;
    uint64_t epoch;
} live;

static int find_proc_info(unw_addr_space_t in, unw_word_t pc, unw_proc_info_t *info, int need,
                          void *argument)
{
    const struct lapse_unwind_entry *entry = &lapse_resolver_entry;
    if (!entry->covered || pc < entry->start || pc >= entry->end)
        lapse_resolver_look_up(live.epoch, pc);
    return lapse_resolver_accessors.find_proc_info(in, pc, info, need, argument);
}

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

/* Of a frame that was called, only what the walk has carried so far is known. */
static int access_reg(unw_addr_space_t in, unw_regnum_t reg, unw_word_t *value, int write,
                      void *argument)
{
    (void)in, (void)argument;
    if (write)
        return -UNW_EREADONLYREG;
    return lapse_frame_register(&live.frame, (unsigned)reg, value) ? 0 : -UNW_EBADREG;
}

static int start_at(const struct lapse_frame *frame)
{
    live.frame = *frame;
    live.frame.pc = frame->registers ? frame->pc : frame->pc - 1;
    lapse_resolver_look_up(live.epoch, live.frame.pc);
    return lapse_resolver_entry.covered &&
           lapse_libunwind.init_remote(&live.cursor, space, &live) >= 0;
}

static int step(unw_word_t *pc, unw_word_t *sp)
{
    return lapse_libunwind.step(&live.cursor) > 0 &&
           lapse_libunwind.get_reg(&live.cursor, UNW_X86_64_RIP, pc) >= 0 &&
           lapse_libunwind.get_reg(&live.cursor, UNW_X86_64_RSP, sp) >= 0;
}

/* From the interrupted frame to `frame`, with all registers. */
static int retrace(const struct lapse_frame *interrupted, const struct lapse_frame *frame)
{
    unw_word_t pc, sp;
    if (frame->registers || !start_at(interrupted))
        return 0;
    for (int i = 0; i < RETRACED_MAX && step(&pc, &sp); i++)
        if (sp >= frame->sp)
            return sp == frame->sp && pc == frame->pc;
    return 0;
}

LAPSE_SIGSAFE int lapse_live_step(struct lapse_stack_view *view, const struct lapse_frame *interrupted,
                                  struct lapse_frame *frame)
{
    int cancel, result = 0;
    unw_word_t pc, sp, bp;
    uint64_t epoch = lapse_rule_cache_epoch(); /* from before the look at memory */
    if (!lapse_resolver_enter_in_turn(&cancel))
        return -EBUSY;
    live.view = view;
    live.epoch = epoch;
    if ((retrace(interrupted, frame) || start_at(frame)) && step(&pc, &sp)) {
        if (lapse_libunwind.get_reg(&live.cursor, UNW_X86_64_RBP, &bp) < 0)
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
    accessors.find_proc_info = find_proc_info;
    accessors.access_mem = access_mem;
    accessors.access_reg = access_reg;
    space = lapse_libunwind.create_addr_space(&accessors, 0);
    if (!space)
        return -ENOMEM;
    lapse_libunwind.set_caching_policy(space, UNW_CACHE_NONE);
    return 0;
}
