/* SPDX-License-Identifier: MIT */
/* Keeping the signal. Hosts that set their handler through the C library are seen by the interposed
 * calls (interpose_action.c). One that does so by a raw system call is not: our ticks then go to its
 * handler. Its action is looked at now and then, taken for the host's wish, and our entry put back.
 * That is no fight: a host that does it again and again keeps the signal, and the profile ends. */
#ifndef LAPSE_RUNTIME_SIGNAL_KEEPER_H
#define LAPSE_RUNTIME_SIGNAL_KEEPER_H

#include <stdbool.h>
#include <stdint.h>

/* A new session: nothing was taken yet. */
void lapse_signal_keeper_reset(void);
/* Where such a host may pass (pthread_create, setitimer). Any thread of the host, not the handler. */
void lapse_signal_keep(void);
/* Once a turn of the drain thread. False: the host wants it for itself, end the session. */
bool lapse_signal_keep_on(uint64_t now_ns);
/* The session ends with `late` ticks that were due and never came: was it for this? Says so once. */
void lapse_signal_keeper_end(uint64_t late);

#endif
