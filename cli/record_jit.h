/* SPDX-License-Identifier: MIT */
/* Names of code that the recorded programs made at run time. Perf maps and jitdump files are opened
 * while their process lives, through its own view of the file system, and stay open: a process that is
 * killed writes no names itself, and its /tmp may be gone with it. Used by record.c. */
#ifndef LAPSE_CLI_RECORD_JIT_H
#define LAPSE_CLI_RECORD_JIT_H

#include "record.h"

struct lapse_record_jit;

/* Begin to look, from a thread of its own. `place` must outlive it. NULL: without memory or thread;
 * the functions below then do nothing. Call it when the command runs already: fork wants one thread. */
struct lapse_record_jit *lapse_record_jit_start(const struct lapse_record_place *place);
/* The command has ended: look once more, then no further. */
void lapse_record_jit_stop(struct lapse_record_jit *jit);
/* Append names to the spools, before they are collected. */
void lapse_record_jit_write(struct lapse_record_jit *jit);
void lapse_record_jit_free(struct lapse_record_jit *jit);

#endif
