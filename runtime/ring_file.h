/* SPDX-License-Identifier: MIT */
/* Where the ring's memory comes from: private pages, or a file in the folder that `lapse record` names
 * (LAPSE_RINGS). A file's pages outlive the process however it dies, and cli/leftover.c takes from
 * them what had not reached the spool. One file a session: `PID-NUMBER`, the number from the session's
 * id; removed when everything is written.
 *
 * Room in the file is reserved before it is written to: a page that cannot be had then would raise SIGBUS
 * in the handler. Most processes of a storm end before their second sample, and a megabyte of cleared pages
 * was most of what a fork cost them; so there are 64 KiB at first, and the rest when a record does not fit.
 * Context: who starts a session; the child of a fork; the drain thread (remove). */
#ifndef LAPSE_RUNTIME_RING_FILE_H
#define LAPSE_RUNTIME_RING_FILE_H

#include <stdbool.h>

#include "ring.h"

#define LAPSE_RING_WORDS (UINT64_C(1) << 17)
#define LAPSE_RING_SIZE (LAPSE_RING_CONTROL_SIZE + LAPSE_RING_WORDS * sizeof(uint64_t))

/* Control page included. */
#define LAPSE_RING_FIRST 65536u
_Static_assert((LAPSE_RING_FIRST - LAPSE_RING_CONTROL_SIZE) / 8 % 2 == 0, "ring_file_sig.c wants it even");

/* Fresh zeroed memory in place of the ring's, and a fresh ring in it. `shared`: in a file, if the
 * settings name a folder and it gives one. Returns 0 or -errno: what lies there may then be another
 * process's, and there can be no session. */
int lapse_ring_renew(bool shared);
/* Does the session's ring lie in a file? The drain thread, and who ends a session. */
bool lapse_ring_file_is_used(void);
/* lapse_ring_push into the session's ring, whose rest is reserved when that is needed. ring_file_sig.c. */
LAPSE_SIGSAFE int lapse_ring_record(const struct lapse_record *record);
/* Everything is written: remove this session's file, if there is one. The mapping stays. After a fork or
 * before an exec one page of it stays behind: `lapse record` could end before the child or the new
 * image has a ring of its own, and must not take the run for over. */
void lapse_ring_file_retire(void);
/* The child of a fork: the file is the parent's. */
void lapse_ring_file_forget(void);

#endif
