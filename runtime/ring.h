/* SPDX-License-Identifier: MIT */
/* The ring: samples on their way from the handlers to the drain thread.
 *
 * A power of two of 64-bit words. `head` and `tail` count words since start, never reset, compared by
 * unsigned difference; word p lives at words[p & mask]. A record is a run of words, and may wrap:
 *
 *   0 header   bits 0-15 words of the record, 16-23 kind, 24-31 flags, 32-63 check (the low half of
 *              the record's position, mixed with a constant). Never 0. Written last.
 *   1 time     CLOCK_MONOTONIC, ns
 *   2 thread   low half: number in the recording; high half: kernel thread id
 *   3 weight   ns
 *   4 labels   pairs of labels
 *   5 cfa      of the outermost captured frame when the stack is cut, else 0
 *   6...       pcs, leaf first; then the labels, outermost first: key, value (addresses of strings)
 *
 * Producers (handlers; any number, any thread) reserve by compare-and-swap on head, write words 1..,
 * and commit by a release store of word 0. Consumer (one) reads the record at tail once its word 0
 * is not 0, sets all its words to 0, and hands them back by a release store of tail.
 *
 *   Empty:  the word at tail is 0. A reserved but unwritten record looks the same, so a stalled
 *           producer delays the consumer and nobody else.
 *   Full:   head + words - tail > size. The record is dropped and its producer counts it.
 *   Limit:  memory behind the position `limit` is not reserved yet, and nothing is written there: full for
 *           now (ring_file.h). It goes up once, to no limit.
 *   Clear:  only the consumer writes 0, only between commit and hand-back. So a free word is 0, and
 *           any free word may become a header.
 *   Late:   the consumer may read on and hand back later (lapse_ring_peek, lapse_ring_hand_back): the
 *           drain thread does so once the samples are in the spool.
 *   No ABA: positions grow for ever (2^64 words); the compare-and-swap is on positions.
 *
 * Progress: producers are wait-free (a fixed number of tries, then the record is dropped and
 * counted as full); the consumer never waits in here.
 * Invariants: head - tail <= size; words outside [tail, head) are 0.
 *
 * The control page and the words may lie in a mapped file that outlives the process (ring_file.h): a
 * reader then takes the records from tail on whose check fits their position. */
#ifndef LAPSE_RUNTIME_RING_H
#define LAPSE_RUNTIME_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "walk.h"

#define LAPSE_RING_MAGIC UINT64_C(0x31474e4952504c4c) /* "LLPRING1" */
#define LAPSE_RING_CHECK 0x9e3779b9u
#define LAPSE_RING_CONTROL_SIZE 4096u
#define LAPSE_RECORD_FIXED 6u
#define LAPSE_RECORD_WORDS_MAX 0xffffu

enum lapse_record_kind {
    LAPSE_RECORD_SAMPLE = 1,
    LAPSE_RECORD_NOT_SAMPLED = 2, /* late ticks: weight without a stack */
    LAPSE_RECORD_THREAD_END = 3,  /* weight is the thread's CPU time at its end */
    LAPSE_RECORD_SPAN = 4,        /* from weight to time; cfa is the address of its name */
    LAPSE_RECORD_THREAD_NAME = 5, /* cfa is the address of the name */
};

/* enum RawFlag of docs/lapse.proto, plus what the walk says beside it. */
enum lapse_record_flags {
    LAPSE_RECORD_TRUNCATED = 1,
    LAPSE_RECORD_FAILED = 2,
    LAPSE_RECORD_UNSAMPLED = 4, /* of NOT_SAMPLED: no tick could come to the thread */
};

/* What a reader has to know of a process that died before it made its spool. */
struct lapse_ring_owner {
    uint64_t start_ns, start_realtime_ns, gap_ns;
    uint32_t clock, depth, min_samples, close;
    uint32_t is_retired; /* everything is in the spool; a child or a new image may be about to begin */
    uint32_t has_run_id, run_index, run_variant;
    uint8_t run_id[16];
    char program[1024];
};

