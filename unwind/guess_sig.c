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

/* trellis quantisation in libx264 keeps 4.5 KiB on the stack. An exception's landing frame is as far away
 * as the throwing one. */
enum { SCAN_WORDS = 1024, SAVED_WORDS = 8, LANDING_WORDS = 8192, FIRST_FRAME = 32 };

#define ADDRESS_MIN 0x1000u

struct search {
    struct lapse_stack_view *view;
    uint64_t epoch;
    int end_is_zero; /* a stack may end in zeros: not believed where words are tried in turn */
};

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

static int leads_on(const struct search *search, uint64_t cfa)
{
    uint64_t address;
    if (!lapse_stack_read(search->view, cfa - 8, &address))
        return 0;
    return address ? return_rule(search->epoch, address) != 0 : search->end_is_zero;
}

static int is_code(uint64_t epoch, uint64_t address)
{
    uint64_t rule = is_user_address(address) ? lapse_rule_get(epoch, address) : 0;
    return rule && (lapse_rule_kind(rule) != LAPSE_RULE_NO_INFO || rule & LAPSE_RULE_IN_MODULE);
}

/* An outermost frame, whose RBP is `bp`, has zero for its caller's, says the ABI's supplement: made so by the C
 * library, and by runtimes that make stacks of their own (goroutines return into code that no call stands
 * before). */
static int is_outermost(const struct search *search, uint64_t bp)
{
    uint64_t saved, address;
    return search->end_is_zero && bp % 8 == 0 && lapse_stack_read(search->view, bp, &saved) && !saved &&
           lapse_stack_read(search->view, bp + 8, &address) && (!address || is_code(search->epoch, address));
}

/* Is `address`, with the stack pointer and RBP of its frame, a caller that has a caller? */
static int is_caller(const struct search *search, uint64_t address, uint64_t sp, uint64_t bp)
{
    uint64_t rule = return_rule(search->epoch, address);
    uint64_t cfa = (lapse_rule_base(rule) == LAPSE_REGISTER_RSP ? sp : bp) +
                   (uint64_t)lapse_rule_cfa_offset(rule);
    switch (lapse_rule_kind(rule)) {
    case LAPSE_RULE_PLAIN:
        return cfa > sp && leads_on(search, cfa);
    case LAPSE_RULE_DEREF:
        cfa = (lapse_rule_base(rule) == LAPSE_REGISTER_RSP ? sp : bp) +
              (uint64_t)lapse_rule_deref_offset(rule);
        return lapse_stack_read(search->view, cfa, &cfa) &&
               cfa + (uint64_t)lapse_rule_deref_add(rule) > sp &&
               leads_on(search, cfa + (uint64_t)lapse_rule_deref_add(rule));
    case LAPSE_RULE_NO_INFO:
        return bp > sp && (leads_on(search, bp + 16) || is_outermost(search, bp));
    case LAPSE_RULE_OUTERMOST:
        return 1;
    default:
        return 0;
    }
}

static int try_return(const struct search *search, uint64_t slot, uint64_t bp, struct lapse_frame *frame)
{
    uint64_t address;
    if (!lapse_stack_read(search->view, slot, &address) || !is_caller(search, address, slot + 8, bp))
        return 0;
    *frame = (struct lapse_frame){ .pc = address, .sp = slot + 8, .bp = bp };
    return 1;
}

/* Interrupted at one end of a function: the code tells where the return address is. */
static int try_code(const struct search *search, uint64_t rule, struct lapse_frame *frame)
{
    uint64_t bp;
    if (!frame->registers)
        return 0;
    if (rule & LAPSE_RULE_AT_RETURN)
        return try_return(search, frame->sp, frame->bp, frame);
    return rule & LAPSE_RULE_RBP_PUSHED && lapse_stack_read(search->view, frame->sp, &bp) &&
           try_return(search, frame->sp + 8, bp, frame);
}

