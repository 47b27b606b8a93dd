/* SPDX-License-Identifier: MIT */
/* lapse/diff.h: the prefix-diff engine as a library.
 *
 * Turns a stream of sampled stacks into start and end events of calls. Per thread, the frames that
 * the new stack shares with the one before (longest common prefix, by position) stay open; frames
 * above it end, innermost first; new frames start, outermost first; all at the new sample's time.
 *
 * The engine knows frames by identity only, never by text: equal `function` and equal `call_site`
 * in the same position under the same open parents is the same call. With names alone, call_site
 * is 0; a call_site of 0 is unknown and agrees with any (two nodes of a call
 * tree with different call sites are different, 0 or not). What sampling cannot prove is marked
 * (enum lapse_proof).
 *
 * Policies, each an option that is off unless set:
 *
 * - close. Frames that are open at the end: LAST ends them at the thread's last sample, NEXT one
 *   period later, AT at a given time (never before the last sample), OPEN not at all. These ends
 *   are what the caller asked for, so they are not marked; their before_ns is UINT64_MAX.
 * - min_samples = k. A frame counts only in a run of at least k consecutive samples with the same
 *   prefix up to it. Its start is dated at the run's first sample and given out k-1 samples later.
 *   Time of a frame that does not count falls to its caller.
 * - confirm = n. A changed stack counts once it was seen n times running, dated at its first
 *   sighting. If the old stack comes back before that, nothing happened. A last stack that is not
 *   confirmed is ignored, but an explicit empty last stack ends everything when it was seen.
 * - gap_ns. When a thread has no sample for longer, its frames end one period after its last sample
 *   (or at the next one, if that is sooner) and the next stack starts anew; all these events are
 *   inferred. Runs and sightings begin anew too.
 * - Cut stacks (LAPSE_STACK_CUT). If a frame address of the new stack is one of the thread's open
 *   frames, both are the same place: proven. Else the stack is put where most names agree from its
 *   outermost known frame inwards: inferred; ambiguous when several places agree equally far (the
 *   innermost is taken). Open frames below that place stay open, hidden. If nothing agrees, a
 *   marker frame (LAPSE_FUNCTION_TRUNCATED) on top of what is open stands for the missing frames
 *   and the cut stack starts above it. Depths above a marker count from the marker. Events at
 *   positions that the sample before did not show are inferred at best.
 *
 * Order: per thread, times of events never go back, and at one time ends come before starts.
 * Between threads the order is that of the deciding samples.
 *
 * Threads: an engine belongs to one thread at a time. Signals: no function is async-signal-safe.
 * Memory: grows with the number of threads and the depth of their stacks, never with the length
 * of the stream. All memory comes from the allocator given at creation. */
#ifndef LAPSE_DIFF_H
#define LAPSE_DIFF_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef LAPSE_API
#define LAPSE_API __attribute__((visibility("default")))
#endif

/* Memory for an engine or a call tree. `resize` grows or frees like realloc: old may be NULL,
 * new_size 0 frees and returns NULL; NULL for another new_size means no memory, old stays valid. */
struct lapse_allocator {
    void *(*resize)(void *context, void *old, size_t old_size, size_t new_size);
    void *context;
};

enum lapse_edge_kind { LAPSE_EDGE_START, LAPSE_EDGE_END };

/* How sure an event is. */
enum lapse_proof {
    LAPSE_PROVEN,    /* the samples show it */
    LAPSE_INFERRED,  /* a policy or an alignment by names put it here */
    LAPSE_AMBIGUOUS, /* several alignments fit equally well; one was taken */
};

/* What becomes of frames that are open when the stream ends. */
enum lapse_close {
    LAPSE_CLOSE_LAST, /* end at the thread's last sample */
    LAPSE_CLOSE_NEXT, /* end one period after it */
    LAPSE_CLOSE_OPEN, /* no end is made up */
    LAPSE_CLOSE_AT,   /* end at a given time */
};

/* One frame of a sampled stack. */
struct lapse_diff_frame {
    uint64_t function;  /* identity of the function (address, or number of its name) */
    uint64_t call_site; /* return address in the caller; 0 when only names are known */
    uint64_t cfa;       /* canonical frame address, 0 when unknown; used to align cut stacks */
};

struct lapse_edge {
    uint64_t time_ns;
    uint64_t thread;
    uint64_t after_ns;  /* the true moment lies in (after_ns, before_ns]: last sample without it, */
    uint64_t before_ns; /* first sample with it */
    uint64_t function;
    uint64_t call_site;
    uint32_t depth;     /* 0 is the root */
    uint8_t kind;       /* enum lapse_edge_kind */
    uint8_t proof;      /* enum lapse_proof */
};

