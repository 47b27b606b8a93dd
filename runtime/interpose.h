/* SPDX-License-Identifier: MIT */
/* What the interposed calls (interpose_*.c) give to the rest of the runtime. The session, the
 * handler and the thread code call these; the interposers call the session through session.h.
 *
 * Interposed functions are seen by liblapse itself as well: inside the runtime use raw system calls
 * or lapse_real.NAME (real.h) wherever a function of the list in real.h is meant. */
#ifndef LAPSE_RUNTIME_INTERPOSE_H
#define LAPSE_RUNTIME_INTERPOSE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Puts a function of ours in the place of the C library's. */
#define LAPSE_INTERPOSE __attribute__((visibility("default")))

struct lapse_interpose_options {
    int signal;         /* the signal that ticks */
    void (*entry)(int, siginfo_t *, void *); /* the handler's entry */
    bool respect_mask;  /* LAPSE_RESPECT_MASK=1: masks reach the kernel as the host gave them */
    bool no_follow;     /* LAPSE_FOLLOW=0: children get an environment without liblapse.so */
    bool wakes_sleepers; /* a clock that ticks in sleeping threads (wall) */
};

/* Session start, before the first timer is armed: installs `entry` for the signal and keeps what the
 * host had there as its wish (once: a second start does not take our own entry for the host's),
 * makes the signal deliverable in the calling thread, remembers the options. Returns 0 or -errno.
 * Context: any thread, outside the handler. The entry stays installed for good, since a late tick
 * after stop must find a harmless handler. */
int lapse_interpose_begin(const struct lapse_interpose_options *options);

/* A signal that is not one of our ticks: treat it as the host's own action says, with the host's
 * mask, flags and siginfo. Must run on the stack that the kernel delivered to (the host's handler
 * may use much of it and may leave by siglongjmp), outside the handler's gate, with `context` as
 * the kernel gave it. `return_address`: of the entry. Context: the handler's entry, every signal
 * masked. */
void lapse_interpose_foreign(int signal, siginfo_t *info, void *context, uintptr_t return_address);

/* Did the kernel call the entry, or a handler of the host that took it for its predecessor? */
bool lapse_interpose_from_kernel(uintptr_t return_address);

/* Somebody may have replaced our handler without passing through the interposed calls (a raw system
 * call, profil()): take the new action for the host's wish and put the entry back. Raw system calls
 * only. Context: any thread, also the drain thread. Returns true when it had been replaced. */
bool lapse_interpose_recheck(void);

/* Masks of new threads. In the parent, inside pthread_create: does the host want our signal blocked
 * in the thread that `attr` (may be NULL) describes? In the new thread, before its timer is armed:
 * remembers that wish and makes the signal deliverable. */
bool lapse_mask_for_new_thread(const pthread_attr_t *attr);
void lapse_mask_thread_begin(bool wished);

/* Let pipe2 fail in the calling thread, for the time of libunwind's first use. */
void lapse_interpose_refuse_pipes(bool refuse);

/* Fork's child side, called by the interposed forks before lapse_session_fork_child. */
void lapse_interpose_fork_child(void);

#endif
