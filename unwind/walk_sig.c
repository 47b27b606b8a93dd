/* SPDX-License-Identifier: MIT */
/* The walker: one stack out of one ucontext, by cached rules. Called by the handler (runtime/) and
 * by tests; walk.h states the context. Reads of the stack are loads inside checked bounds; a rule
 * that leads out of them ends the walk under a flag.
 *
 * The caller's stack pointer always grows within a stack, so the walk ends; across stacks (signal
 * frames) the depth limit ends it. */
#include <errno.h>
#include <stddef.h>
#include <ucontext.h>

#include "memory.h"
#include "trail.h"
#include "resolve.h"
#include "walk_frame.h"

/* Where gregs[] in a ucontext on the stack starts, and how many of them are wanted. */
enum { GREGS_OFFSET = offsetof(ucontext_t, uc_mcontext.gregs), GREGS_COUNT = REG_RIP + 1 };

static const uint8_t greg_of_dwarf[16] = {
    REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
    REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

struct walker {
    struct lapse_walk *walk;
    struct lapse_trail *trail; /* NULL: look everything up */
    struct lapse_stack_bounds alternate;
    struct lapse_stack_view view;
    struct lapse_frame frame;
    uint64_t cfa; /* of the frame that was left last; 0 when it was left by a guess */
    int guessed;  /* whether it was */
    struct lapse_frame interrupted;  /* the last frame that was come to with all its registers */
    uint64_t registers[GREGS_COUNT]; /* of it, when a signal frame was passed */
};

enum outcome { STEPPED, ROOT, FAILED };

LAPSE_SIGSAFE int lapse_stack_read_piece(struct lapse_stack_view *view, uintptr_t at,
                                         uint64_t *value)
{
    if (at < view->piece_base || at - view->piece_base + sizeof *value > view->piece_size) {
        size_t size = LAPSE_PAGE_BYTES - at % LAPSE_PAGE_BYTES; /* no page that nobody asked for */
        if (size < sizeof *value)
            size = sizeof *value;
        if (size > sizeof view->piece)
            size = sizeof view->piece;
        view->piece_base = at;
        view->piece_size = 0;
        if (!lapse_memory_is_present(at) ||
            (size == sizeof *value && !lapse_memory_is_present(at + size - 1)))
            return 0;
        view->piece_size = (uint32_t)lapse_memory_read(view->piece, at, size);
        if (view->piece_size < sizeof *value)
            return 0;
    }
    memcpy(value, view->piece + (at - view->piece_base), sizeof *value);
    return 1;
}

static int bounds_hold(const struct lapse_stack_bounds *bounds, uintptr_t sp)
{
    return sp >= bounds->low && sp < bounds->high && bounds->high - sp >= sizeof(uint64_t);
}

static void enter_stack(struct walker *walker, uintptr_t sp)
{
    struct lapse_stack_view *view = &walker->view;
    const struct lapse_stack_bounds *bounds = &walker->walk->stack;
    view->piece_size = 0;
    view->foreign = 0;
    if (!bounds_hold(bounds, sp))
        bounds = &walker->alternate;
    if (bounds_hold(bounds, sp)) {
        view->low = sp - bounds->low < LAPSE_RED_ZONE ? bounds->low : sp - LAPSE_RED_ZONE;
        view->span = bounds->high - sizeof(uint64_t) - view->low;
        return;
    }
    view->low = UINTPTR_MAX; /* no plain load at all */
    view->span = 0;
    view->foreign = 1;
    walker->walk->flags |= LAPSE_WALK_FOREIGN;
}

/* Out through a frame whose return address is below `cfa`. `base` is what the CFA was computed from. */
static enum outcome leave_frame(struct walker *walker, uint64_t rule, uint64_t base, uint64_t cfa)
{
    struct lapse_frame *frame = &walker->frame;
    uint64_t pc, at = cfa;
    if (cfa <= frame->sp || !lapse_stack_read(&walker->view, cfa - 8, &pc))
        return FAILED;
    walker->cfa = cfa;
    switch (lapse_rule_rbp(rule)) {
    case LAPSE_RBP_KEPT:
        break;
    case LAPSE_RBP_AT_BASE:
        at = base; /* fall through */
    case LAPSE_RBP_AT_CFA:
        if (!lapse_stack_read(&walker->view, at + (uint64_t)lapse_rule_rbp_offset(rule),
                              &frame->bp))
            return FAILED;
        break;
    case LAPSE_RBP_LOST:
        frame->bp = 0;
        break;
    }
    frame->pc = pc;
    frame->sp = cfa;
    frame->registers = NULL;
    return pc ? STEPPED : ROOT; /* zero was put there by who made the stack */
}

LAPSE_SIGSAFE int lapse_frame_register(const struct lapse_frame *frame, unsigned number,
                                       uint64_t *value)
{
    if (number == LAPSE_REGISTER_RSP)
        *value = frame->sp;
    else if (number == LAPSE_REGISTER_RBP)
        *value = frame->bp;
    else if (number == LAPSE_REGISTER_RIP)
        *value = frame->pc;
    else if (frame->registers && number < LAPSE_REGISTER_RIP)
        *value = frame->registers[greg_of_dwarf[number]];
    else
        return 0;
    return 1;
}

static enum outcome leave_signal_frame(struct walker *walker)
{
    struct lapse_frame *frame = &walker->frame;
    for (unsigned i = 0; i < GREGS_COUNT; i++)
        if (!lapse_stack_read(&walker->view, frame->sp + GREGS_OFFSET + i * 8,
                              &walker->registers[i]))
            return FAILED;
    walker->cfa = frame->sp;
    *frame = (struct lapse_frame){ .pc = walker->registers[REG_RIP],
                                   .sp = walker->registers[REG_RSP],
                                   .bp = walker->registers[REG_RBP],
                                   .registers = walker->registers };
    walker->interrupted = *frame;
    enter_stack(walker, frame->sp);
    return STEPPED;
}

static enum outcome leave_guessing(struct walker *walker, uint64_t epoch, uint64_t rule)
{
    if (lapse_guess_is_first(&walker->frame))
        return ROOT;
    walker->cfa = 0;
    walker->guessed = 1;
    if (!lapse_guess_caller(&walker->view, epoch, rule, &walker->frame))
        return FAILED;
    return walker->frame.pc ? STEPPED : ROOT;
}

static enum outcome leave_landing(struct walker *walker, uint64_t epoch, enum outcome outcome)
{
    if (outcome == STEPPED && lapse_guess_landing(&walker->view, epoch, &walker->frame)) {
        walker->cfa = 0;
        walker->guessed = 1;
    }
    return outcome;
}

/* Unwind information that no rule expresses (in libcrypto, a CFA that depends on a second register) or
 * that needs a register which the walk did not carry along (the loader's lazy binding): libunwind is asked
 * about this very frame, each time. */
static enum outcome leave_live(struct walker *walker)
{
    struct lapse_frame *frame = &walker->frame;
    /* An interrupted frame may have nothing left on the stack (a jump to the return address). */
    uint64_t least = frame->sp + !frame->registers;
    int result = lapse_live_step(&walker->view, &walker->interrupted, frame);
    if (result == -EBUSY)
        walker->walk->flags |= LAPSE_WALK_GATE_CLOSED;
    if (result <= 0 || frame->sp < least)
        return FAILED;
    walker->cfa = frame->sp;
    return frame->pc ? STEPPED : ROOT;
}

/* By any rule. */
static enum outcome leave(struct walker *walker, uint64_t epoch, uint64_t rule)
{
    uint64_t base, cfa;
    enum outcome outcome;
    walker->guessed = 0;
    switch (lapse_rule_kind(rule)) {
    case LAPSE_RULE_OUTERMOST:
        return ROOT;
    case LAPSE_RULE_SIGNAL:
        return leave_signal_frame(walker);
    case LAPSE_RULE_PLAIN:
    case LAPSE_RULE_REGISTER:
        if (!lapse_frame_register(&walker->frame, lapse_rule_base(rule), &base))
            return leave_live(walker);
        outcome = leave_frame(walker, rule, base, base + (uint64_t)lapse_rule_cfa_offset(rule));
        return rule & LAPSE_RULE_LANDS ? leave_landing(walker, epoch, outcome) : outcome;
    case LAPSE_RULE_DEREF:
        if (!lapse_frame_register(&walker->frame, lapse_rule_base(rule), &base) ||
            !lapse_stack_read(&walker->view, base + (uint64_t)lapse_rule_deref_offset(rule), &cfa))
            return FAILED;
        return leave_frame(walker, rule, base, cfa + (uint64_t)lapse_rule_deref_add(rule));
    case LAPSE_RULE_NO_INFO:
        return leave_guessing(walker, epoch, rule);
    default:
        return leave_live(walker);
    }
}

/* A return address that is no code at all came from a wrong rule or a wrong RBP further in. */
static int is_bogus(const struct walker *walker, uint64_t rule)
{
    return !walker->frame.registers && lapse_rule_kind(rule) == LAPSE_RULE_NO_INFO &&
           !(rule & (LAPSE_RULE_IN_MODULE | LAPSE_RULE_AFTER_CALL));
}

static inline uint64_t load_word(uintptr_t at)
{
    uint64_t value;
    memcpy(&value, (const void *)at, sizeof value);
    return value;
}

/* The warm path: leave frames as long as cached plain rules, loads inside the bounds and room for
 * their callers allow, all state in registers. Returns the rule of the frame where that ended, or 0
 * when it is not cached; such a frame is untouched and the general code takes it. */
static uint64_t leave_plain_frames(struct walker *walker, uint64_t epoch)
{
    struct lapse_walk *walk = walker->walk;
    struct lapse_frame *frame = &walker->frame;
    struct lapse_trail *trail = walker->trail;
    const uintptr_t low = walker->view.low, span = walker->view.span;
    uint64_t *to = walk->pcs + walk->depth, *const end = walk->pcs + walk->max;
    uint64_t sp = frame->sp, bp = frame->bp, pc = frame->pc, rule;
    uint64_t key = frame->registers ? pc : pc - 1;
    for (;;) {
        if (trail && trail->in_run) {
            to = lapse_trail_follow(trail, to, end, low, span);
            const struct lapse_trail_frame *reached = &trail->frames[trail->run_outer];
            pc = reached->pc, sp = reached->sp, bp = reached->bp;
            key = pc - 1;
        }
        rule = lapse_rule_cache_find(epoch, key);
        /* RSP and RBP differ in the lowest bit of their numbers. */
        uint64_t cfa = (rule & 1u << 4 ? sp : bp) + (uint64_t)lapse_rule_cfa_offset(rule);
        if (lapse_rule_kind(rule) != LAPSE_RULE_PLAIN || to == end || cfa <= sp ||
            cfa - 8 - low > span)
            break;
        uint64_t caller = load_word(cfa - 8), caller_bp = bp;
        uintptr_t bp_at = LAPSE_TRAIL_RBP_KEPT;
        if (!caller)
            break;
        if (lapse_rule_rbp(rule) == LAPSE_RBP_AT_CFA) {
            bp_at = cfa + (uint64_t)lapse_rule_rbp_offset(rule);
            if (bp_at - low > span)
                break;
            caller_bp = load_word(bp_at);
        } else if (lapse_rule_rbp(rule) != LAPSE_RBP_KEPT) {
            break;
        }
        if (trail && key != pc)
            lapse_trail_leave(trail, pc, sp, bp, bp_at);
        sp = cfa;
        bp = caller_bp;
        *to++ = pc = caller;
        key = pc - 1;
        if (trail)
            lapse_trail_arrive(trail, pc, sp, bp);
    }
    if (to != walk->pcs + walk->depth) {
        walk->depth = (uint32_t)(to - walk->pcs);
        *frame = (struct lapse_frame){ .pc = pc, .sp = sp, .bp = bp };
        walker->cfa = sp;
    }
    return rule;
}

static void walk_frames(struct walker *walker)
{
    struct lapse_walk *walk = walker->walk;
    struct lapse_frame *frame = &walker->frame;
    uint64_t epoch = lapse_rule_cache_epoch();
    if (walker->trail)
        lapse_trail_begin(walker->trail, epoch);
    for (;;) {
        uint64_t rule = leave_plain_frames(walker, epoch);
        if (!rule)
            rule = lapse_rule_resolve(frame->registers ? frame->pc : frame->pc - 1);
        if (!rule) {
            walk->flags |= LAPSE_WALK_GATE_CLOSED;
            return;
        }
        if (is_bogus(walker, rule)) {
            walk->flags |= LAPSE_WALK_FAILED;
            walk->depth--;
            walk->cut_cfa = walker->cfa;
            return;
        }
        if (walker->trail && !frame->registers)
            lapse_trail_leave(walker->trail, frame->pc, frame->sp, frame->bp, LAPSE_TRAIL_ASK);
        enum outcome outcome = leave(walker, epoch, rule);
        if (outcome != STEPPED) {
            walk->flags |= outcome == FAILED ? LAPSE_WALK_FAILED : 0;
            if (walker->trail && !walk->flags)
                lapse_trail_finish(walker->trail);
            return;
        }
        if (frame->registers)
            walker->trail = NULL; /* on another stack from here on */
        if (walk->depth == walk->max) {
            walk->flags |= LAPSE_WALK_TRUNCATED;
            walk->cut_cfa = walker->cfa;
            return;
        }
        walk->flags |= walker->guessed ? LAPSE_WALK_GUESSED : 0;
        walk->pcs[walk->depth++] = frame->pc | (walker->guessed ? LAPSE_PC_GUESSED : 0);
        if (walker->trail)
            lapse_trail_arrive(walker->trail, frame->pc, frame->sp, frame->bp);
    }
}

LAPSE_SIGSAFE void lapse_walk(struct lapse_walk *walk, const ucontext_t *context)
{
    const greg_t *gregs = context->uc_mcontext.gregs;
    struct walker walker;
    walk->depth = 0;
    walk->flags = 0;
    walk->cut_cfa = 0;
    if (!walk->max)
        return;
    walker.walk = walk;
    walker.trail = walk->trail;
    walker.alternate.low = (uintptr_t)context->uc_stack.ss_sp;
    walker.alternate.high = walker.alternate.low + context->uc_stack.ss_size;
    walker.cfa = 0;
    walker.frame = (struct lapse_frame){ .pc = (uint64_t)gregs[REG_RIP],
                                         .sp = (uint64_t)gregs[REG_RSP],
                                         .bp = (uint64_t)gregs[REG_RBP],
                                         .registers = (const uint64_t *)gregs };
    walker.interrupted = walker.frame;
    enter_stack(&walker, walker.frame.sp);
    if (walker.view.foreign)
        walker.trail = NULL;
    walk->pcs[walk->depth++] = walker.frame.pc;
    walk_frames(&walker);
}
