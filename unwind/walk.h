/* SPDX-License-Identifier: MIT */
/* One stack out of one ucontext: repeats cached unwind rules (rules.h) with bounds-checked reads. */
#ifndef LAPSE_UNWIND_WALK_H
#define LAPSE_UNWIND_WALK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

/* Marks what runs in the signal handler. Empty: for the reader, and for the test that checks the
 * undefined symbols of *_sig.c. */
#ifndef LAPSE_SIGSAFE
#define LAPSE_SIGSAFE
#endif

/* Memory that may be read as stack: [low, high). All zero: unknown. */
struct lapse_stack_bounds { uintptr_t low, high; };

enum lapse_walk_flags {
    LAPSE_WALK_TRUNCATED = 1, /* `max` frames were not enough */
    LAPSE_WALK_FAILED = 2, /* no rule, or a rule that left the stack; the pcs so far are good */
    LAPSE_WALK_GATE_CLOSED = 4, /* a rule was needed while another thread was resolving */
    LAPSE_WALK_GUESSED = 8, /* at least one pc carries LAPSE_PC_GUESSED */
    LAPSE_WALK_FOREIGN = 16, /* ran on a stack the thread does not own (coroutine); read by
                                    process_vm_readv */
};

/* Set in pcs[i] when that frame was found by frame pointer or scan and not by unwind information.
 * User addresses never have this bit. */
#define LAPSE_PC_GUESSED (UINT64_C(1) << 63)

struct lapse_trail;

struct lapse_walk {
    /* in */
    uint64_t *pcs; /* leaf first */
    uint32_t max;
    struct lapse_stack_bounds stack; /* of the thread */
    struct lapse_trail *trail; /* of the thread (trail.h), zeroed before its first walk; NULL: none */
    /* out */
    uint32_t depth;
    uint32_t flags;
    uint64_t cut_cfa; /* CFA of the outermost captured frame, when cut; else 0 */
};

/* Walk the stack that `context` interrupted. Alternate signal stacks are found through uc_stack.
 * pcs[0] is the pc as it was; the others are return addresses (look names up at pc - 1), except
 * that the pc right outside a signal frame was interrupted and not returned to (seen by its rule).
 * Context: the handler, every signal masked, on a stack with at least 8 KiB left (cold path).
 * No system call when every rule is cached and the stack is the thread's own. errno may change. */
LAPSE_SIGSAFE void lapse_walk(struct lapse_walk *walk, const ucontext_t *context);

/* Once before the first tick and outside any handler: finds libunwind, maps the rule cache, warms up.
 * `alternate stack` and module knowledge need nothing else. Returns 0 or a negative errno, with one
 * line in `error`. Calling it again is free. */
int lapse_unwind_init(char *error, uint32_t error_size);

/* Keep lapse_unwind_init out over a fork while it has not been called: the child of a fork in the middle of
 * it has a libunwind that is half loaded. hold returns whether it was taken, then release in parent and
 * child. Waits for an init that another thread is in, at most a second. Any thread; async-signal-safe. */
bool lapse_unwind_init_hold(void);
void lapse_unwind_init_release(void);

/* A module went away (or may have): forget every rule. Any thread; async-signal-safe. */
LAPSE_SIGSAFE void lapse_unwind_forget(void);

/* Address of the first byte of the function that holds `pc` (already minus one for return
 * addresses), from the rule cache or, outside the handler, by resolving. When no unwind information
 * covers pc: start of the uncovered stretch, and *covered = 0; 0 when pc is in no module.
 * Context: drain thread, or any thread outside the handler. Takes no lock of the host. */
uint64_t lapse_unwind_function(uint64_t pc, int *covered);

/* Keep the resolver to oneself over a fork, so that the child does not inherit it, nor libunwind's
 * locks, in the hands of a thread that it does not have. hold returns 0, or -EBUSY when another
 * thread is resolving: try again, it takes microseconds. Release in parent and child. Samples taken
 * meanwhile that need a new rule are cut (LAPSE_WALK_GATE_CLOSED). */
LAPSE_SIGSAFE int lapse_unwind_hold(void);
LAPSE_SIGSAFE void lapse_unwind_release(void);

/* Changes when a rule was asked for in a module that no rule was asked for before (or long before: few
 * are remembered). Who walked has seen the change. */
extern _Atomic uint32_t lapse_unwind_modules_met;

/* Rules resolved but not kept because the cache was full. */
uint64_t lapse_unwind_cache_full(void);

#endif
