/* SPDX-License-Identifier: MIT */
/* A recording as it stands in the file: sessions with their modules, threads, call-tree nodes,
 * symbols and counters in memory, samples streamed from the file as often as asked.
 * Any prefix of a file is read; what is damaged or missing is counted, never fatal.
 * Offline only. Memory grows with distinct stacks and modules, not with samples. */
#ifndef LAPSE_EXPORT_RECORDING_H
#define LAPSE_EXPORT_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "call_tree.h"

struct lapse_text_range { uint64_t start, end, file_offset; };

struct lapse_module {
    uint32_t id;
    char *path;
    uint8_t build_id[32];
    uint32_t build_id_size;
    uint64_t start, end, bias;
    struct lapse_text_range *text;
    uint32_t text_count;
    uint64_t loaded_ns, unloaded_ns; /* unloaded 0: still there at the end */
    uint64_t reach; /* the reader's own: furthest end of the modules up to this one */
};

struct lapse_recorded_thread {
    uint32_t id, tid;
    char *name;
    uint64_t start_ns, end_ns, cpu_ns;
    bool unsampled;
};

struct lapse_symbol {
    uint64_t address, size;
    char *name, *system_name, *file; /* system_name and file may be NULL */
    uint32_t line;
    uint64_t from_ns, until_ns;
    uint64_t reach; /* the reader's own: furthest end of the symbols up to this one */
};

struct lapse_inline_frame { char *name, *system_name, *file; uint32_t line; };
struct lapse_address_info {
    uint64_t address;
    bool is_return;
    struct lapse_inline_frame *frames; /* outermost first */
    uint32_t frame_count;
};

struct lapse_label { char *key, *value; };
struct lapse_label_set { uint32_t id; struct lapse_label *labels; uint32_t label_count; };
struct lapse_recorded_span { uint32_t thread; uint64_t start_ns, end_ns; char *name; };

/* As message Counters of docs/lapse.proto, field by field. */
struct lapse_counters {
    uint64_t ticks, merged_ticks, recorded, dropped_ring_full, dropped_gate_closed, truncated,
        unwind_failures, guessed_frames, unsampled_threads, unsampled_ns, late_ticks, handler_ns,
        drain_ns, rate_lowered, cache_full, write_errors, threads_seen, dropped_weight_ns,
        lost_samples, dropped_spans, unread_modules, signal_taken, before_ns;
};

enum lapse_recorded_clock { LAPSE_RECORDED_CPU, LAPSE_RECORDED_PERF, LAPSE_RECORDED_WALL };
enum lapse_end_reason {
    LAPSE_END_UNKNOWN, LAPSE_END_EXIT, LAPSE_END_STOP, LAPSE_END_EXEC, LAPSE_END_SIGNAL,
    LAPSE_END_SANDBOX, LAPSE_END_KILLED,
};

struct lapse_session {
    uint8_t session_id[16], run_id[16];
    bool has_run_id;
    uint32_t run_index, variant;
    uint32_t pid, ppid;
    uint32_t *ns_pids;
    uint32_t ns_pid_count;
    char *program, *host, *writer;
    char **arguments;
    uint32_t argument_count;
    enum lapse_recorded_clock clock;
    uint64_t period_ns, start_monotonic_ns, start_realtime_ns, gap_ns;
    uint32_t depth_limit, min_samples, close;

    struct lapse_module *modules;
    uint32_t module_count; /* sorted by start */
    struct lapse_recorded_thread *threads;
    uint32_t thread_count;
    struct lapse_call_tree *tree;
    struct lapse_symbol *symbols; /* sorted by address, then from_ns */
    uint32_t symbol_count;
    struct lapse_address_info *addresses; /* sorted by address */
    uint32_t address_count;
    struct lapse_label_set *label_sets;
    uint32_t label_set_count;
    struct lapse_recorded_span *spans;
    uint32_t span_count;
    char **notes;
    uint32_t note_count;
    struct lapse_counters counters;

