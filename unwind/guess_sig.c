/* SPDX-License-Identifier: MIT */
/* Callers of code without unwind information: JIT code, hand-written assembly, programs built
 * without tables. What is found here is a guess and carries LAPSE_PC_GUESSED. Called by the walker
 * in the handler, for such frames only.
 *
 * A candidate for the return address must follow a call instruction, and the frame that it leads to
 * must lead on to another such address (or to the root): two facts that stale words on a stack
 * seldom show together. */
#include <dlfcn.h>

#include "walk_frame.h"

/* trellis quantisation in libx264 keeps 4.5 KiB on the stack. */
enum { SCAN_WORDS = 1024, SAVED_WORDS = 8 };

#define ADDRESS_MIN 0x1000u

static int is_user_address(uint64_t value)
{
    return value > ADDRESS_MIN && !(value >> LAPSE_EPOCH_SHIFT);
}

/* The rule of the call before `address`, or 0 when that is no return address. */
static uint64_t return_rule(uint64_t epoch, uint64_t address)
{
    uint64_t rule = is_user_address(address) ? lapse_rule_get(epoch, address - 1) : 0;
    return rule & LAPSE_RULE_AFTER_CALL ? rule : 0;
}

static int leads_on(struct lapse_stack_view *view, uint64_t epoch, uint64_t cfa)
{
    uint64_t address;
    return lapse_stack_read(view, cfa - 8, &address) && (!address || return_rule(epoch, address));
}

/* Is `address`, with the stack pointer and RBP of its frame, a caller that has a caller? */
static int is_caller(struct lapse_stack_view *view, uint64_t epoch, uint64_t address, uint64_t sp,
                     uint64_t bp)
{
    uint64_t rule = return_rule(epoch, address);
    uint64_t cfa = (lapse_rule_base(rule) == LAPSE_REGISTER_RSP ? sp : bp) +
                   (uint64_t)lapse_rule_cfa_offset(rule);
    switch (lapse_rule_kind(rule)) {
    case LAPSE_RULE_PLAIN:
        return cfa > sp && leads_on(view, epoch, cfa);
    case LAPSE_RULE_DEREF:
        cfa = (lapse_rule_base(rule) == LAPSE_REGISTER_RSP ? sp : bp) +
              (uint64_t)lapse_rule_deref_offset(rule);
        return lapse_stack_read(view, cfa, &cfa) &&
               cfa + (uint64_t)lapse_rule_deref_add(rule) > sp &&
               leads_on(view, epoch, cfa + (uint64_t)lapse_rule_deref_add(rule));
    case LAPSE_RULE_NO_INFO:
        return bp > sp && leads_on(view, epoch, bp + 16);
    case LAPSE_RULE_OUTERMOST:
        return 1;
    default:
        return 0;
    }
}

static int try_frame_pointer(struct lapse_stack_view *view, uint64_t epoch,
                             struct lapse_frame *frame)
{
    uint64_t address, bp;
    if (frame->bp % 8 || frame->bp < frame->sp ||
        !lapse_stack_read(view, frame->bp + 8, &address) ||
        !lapse_stack_read(view, frame->bp, &bp) ||
        !is_caller(view, epoch, address, frame->bp + 16, bp))
        return 0;
    *frame = (struct lapse_frame){ .pc = address, .sp = frame->bp + 16, .bp = bp };
    return 1;
}

/* RBP as the caller has it: unchanged, or saved just below the return address. */
static int find_rbp(struct lapse_stack_view *view, uint64_t epoch, const struct lapse_frame *frame,
                    uint64_t address, uint64_t slot, uint64_t *bp)
{
    *bp = frame->bp;
    if (is_caller(view, epoch, address, slot + 8, *bp))
        return 1;
    uint64_t rule = return_rule(epoch, address);
    if (!rule || lapse_rule_base(rule) == LAPSE_REGISTER_RSP)
        return 0;
    for (uint64_t at = slot - 8; at >= frame->sp && at + SAVED_WORDS * 8 >= slot; at -= 8)
        if (lapse_stack_read(view, at, bp) && *bp > slot &&
            is_caller(view, epoch, address, slot + 8, *bp))
            return 1;
    return 0;
}

/* Only addresses in loaded modules: a word of data that looks like JIT code is too likely. */
static int try_scan(struct lapse_stack_view *view, uint64_t epoch, struct lapse_frame *frame)
{
    for (uint64_t slot = frame->sp; slot < frame->sp + SCAN_WORDS * 8; slot += 8) {
        struct dl_find_object object;
        uint64_t address, bp;
        if (!lapse_stack_read(view, slot, &address))
            return 0;
        if (!is_user_address(address) || _dl_find_object((void *)address, &object) ||
            !find_rbp(view, epoch, frame, address, slot, &bp))
            continue;
        *frame = (struct lapse_frame){ .pc = address, .sp = slot + 8, .bp = bp };
        return 1;
    }
    return 0;
}

LAPSE_SIGSAFE int lapse_guess_caller(struct lapse_stack_view *view, uint64_t epoch, uint64_t rule,
                                     struct lapse_frame *frame)
{
    /* A module that has tables was built without frame pointers most likely, and what is not in its
     * tables is assembly; JIT compilers and programs without any tables keep frame pointers. */
    if (rule & LAPSE_RULE_IN_TABLED_MODULE)
        return try_scan(view, epoch, frame) || try_frame_pointer(view, epoch, frame);
    return try_frame_pointer(view, epoch, frame) || try_scan(view, epoch, frame);
}