/* [start_ns, end_ns), given out in order of completion. */
struct lapse_interval {
    uint64_t start_ns, end_ns;
    uint64_t start_after_ns, end_after_ns; /* bounds as in struct lapse_edge */
    uint64_t end_before_ns;
    uint64_t thread;
    uint64_t function;
    uint64_t call_site;
    uint32_t depth;
    uint8_t start_proof, end_proof;
};

/* One way to put a cut stack on the thread's open frames; see LAPSE_STACK_CUT. */
struct lapse_diff_alignment {
    uint64_t time_ns, thread;
    uint32_t frames;   /* known frames of the cut stack */
    uint32_t position; /* depth at which its outermost aligned frame would be */
    uint32_t skipped;  /* of its outermost frames: they lie among what was missing before too */
    uint32_t agreeing; /* frames that agree from there inwards */
    uint8_t taken;
    uint8_t proof;     /* enum lapse_proof of the choice */
};

struct lapse_diff_options {
    enum lapse_close close;
    uint64_t close_at_ns;   /* LAPSE_CLOSE_AT */
    uint64_t period_ns;     /* LAPSE_CLOSE_NEXT and gaps; 0 means 1 */
    uint64_t gap_ns;        /* a thread without samples for longer was off the CPU; 0: off */
    uint32_t min_samples;   /* frames seen in fewer consecutive samples are noise; 0 and 1: off */
    uint32_t confirm;       /* a changed stack counts after this many sightings; 0 and 1: off */
    struct lapse_allocator allocator; /* zeroed: malloc */
    void (*edge)(void *context, const struct lapse_edge *edge);             /* may be NULL */
    void (*interval)(void *context, const struct lapse_interval *interval); /* may be NULL */
    void *context;
    /* Called for each cut stack: once for every alignment with at least one agreeing frame, the
     * one that was taken last. May be NULL. */
    void (*explain)(void *context, const struct lapse_diff_alignment *alignment);
};

/* Flags of a pushed stack. */
enum {
    LAPSE_STACK_CUT = 1, /* frames[0] is not the root: outer frames are missing */
    LAPSE_STACK_UNWIND_FAILED = 2, /* with CUT: because the unwinder gave up; names the marker */
};

/* Functions that stand for missing outer frames. Events of the marker carry one of them; an
 * outermost node with one of them makes a cut stack. Real functions need other values. */
enum {
    LAPSE_FUNCTION_TRUNCATED = 1,
    LAPSE_FUNCTION_UNWIND_FAILED = 2,
};

struct lapse_diff;

/* Make an engine. Returns 0, -EINVAL (min_samples together with confirm) or -ENOMEM. */
LAPSE_API int lapse_diff_create(struct lapse_diff **diff, const struct lapse_diff_options *options);
LAPSE_API void lapse_diff_destroy(struct lapse_diff *diff);

/* Take one sample of a thread: frames root first, depth 0 is an explicit empty stack. Times of one
 * thread must strictly increase. Returns 0, -EINVAL (time went back; nothing changed) or -ENOMEM. */
LAPSE_API int lapse_diff_push(struct lapse_diff *diff, uint64_t time_ns, uint64_t thread,
                              const struct lapse_diff_frame *frames, uint32_t depth, uint32_t flags);

/* The same with stacks that are nodes of a call tree. Cost grows with what changed, not with depth:
 * the common prefix is the lowest common ancestor. Frames are read from `tree`, which must hold
 * every node that was pushed and not change them. A thread takes one of the two forms only. */
struct lapse_call_tree;
LAPSE_API int lapse_diff_push_node(struct lapse_diff *diff, uint64_t time_ns, uint64_t thread,
                                   const struct lapse_call_tree *tree, uint32_t node);

/* The same with the canonical frame address of the outermost known frame of a cut stack (0 unknown),
 * so that two cut stacks can be aligned for certain. Ignored for whole stacks. */
LAPSE_API int lapse_diff_push_node_cut(struct lapse_diff *diff, uint64_t time_ns, uint64_t thread,
                                       const struct lapse_call_tree *tree, uint32_t node,
                                       uint64_t cut_cfa);

/* Give out what is complete without closing what is live. The engine gives every event out with the
 * sample that decides it (min_samples and confirm delay that sample, not the engine), so nothing
 * is ever held back and this returns 0; it marks the place in callers that buffer themselves. */
LAPSE_API int lapse_diff_flush(struct lapse_diff *diff);

/* End the stream: close open frames as the options say. The engine can be destroyed after it. */
LAPSE_API int lapse_diff_finish(struct lapse_diff *diff);

struct lapse_diff_counts {
    uint64_t samples, edges;
    uint64_t inferred, ambiguous;  /* edges so marked */
    uint64_t gaps, cut;            /* gaps met; cut stacks taken */
    uint64_t ambiguous_alignments; /* cut stacks with several equally good places */
};
LAPSE_API void lapse_diff_counts(const struct lapse_diff *diff, struct lapse_diff_counts *counts);

#ifdef __cplusplus
}
#endif
#endif
