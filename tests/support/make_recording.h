/* SPDX-License-Identifier: MIT */
/* Recordings made up for tests and benchmarks: chunk by chunk, or a whole one from a few numbers.
 * Written with export/wire.h, as the runtime does it. Also a program: build/.../tests/make-recording. */
#ifndef LAPSE_TESTS_MAKE_RECORDING_H
#define LAPSE_TESTS_MAKE_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire.h"

/* A spool that is being written. Fields are added to the chunk that is open; commit writes it. Every
 * call ends the program with a message when it fails. */
struct lapse_test_spool {
    int fd;
    struct lapse_wire wire;
    uint32_t nodes; /* ids given out in this session */
    uint32_t first_node; /* of the open chunk */
    uint64_t session;
    uint8_t build;  /* added to the bytes of build ids */
    uint32_t run_index; /* of the next header */
    uint64_t shift_ns;  /* from second 1 to the start of the next header and its threads */
    bool anonymous; /* leave out Chunk.first_node and Chunk.session, as older writers did */
};

struct lapse_test_sample {
    uint64_t time_ns;
    uint32_t node;
    uint64_t leaf_pc, weight_ns;
    uint32_t labels;
    uint64_t cut_cfa;
};

void lapse_test_spool_open(struct lapse_test_spool *spool, const char *path); /* made or appended to */
void lapse_test_spool_close(struct lapse_test_spool *spool);                  /* commits what is left */
void lapse_test_spool_commit(struct lapse_test_spool *spool);

/* A new session. Its start is second 1 on the monotonic clock; period 0 means 5 ms. */
void lapse_test_spool_header(struct lapse_test_spool *spool, uint32_t pid, const char *program,
                             uint64_t period_ns);
void lapse_test_spool_module(struct lapse_test_spool *spool, uint32_t id, const char *path, uint64_t start,
                             uint64_t end, uint64_t bias, uint64_t loaded_ns, uint64_t unloaded_ns);
void lapse_test_spool_thread(struct lapse_test_spool *spool, uint32_t id, uint32_t tid, const char *name);
uint32_t lapse_test_spool_node(struct lapse_test_spool *spool, uint32_t parent, uint64_t call_site,
                               uint64_t function, uint32_t flags);
void lapse_test_spool_samples(struct lapse_test_spool *spool, uint32_t thread,
                              const struct lapse_test_sample *samples, uint32_t count);
void lapse_test_spool_raw(struct lapse_test_spool *spool, uint32_t thread, uint64_t time_ns,
                          uint64_t weight_ns, const uint64_t *pcs, uint32_t count, uint32_t flags);
void lapse_test_spool_symbol(struct lapse_test_spool *spool, uint64_t address, uint64_t size,
                             const char *name, uint64_t from_ns, uint64_t until_ns);
/* Frames: `name file line` triples, outermost first. */
struct lapse_test_frame { const char *name, *file; uint32_t line; };
void lapse_test_spool_address(struct lapse_test_spool *spool, uint64_t address, bool is_return,
                              const struct lapse_test_frame *frames, uint32_t count);
void lapse_test_spool_labels(struct lapse_test_spool *spool, uint32_t id, const char *key,
                             const char *value);
void lapse_test_spool_span(struct lapse_test_spool *spool, uint32_t thread, uint64_t start_ns,
                           uint64_t end_ns, const char *name);
void lapse_test_spool_note(struct lapse_test_spool *spool, const char *text);
/* Field numbers and values of message Counters, ended by field 0. */
void lapse_test_spool_counters(struct lapse_test_spool *spool, const uint64_t (*fields)[2]);
void lapse_test_spool_end(struct lapse_test_spool *spool, uint32_t reason, uint32_t signal,
                          uint64_t time_ns, uint64_t user_ns, uint64_t system_ns);

/* A whole recording. Zero means the default in brackets. Equal options give equal bytes. */
struct lapse_test_recording {
    uint32_t processes; /* [1] */
    uint32_t threads;   /* per process [2] */
    uint32_t stacks;    /* distinct, per process [100] */
    uint32_t samples;   /* per process [1000] */
    uint32_t depth;     /* deepest [20] */
    uint32_t functions; /* [stacks / 2] */
    uint32_t modules;   /* [3] */
    uint32_t leaf_pcs;  /* places in the innermost function that samples hit [8] */
    uint64_t period_ns; /* [5 ms] */
    uint32_t build;     /* of the modules: equal files with another build id [0] */
    uint64_t seed;
    bool walk;          /* from sample to sample a few calls return and a few are made, as programs do;
                         * else two samples of three repeat the stack, the third draws any */
    bool runs;          /* each process is a run of its own, 100 s after the one before */
    bool no_symbols;    /* functions stay unnamed */
    bool labels;        /* three label sets, on two samples of three */
    bool spans;         /* one per thread */
    bool lines;         /* AddressInfo with inlined functions for a part of the pcs */
    bool cut;           /* every 16th stack lies under [truncated] */
    bool late;          /* some samples are [not sampled] */
    bool raw;           /* the last samples of each thread are raw */
    bool no_end;
};

void lapse_test_make_recording(const char *path, const struct lapse_test_recording *recording);

#endif
