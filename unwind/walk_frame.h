/* SPDX-License-Identifier: MIT */
/* What the walker (walk_sig.c) and its guesses (guess_sig.c) share: the frame they are at and the
 * checked reads of the stack. Context: the handler. */
#ifndef LAPSE_UNWIND_WALK_FRAME_H
#define LAPSE_UNWIND_WALK_FRAME_H

#include <stdint.h>
#include <string.h>

#include "rules.h"
#include "walk.h"

#define LAPSE_RED_ZONE 128

/* The stack as far as it may be read. Own stacks (the thread's, its alternate one): what lies
 * between the interrupted stack pointer, less the red zone, and the upper end is mapped, so a plain
 * load inside the bounds cannot fault. Foreign ones (coroutines): read in pieces by the kernel. */
struct lapse_stack_view {
    uintptr_t low, span; /* loads are fine at [low, low + span]; span is for 8 bytes */
    int foreign;
    uintptr_t piece_base;
    uint32_t piece_size;
    uint8_t piece[512];
};

struct lapse_frame {
    uint64_t pc, sp, bp;
    const uint64_t *registers; /* by number of gregs[], of an interrupted frame; else NULL */
};

LAPSE_SIGSAFE int lapse_stack_read_piece(struct lapse_stack_view *view, uintptr_t at,
                                         uint64_t *value);

/* Returns 0 when `at` may not be read. */
static inline int lapse_stack_read(struct lapse_stack_view *view, uintptr_t at, uint64_t *value)
{
    if (__builtin_expect(at - view->low <= view->span, 1)) {
        memcpy(value, (const void *)at, sizeof *value); /* the ABI aligns stacks, hosts may not */
        return 1;
    }
    return view->foreign && lapse_stack_read_piece(view, at, value);
}

/* A register by DWARF's number; returns 0 when it is not known in this frame. */
LAPSE_SIGSAFE int lapse_frame_register(const struct lapse_frame *frame, unsigned number,
                                       uint64_t *value);

/* Caller of a frame without unwind information, by frame pointer or by scan. Changes `frame` to the
 * caller (a pc of 0: there is none) and returns 1, or returns 0. `rule` is that of the frame. */
LAPSE_SIGSAFE int lapse_guess_caller(struct lapse_stack_view *view, uint64_t epoch, uint64_t rule,
                                     struct lapse_frame *frame);

/* `frame` was come to by a LANDS rule. When that is a landing in progress, changes its stack pointer to the
 * landing frame's and returns 1; returns 0 when the frame is as unwind information says. */
LAPSE_SIGSAFE int lapse_guess_landing(struct lapse_stack_view *view, uint64_t epoch,
                                      struct lapse_frame *frame);

/* Where the kernel started the process's stack: set once before the first tick, 0 when unknown. A frame
 * there is the entry code of the loader or the program and has no caller. */
extern uintptr_t lapse_guess_first_sp;
LAPSE_SIGSAFE int lapse_guess_is_first(const struct lapse_frame *frame);

#endif
