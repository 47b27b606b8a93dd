/* SPDX-License-Identifier: MIT */
/* What the application says about its own threads: labels, spans, names, exclusion.
 *
 * It lies in the thread's own static thread-local block (initial-exec: an address off the thread
 * pointer, no call), written by the thread outside the handler and read by the thread's own handler,
 * so the only order that matters is the compiler's. Whose it is, is told by `session` and `tid`: a
 * thread made by a raw clone without a block of its own shares that of its maker and carries no
 * labels; what is left of an earlier session does not count. */
#ifndef LAPSE_RUNTIME_ANNOTATIONS_H
#define LAPSE_RUNTIME_ANNOTATIONS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "walk.h"

#define LAPSE_LABELS_MAX 8u /* pairs that a sample carries; deeper ones are counted, so that pops match */
#define LAPSE_SPANS_MAX 16u

struct lapse_annotations {
    uint32_t session;            /* number of the session that the following belong to */
    int32_t tid;
    _Atomic uint32_t label_depth; /* pushes without their pops */
    uint32_t span_depth;
    uint32_t paused;             /* pauses without their resumes */
    uint32_t excluded;           /* outlives sessions */
    uint32_t thread;             /* number in the recording, 0: not asked yet */
    struct { const char *key, *value; } labels[LAPSE_LABELS_MAX];
    struct { const char *name; uint64_t start_ns; } spans[LAPSE_SPANS_MAX];
    const char *name;            /* outlives sessions */
};

extern _Thread_local struct lapse_annotations lapse_annotations
    __attribute__((tls_model("initial-exec")));

/* Number of the open session, 0: none. Written by the control side; all else reads it as a flag. */
extern _Atomic uint32_t lapse_annotations_session;
/* Spans that found no room in the ring. */
extern _Atomic uint64_t lapse_annotations_dropped;
/* Threads that are writing a record which is no sample, or that come into the session; a stop waits for
 * them. */
extern _Atomic uint32_t lapse_annotations_inside;

struct lapse_slot;

/* Context: the thread itself, signals blocked, when its slot is made. */
void lapse_annotations_begin(struct lapse_slot *slot);
/* A session begins: the next number. */
void lapse_annotations_new_session(void);
/* The session opens or closes to annotations. */
void lapse_annotations_open(bool open);

/* Handler of the thread with this id: is it to be left alone? */
LAPSE_SIGSAFE bool lapse_annotations_paused(int32_t tid);
/* Its labels, outermost first, as pairs of pointers; returns how many pairs. */
LAPSE_SIGSAFE uint32_t lapse_annotations_labels(int32_t tid, uint64_t pairs[2 * LAPSE_LABELS_MAX]);

#endif
