/* SPDX-License-Identifier: MIT */
/* Names out of a perf map and a jitdump file into a spool. Used by record_jit.c. */
#ifndef LAPSE_CLI_RECORD_JIT_NAMES_H
#define LAPSE_CLI_RECORD_JIT_NAMES_H

/* Append names, times and lines of the run-time code that the samples of `spool` met. A descriptor may
 * be -1. Returns 0 or a negative errno; the spool is then as it was, or has whole chunks more. */
int lapse_record_jit_names(const char *spool, int map, int dump);

#endif