    bool ended;
    enum lapse_end_reason end_reason;
    uint32_t end_signal;
    uint64_t end_ns, user_ns, system_ns;
    uint64_t tree_ns; /* CPU time of all processes of the recording, told by one session */

    uint64_t first_sample_ns, last_sample_ns, sample_count;
};

struct lapse_recorded_sample {
    uint32_t session; /* index */
    uint32_t thread;  /* id in the session */
    uint32_t node;    /* of the session's tree */
    uint32_t labels;  /* label-set id, 0 none */
    uint64_t time_ns, leaf_pc, weight_ns, cut_cfa;
    uint32_t thread_index; /* of the session's threads */
};

/* What could not be read. */
struct lapse_damage {
    uint64_t bad_chunks;    /* checksum or contents wrong */
    uint64_t skipped_bytes; /* between good chunks */
    uint64_t cut_bytes;     /* an unfinished chunk at the end */
    uint64_t bad_references; /* samples, nodes of things that were never defined */
};

struct lapse_recording {
    char *path;
    struct lapse_session *sessions;
    uint32_t session_count;
    struct lapse_damage damage;
    struct lapse_recording_source *source; /* the reader's own */
};

/* Read everything but the samples. `error` gets one line that names the file and the cause.
 * Returns 0 or a negative errno; -EBADMSG: not a lapse recording at all. "-" is standard input. */
int lapse_recording_open(struct lapse_recording **recording, const char *path, char *error,
                         size_t error_size);
/* The same with a descriptor from lapse_open_seekable (chunk_file.h), which is taken over in any case;
 * `name` is for messages. */
int lapse_recording_open_fd(struct lapse_recording **recording, int fd, const char *name, char *error,
                            size_t error_size);
void lapse_recording_close(struct lapse_recording *recording);

/* Is this the beginning of a recording? For commands that take several kinds of input. */
bool lapse_recording_is(const void *bytes, size_t size);

/* Stream all samples, per thread in order of time. A non-zero return of `each` ends it and is returned. */
typedef int lapse_each_sample(void *context, const struct lapse_recorded_sample *sample);
int lapse_recording_each_sample(struct lapse_recording *recording, lapse_each_sample *each,
                                void *context);

/* How far a running lapse_recording_each_sample is: bytes done, of *total. */
uint64_t lapse_recording_progress(const struct lapse_recording *recording, uint64_t *total);

/* [from_ns, until_ns): how long the answer to a look-up holds, since modules come and go and JIT
 * code is replaced. Made smaller by a look-up, never larger. */
struct lapse_validity { uint64_t from_ns, until_ns; }; /* until UINT64_MAX: for ever */

static inline bool lapse_validity_holds(const struct lapse_validity *validity, uint64_t time_ns)
{
    return time_ns >= validity->from_ns &&
           (time_ns < validity->until_ns || validity->until_ns == UINT64_MAX);
}

static inline void lapse_validity_narrow(struct lapse_validity *to, uint64_t from_ns, uint64_t until_ns)
{
    if (from_ns > to->from_ns)
        to->from_ns = from_ns;
    if (until_ns < to->until_ns)
        to->until_ns = until_ns;
}

/* Module that covers an address at a time (modules come and go), or NULL. */
const struct lapse_module *lapse_session_module(const struct lapse_session *session,
                                                uint64_t address, uint64_t time_ns);
const struct lapse_module *lapse_session_module_while(const struct lapse_session *session,
                                                      uint64_t address, uint64_t time_ns,
                                                      struct lapse_validity *validity);

/* Have different modules covered the address? A symbol without times says nothing then. */
bool lapse_session_is_reused(const struct lapse_session *session, uint64_t address);

/* Symbol that covers an address at a time, or NULL. `validity` may be NULL. */
const struct lapse_symbol *lapse_session_symbol(const struct lapse_session *session,
                                                uint64_t address, uint64_t time_ns,
                                                struct lapse_validity *validity);

/* What `lapse symbolize` knew about a pc, or NULL. */
const struct lapse_address_info *lapse_session_address(const struct lapse_session *session,
                                                       uint64_t pc, bool is_return);

#endif
