/* SPDX-License-Identifier: MIT */
/* What the drain thread has collected in this session: call tree, modules, threads, samples not yet
 * written, weights by node. Owned by the drain thread (by the thread that finishes when there is
 * none); memory from its arena, given back as a whole. Three files fill it:
 *   store.c    records in, threads, pending samples
 *   stacks.c   captured pcs to call-tree nodes; modules
 *   chunks.c   chunks of the spool out */
#ifndef LAPSE_RUNTIME_STORE_H
#define LAPSE_RUNTIME_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "arena.h"
#include "call_tree.h"
#include "modules.h"
#include "ring.h"
#include "spool.h"

enum { LAPSE_PSEUDO_TRUNCATED = 1, LAPSE_PSEUDO_UNWIND_FAILED = 2, LAPSE_PSEUDO_NOT_SAMPLED = 3,
       LAPSE_PSEUDO_LAST = 3 };
enum { LAPSE_NODE_GUESSED = 1, LAPSE_NODE_NO_UNWIND_INFO = 2 };

#define LAPSE_PENDING_MAX 8192u
#define LAPSE_NO_SAMPLE UINT32_MAX

struct lapse_store_thread {
    struct lapse_store_thread *next; /* in its bucket */
    uint32_t id, tid;
    uint64_t start_ns, end_ns, cpu_ns, last_ns;
    char name[64];
    bool named;               /* by the application, not by the kernel */
    bool unsampled;           /* no tick could come */
    bool changed;             /* to be written */
    uint32_t first, last;     /* its pending samples, by number */
    uint64_t *pcs;            /* stack of its last sample, root first */
    uint32_t *nodes;          /* and the node of each */
    uint32_t depth, capacity, root;
};

struct lapse_pending {
    uint64_t time_ns, leaf, weight_ns, cut_cfa;
    uint32_t node, label, next;
};

struct lapse_store_module {
    struct lapse_mapped_module module; /* path is ours */
    uint32_t id;
    uint64_t loaded_ns, unloaded_ns;
    bool changed, seen;
};

struct lapse_label_pair { uint64_t key, value; }; /* addresses, as captured */
struct lapse_label_set { uint32_t first, count, next; }; /* pairs of `label_pairs`; next in its bucket */
#define LAPSE_LABEL_BUCKETS 256u
#define LAPSE_LABEL_SETS_KEPT 4096u
#define LAPSE_THREAD_BUCKETS 1024u

struct lapse_pending_span { uint64_t start_ns, end_ns, name; uint32_t thread; };

struct lapse_memo { uint64_t pc, function; uint32_t flags; };

/* A function of the tree is its address and, above the 47 bits of one, how many other files had been
 * mapped there before: functions of libraries that used one place after the other stay apart. */
#define LAPSE_FUNCTION_BITS 48
static inline uint64_t lapse_function_address(uint64_t function)
{
    return function >> 63 ? function : function & ((UINT64_C(1) << LAPSE_FUNCTION_BITS) - 1);
}

struct lapse_store {
    struct lapse_arena arena;
    struct lapse_allocator allocator;
    struct lapse_call_tree *tree;
    uint64_t *weights;            /* self weight by node */
    uint32_t weights_capacity;
    uint64_t samples;             /* taken in so far, late ticks included */
    uint64_t late_ticks;
    uint64_t ring_position;       /* records before it were taken in */

    struct lapse_modules modules; /* as last read */
    uint64_t modules_read_ns;
    uint32_t modules_met;         /* lapse_unwind_modules_met at that time */
    struct lapse_store_module *known;
    uint32_t known_count, known_capacity;
    struct lapse_memo *memo;
    uint32_t memo_mask, memo_used;

    /* Those that live, in no order, and by number in the recording: a server may make a thread for each
     * request and run for months, so nothing here grows with the number of threads that ever were. */
    struct lapse_store_thread **threads;
    uint32_t thread_count, threads_capacity;
    struct lapse_store_thread *thread_buckets[LAPSE_THREAD_BUCKETS];
    uint64_t names_read_ns;
    struct lapse_pending *pending;
    uint32_t pending_count;