struct lapse_ring_control {
    /* Set before the first tick, constant after; magic last. */
    uint64_t magic;
    uint64_t words;
    uint8_t session_id[16];
    uint64_t period_ns;
    uint64_t pid;
    /* Written by producers, read by the consumer (statistics) and by producers. */
    alignas(64) _Atomic uint64_t head;
    _Atomic uint64_t recorded; /* samples committed since start, late ticks not included */
    /* Written by the consumer, read by producers. */
    alignas(64) _Atomic uint64_t tail;
    /* Set before the first tick, constant after. */
    alignas(64) struct lapse_ring_owner owner;
};
_Static_assert(sizeof(struct lapse_ring_control) <= LAPSE_RING_CONTROL_SIZE, "one page");

struct lapse_ring {
    struct lapse_ring_control *control;
    _Atomic uint64_t *words; /* data words are ordered by their record's header, and by tail */
    uint64_t mask;
    _Atomic uint64_t limit;
};

#define LAPSE_RING_NO_LIMIT UINT64_MAX

struct lapse_record {
    uint8_t kind, flags;
    uint32_t thread, tid;
    uint64_t time_ns, weight_ns, cut_cfa;
    const uint64_t *pcs;
    uint32_t depth;
    uint32_t label_count;   /* pairs */
    const uint64_t *labels; /* 2 words a pair */
};

/* `memory`: LAPSE_RING_CONTROL_SIZE + words * 8 zeroed bytes, page-aligned, the caller's. `start`:
 * first position, 0 but in tests. There is no limit at first. Context: before the first tick. Returns 0 or -EINVAL. */
int lapse_ring_init(struct lapse_ring *ring, void *memory, uint64_t words, uint64_t start);

/* Producer: reserve, write, commit. Returns 0, or -ENOBUFS (no room: count it as dropped).
 * Context: handlers, and threads of the host outside the handler. */
LAPSE_SIGSAFE int lapse_ring_push(struct lapse_ring *ring, const struct lapse_record *record);

/* The two halves of it, for tests that stall between them. False: no room. */
LAPSE_SIGSAFE bool lapse_ring_reserve(struct lapse_ring *ring, uint64_t words, uint64_t *position);
LAPSE_SIGSAFE void lapse_ring_commit(struct lapse_ring *ring, uint64_t position,
                                     const struct lapse_record *record);

/* Consumer: take the oldest record. `record->pcs` points into `scratch`, which holds
 * LAPSE_RECORD_WORDS_MAX words or at least the deepest record that was pushed.
 * Returns 1, 0 when nothing is committed at tail, -EBADMSG when the words there are no record (the
 * host wrote over them): everything up to head is then thrown away. */
int lapse_ring_pop(struct lapse_ring *ring, struct lapse_record *record, uint64_t *scratch,
                   uint32_t scratch_words);

/* The two halves of it. Peek takes the record at *position, which is tail or what an earlier peek left
 * there, and moves it on; returns as above (-EBADMSG: *position is head then). Hand back gives all
 * words before `position` to the producers. */
int lapse_ring_peek(struct lapse_ring *ring, uint64_t *position, struct lapse_record *record,
                    uint64_t *scratch, uint32_t scratch_words);
void lapse_ring_hand_back(struct lapse_ring *ring, uint64_t position);

/* Words in use. Any context. */
uint64_t lapse_ring_used(const struct lapse_ring *ring);

/* Where the next record will go; and whether all before such a position was handed back, so that what
 * the consumer did with it is seen. Any context. */
uint64_t lapse_ring_head(const struct lapse_ring *ring);
bool lapse_ring_is_past(const struct lapse_ring *ring, uint64_t position);

/* The invariants above that one look can check; for the consumer's thread while no producer runs. */
bool lapse_ring_is_valid(const struct lapse_ring *ring);

static inline uint64_t lapse_ring_header(uint64_t position, uint64_t words, uint8_t kind,
                                         uint8_t flags)
{
    uint32_t check = (uint32_t)position ^ LAPSE_RING_CHECK;
    return words | (uint64_t)kind << 16 | (uint64_t)flags << 24 | (uint64_t)check << 32;
}

#endif
