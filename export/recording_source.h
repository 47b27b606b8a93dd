/* SPDX-License-Identifier: MIT */
/* What the two halves of the reader share: recording.c builds sessions, recording_samples.c streams.
 * No one else includes this. */
#ifndef LAPSE_EXPORT_RECORDING_SOURCE_H
#define LAPSE_EXPORT_RECORDING_SOURCE_H

#include "chunk_file.h"
#include "index.h"
#include "lapse.pb-c.h"
#include "recording.h"

/* Stacks deeper than this are not believed: the deepest that is recorded has 4096 frames. */
#define LAPSE_RECORDED_DEPTH_MAX 8192u

/* What the reader knows of a session beyond the session itself. */
struct lapse_session_state {
    uint64_t tag;           /* first bytes of session_id, 0 unknown */
    uint32_t *nodes;        /* id in the file -> node of the tree; LAPSE_INDEX_NONE: lost */
    uint32_t node_count;    /* ids so far, 0 for the root included */
    bool unsure;            /* a chunk is missing that may have held nodes */
    bool closed;            /* ids of further nodes are not known: no more are taken */
    bool has_raw;
    struct lapse_map modules, threads, label_sets; /* id -> index */
    struct lapse_map function_of_site; /* call site -> number in site_functions */
    uint64_t *site_functions;
    uint32_t site_count;
    uint64_t *thread_last_ns; /* by thread index, during a pass over samples */
    uint32_t thread_last_count;
};

/* Memory for one chunk at a time. */
struct lapse_chunk_memory {
    struct lapse_memory_block *blocks; /* the one in use first */
    size_t used, total;
};

struct lapse_recording_source {
    struct lapse_chunk_file file;
    struct lapse_chunk_memory memory;
    struct lapse_session_state *states; /* as many as sessions */
    struct lapse_map tags; /* tag -> last session with it that the running pass has met */
};

/* The reader's own counting of what it could not use goes to `damage`; streaming again uses a copy
 * that is thrown away. */
struct lapse_sample_pass {
    struct lapse_recording *recording;
    struct lapse_damage *damage;
    lapse_each_sample *each; /* NULL: the first pass, that counts and defines threads */
    void *context;
};

/* A chunk from its body, in memory of `allocator`, which must not want single pieces back. NULL: it is
 * no Chunk, or there is no memory. */
Lapse__Chunk *lapse_chunk_unpack(ProtobufCAllocator *allocator, const uint8_t *body, size_t size);

/* All samples of one chunk of a session, raw ones too when `each` is set. */
int lapse_recording_chunk_samples(struct lapse_sample_pass *pass, uint32_t session,
                                  const Lapse__Chunk *chunk);
/* Put the stacks of raw samples into the trees, once all symbols are known. */
int lapse_recording_intern_raw(struct lapse_recording *recording);

/* recording_contents.c: a new session; a remark; what a header and the rest of a chunk say. */
struct lapse_session *lapse_recording_add_session(struct lapse_recording *recording);
int lapse_recording_add_note(struct lapse_session *session, const char *text);
int lapse_recording_take_header(struct lapse_recording *recording, const Lapse__Header *header);
int lapse_recording_take_contents(struct lapse_recording *recording, uint32_t session,
                                  const Lapse__Chunk *chunk);
void lapse_recording_free_session(struct lapse_session *session, struct lapse_session_state *state);

/* The next chunk, unpacked, and whose it is. Returns 1, 0 at the end or a negative errno. */
int lapse_recording_next_chunk(struct lapse_recording *recording, struct lapse_damage *damage,
                               Lapse__Chunk **chunk, bool *gap);
/* Session that a chunk without a header belongs to: `current`, or the last one of its tag that this
 * pass has met; LAPSE_INDEX_NONE: one that was not met before. */
uint32_t lapse_recording_session_of(const struct lapse_recording *recording, uint32_t current,
                                    const Lapse__Chunk *chunk);
/* This pass has met a session. Returns 0 or -ENOMEM. */
int lapse_recording_met_session(struct lapse_recording *recording, uint32_t session);
/* Index of the thread, made when it was never defined; LAPSE_INDEX_NONE without memory. */
uint32_t lapse_recording_thread(struct lapse_recording *recording, uint32_t session, uint32_t id);

#endif