    /* Sets of labels by the addresses of their strings; set n is label_sets[n - 1 - label_sets_forgotten].
     * When there are many, as where each request has a label of its own, those in the spool are forgotten. */
    struct lapse_label_set *label_sets;
    uint32_t label_sets_forgotten;
    uint32_t label_set_count, label_set_capacity, label_sets_written;
    struct lapse_label_pair *label_pairs;
    uint32_t label_pair_count, label_pair_capacity;
    uint32_t label_buckets[LAPSE_LABEL_BUCKETS]; /* 1 + place of the newest set; 0: none */
    struct lapse_pending_span *spans;
    uint32_t span_count, span_capacity;

    struct lapse_spool spool;
    struct lapse_wire wire;       /* chunk under construction */
    uint32_t chunk_samples;
    bool header_written, unsent;  /* unsent: the chunk in `wire` could not be written yet */
    bool is_ending;       /* no stack comes any more */
    bool chunk_has_nodes; /* the open chunk says the id of its first node */
    uint32_t nodes_written;
    uint64_t lost_samples, write_errors, unread_modules;
    int first_error;
};
extern struct lapse_store lapse_store;

/* When modules went, on the samples' clock; 0: nothing to look at. Set by any thread, taken by the drain
 * thread with the first sample that is later. */
extern _Atomic uint64_t lapse_store_modules_changed_ns;
/* Threads that are about to unload something: addresses in no known module are looked up at once. */
extern _Atomic uint32_t lapse_store_unloading;

int lapse_store_init(struct lapse_store *store);
/* Take one record in. */
void lapse_store_record(struct lapse_store *store, const struct lapse_record *record);
struct lapse_store_thread *lapse_store_thread(struct lapse_store *store, uint32_t id, uint32_t tid);

/* Look at the thread's name; a new one is written again. */
void lapse_store_read_name(struct lapse_store_thread *thread);

/* labels.c: the number of this record's set of labels, 0 for none. */
uint32_t lapse_store_labels(struct lapse_store *store, const struct lapse_record *record);
/* After a chunk: no sample that waits has one of the sets that were written. */
void lapse_store_forget_labels(struct lapse_store *store);
/* A span, kept until the next write; lost (and counted) when there is no memory. */
void lapse_store_span(struct lapse_store *store, uint32_t thread, const struct lapse_record *record);
/* A string of the application by its address, cut at `size`; "" where nothing can be read. Cannot
 * fault, whatever became of it. */
void lapse_store_host_string(char *to, size_t size, uint64_t address);

/* The node of this stack, interned. */
uint32_t lapse_store_intern(struct lapse_store *store, struct lapse_store_thread *thread,
                            const struct lapse_record *record);
/* `since_ns`: what is gone or new has been so from this moment. True when something is gone. */
bool lapse_store_read_modules(struct lapse_store *store, uint64_t since_ns);
/* The known module (loaded or not any more) that holds the function, and when that file took the place
 * of another and made room for the next (0: never). NULL when there is none. */
const struct lapse_store_module *lapse_store_module_of(const struct lapse_store *store, uint64_t function,
                                                       uint64_t *from_ns, uint64_t *until_ns);

/* Write pending samples and what they need. Nothing while there was no sample. */
void lapse_store_write(struct lapse_store *store);
/* Symbols and end mark. */
struct lapse_function_name {
    uint64_t function; /* as in the tree */
    const char *name, *system_name;
    uint64_t start, size; /* of what the name covers; without a name: of the code that nothing tells apart */
    bool run_time;        /* code of no file: its symbols are written by run_time_names.c */
};
/* Room for one more item of up to a quarter of a chunk: in the one under construction, or in a new one. */
bool lapse_store_room(struct lapse_store *store);
void lapse_store_write_symbols(struct lapse_store *store, const struct lapse_function_name *names,
                               uint32_t count);
void lapse_store_write_end(struct lapse_store *store, uint32_t reason, uint32_t signal);
/* Around all that the end of a session writes: what has no file yet may go into the one that short processes
 * share (spool.h). */
void lapse_store_hold(struct lapse_store *store);
void lapse_store_let_go(struct lapse_store *store);

/* outputs.c: names, then folded text and events, as the options say. */
void lapse_outputs_write(struct lapse_store *store, uint64_t deadline_ns);

/* outputs.c: the spool as it is, with names, into a new file. Returns 0 or a negative errno. */
int lapse_outputs_snapshot(struct lapse_store *store, const char *path);

/* Memory of the store, grown like an array. Returns NULL when there is none; the old stays valid. */
void *lapse_store_grow(struct lapse_store *store, void *array, uint32_t *capacity, uint32_t needed,
                       size_t item);

#endif
