/* SPDX-License-Identifier: MIT */
/* What records of the ring point at without holding it: the text of labels, the modules of pcs. A ring
 * that lies in a file outlives its process (ring_file.h), and what it points at does not. So the
 * drain thread is woken when a record points at something new; it writes 10 ms after its last turn at
 * the earliest, and then the spool holds text and modules, with the addresses that the ring has.
 *
 * Seen label sets are kept as hashes in a small table, each in the one place that is its own: one that
 * pushes out another costs a turn of the drain thread too many. */
#ifndef LAPSE_RUNTIME_NEWS_H
#define LAPSE_RUNTIME_NEWS_H

#include <stdbool.h>

#include "ring.h"

/* The session's ring begins: `wanted` when it lies in a file. Context: before the first tick. */
void lapse_news_begin(bool wanted);
/* A record was pushed. Context: the handler, and host threads with every signal blocked. A system call
 * when there is news and none was told since the drain thread's last turn. */
LAPSE_SIGSAFE void lapse_news_look(const struct lapse_record *record);

#endif
