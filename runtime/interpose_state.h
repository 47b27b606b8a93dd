/* SPDX-License-Identifier: MIT */
/* What the interposers share among themselves: the signal that lapse took over, what the host wished
 * for it, and the wish for its place in the calling thread's mask. */
#ifndef LAPSE_RUNTIME_INTERPOSE_STATE_H
#define LAPSE_RUNTIME_INTERPOSE_STATE_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <ucontext.h>

#include "sys.h"

/* Written by lapse_interpose_begin and by the child side of forks, read by everybody. `signal` is
 * stored last (release) and loaded first: who sees it sees the rest. 0 until the first start, which
 * is the whole cost of an interposed call in a program that merely links lapse. */
struct lapse_taken {
    atomic_int signal;
    atomic_int pid; /* whose wishes these are: a vfork child shares our memory and is not it */
    void (*entry)(int, siginfo_t *, void *);
    void (*restorer)(void);
    bool respect_mask;
    bool no_follow;
    atomic_bool wakes_sleepers;
};
extern struct lapse_taken lapse_taken;

/* The taken signal, 0 when there is none. Acquire pairs with the release in lapse_interpose_begin. */
static inline int lapse_taken_signal(void)
{
    return atomic_load_explicit(&lapse_taken.signal, memory_order_acquire);
}

/* Are the wishes this process's own? One system call, so asked only where it matters. */
static inline bool lapse_taken_is_mine(void)
{
    return atomic_load_explicit(&lapse_taken.pid, memory_order_relaxed) ==
           (int)lapse_sys(SYS_getpid);
}

/* Bit of a signal in a mask of the kernel's form. */
static inline uint64_t lapse_signal_bit(int number)
{
    return UINT64_C(1) << (number - 1);
}

/* The host's action for the taken signal: wait-free read; exchange (either may be NULL). */
void lapse_host_action_read(struct sigaction *action);
void lapse_host_action_exchange(const struct sigaction *action, struct sigaction *previous);
void lapse_host_action_fork_child(void);
bool lapse_host_has_handler(void);

/* The calling thread's wish: does the host want the taken signal blocked here although the kernel
 * lets it through? */
bool lapse_mask_wished(void);
void lapse_mask_wish(bool blocked);
/* It does, and blocked `mask` with it. */
void lapse_mask_wish_with(uint64_t mask);
void lapse_mask_fork_child(void);
/* In lapse_interpose_begin: see lapse_mask_thread_begin. */
void lapse_mask_session_begin(void);

/* The calling thread is about to wait for the taken signal. */
void lapse_mask_waits(void);
/* A foreign signal came to a thread whose host wants it blocked: hand it on, or block for real and
 * send it again. False: not blocked, deliver it. `info` is replaced when the signal was handed on
 * to us by another thread. */
bool lapse_mask_defers(int number, siginfo_t *info, ucontext_t *context);

/* Before exec and after a failed one: what a new image inherits must be the host's wish. */
struct lapse_inherit {
    bool blocked, ignored;
};
void lapse_inherit_begin(struct lapse_inherit *inherit);
void lapse_inherit_end(const struct lapse_inherit *inherit);

/* Block the taken signal for real in the calling thread while it sleeps; true when it must be let
 * through again by lapse_hush_end (errno is kept). */
bool lapse_hush_begin(void);
void lapse_hush_end(void);

/* The same without asking what the host waits for: block, and put K back as it was. */
struct lapse_block {
    bool blocked;
};
void lapse_block_begin(struct lapse_block *block);
void lapse_block_end(const struct lapse_block *block);

/* Around a call that installs the host's own mask while it waits. `mask` (in and out, may be NULL)
 * may be replaced by one in `room`. */
struct lapse_wait_mask {
    sigset_t room;
    bool was_wished;
};
void lapse_wait_mask_begin(struct lapse_wait_mask *wait, const sigset_t **mask);
void lapse_wait_mask_end(const struct lapse_wait_mask *wait);

/* Environment without liblapse.so in LD_PRELOAD: number of pointers it needs, and the copy. `text`
 * has room for the old LD_PRELOAD entry. */
size_t lapse_environment_size(char *const *environment, size_t *text_size);
void lapse_environment_copy(char *const *environment, char **copy, char *text);

#endif