static int try_frame_pointer(const struct search *search, struct lapse_frame *frame)
{
    uint64_t bp;
    return frame->bp % 8 == 0 && frame->bp >= frame->sp &&
           lapse_stack_read(search->view, frame->bp, &bp) &&
           try_return(search, frame->bp + 8, bp, frame);
}

/* RBP as the caller has it: unchanged, or saved just below the return address. */
static int find_rbp(const struct search *search, const struct lapse_frame *frame, uint64_t address,
                    uint64_t slot, uint64_t *bp)
{
    *bp = frame->bp;
    if (is_caller(search, address, slot + 8, *bp))
        return 1;
    uint64_t rule = return_rule(search->epoch, address);
    if (!rule || lapse_rule_base(rule) == LAPSE_REGISTER_RSP)
        return 0;
    for (uint64_t at = slot - 8; at >= frame->sp && at + SAVED_WORDS * 8 >= slot; at -= 8)
        if (lapse_stack_read(search->view, at, bp) && *bp > slot &&
            is_caller(search, address, slot + 8, *bp))
            return 1;
    return 0;
}

/* Only addresses in loaded modules: a word of data that looks like JIT code is too likely. */
static int try_scan(const struct search *search, struct lapse_frame *frame)
{
    for (uint64_t slot = frame->sp; slot < frame->sp + SCAN_WORDS * 8; slot += 8) {
        struct dl_find_object object;
        uint64_t address, bp;
        if (!lapse_stack_read(search->view, slot, &address))
            return 0;
        if (!is_user_address(address) || _dl_find_object((void *)address, &object) ||
            !find_rbp(search, frame, address, slot, &bp))
            continue;
        *frame = (struct lapse_frame){ .pc = address, .sp = slot + 8, .bp = bp };
        return 1;
    }
    return 0;
}

LAPSE_SIGSAFE int lapse_guess_caller(struct lapse_stack_view *view, uint64_t epoch, uint64_t rule,
                                     struct lapse_frame *frame)
{
    struct search chain = { view, epoch, .end_is_zero = 1 }, scan = { view, epoch, .end_is_zero = 0 };
    if (try_code(&chain, rule, frame))
        return 1;
    /* A module that has tables was built without frame pointers most likely, and what is not in its
     * tables is assembly; JIT compilers and programs without any tables keep frame pointers. */
    if (rule & LAPSE_RULE_IN_TABLED_MODULE)
        return try_scan(&scan, frame) || try_frame_pointer(&chain, frame);
    if (try_frame_pointer(&chain, frame))
        return 1;
    if (frame->bp < frame->sp || !is_outermost(&chain, frame->bp))
        return try_scan(&scan, frame);
    frame->pc = 0;
    return 1;
}

/* libgcc copies the landing frame's registers over those saved in its own frame, the return address last:
 * from there on `frame` has the pc and the RBP of the landing frame, and the stack pointer of the frame that
 * called libgcc. The word that was copied still lies where the landing frame's callee returns by it. */
LAPSE_SIGSAFE int lapse_guess_landing(struct lapse_stack_view *view, uint64_t epoch,
                                      struct lapse_frame *frame)
{
    const struct search search = { view, epoch, .end_is_zero = 0 };
    uint64_t address;
    if (is_caller(&search, frame->pc, frame->sp, frame->bp))
        return 0;
    for (uint64_t slot = frame->sp; slot < frame->sp + LANDING_WORDS * 8; slot += 8) {
        if (!lapse_stack_read(view, slot, &address))
            return 0;
        if (address != frame->pc || !is_caller(&search, address, slot + 8, frame->bp))
            continue;
        frame->sp = slot + 8;
        return 1;
    }
    return 0;
}

uintptr_t lapse_guess_first_sp;

LAPSE_SIGSAFE int lapse_guess_is_first(const struct lapse_frame *frame)
{
    return frame->sp + FIRST_FRAME >= lapse_guess_first_sp &&
           frame->sp - FIRST_FRAME <= lapse_guess_first_sp;
}
