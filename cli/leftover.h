/* SPDX-License-Identifier: MIT */
/* What a process that was killed left in its ring (runtime/ring_file.h): samples that its handlers
 * recorded and its drain thread had not yet written. They go to the end of its spool as raw samples;
 * a process that had no spool yet gets one. Used by lapse record and lapse recover. */
#ifndef LAPSE_CLI_LEFTOVER_H
#define LAPSE_CLI_LEFTOVER_H

#include <stdbool.h>
#include <stdint.h>

struct lapse_leftover {
    uint8_t session_id[16];
    bool is_alive;    /* some process still has the ring mapped: nothing was read */
    bool is_retired;  /* all is in the spool; a child or a new image of the process may follow */
    uint32_t pid;
    void *memory;     /* a copy of the file, NULL when alive */
    uint64_t words;
};

/* Look at a ring's file. Returns 0, -EBADMSG when it is none, or (is_alive) not yet; another negative errno. */
int lapse_leftover_open(struct lapse_leftover *leftover, int folder, const char *name);
void lapse_leftover_close(struct lapse_leftover *leftover);

/* Is there any sample in the ring? It may be in the spool already. */
bool lapse_leftover_has_samples(const struct lapse_leftover *leftover);

/* Append to `spool` (open for reading and writing; empty: it is begun) what is not yet in it; a chunk
 * that was cut off at its end is removed. Sets *samples. Returns 0 or a negative errno. */
int lapse_leftover_append(const struct lapse_leftover *leftover, int spool, uint64_t *samples);

#endif
