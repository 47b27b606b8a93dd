/* SPDX-License-Identifier: MIT */
/* Chunks of the spool, as docs/lapse.proto defines them (store.h). Context: the drain thread.
 * Each function appends to the chunk under construction; when that gets full it goes out and another
 * begins. What could not be written stays whole in memory and is tried again first: ids are given
 * by order in the file, so nothing may be left out in the middle. */
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#include "annotations.h"
#include "clocks.h"
#include "drain.h"
#include "message.h"
#include "ring_file.h"
#include "state.h"
#include "store.h"
#include "sys.h"

enum { /* fields of Chunk */
    CHUNK_HEADER = 1, CHUNK_MODULES, CHUNK_THREADS, CHUNK_NODES, CHUNK_SAMPLES, CHUNK_RAW,
    CHUNK_SYMBOLS, CHUNK_ADDRESSES, CHUNK_LABELS, CHUNK_SPANS, CHUNK_COUNTERS, CHUNK_END,
    CHUNK_FIRST_NODE = 14, CHUNK_SESSION = 15, CHUNK_RING_POSITION = 16,
};

#define FULL (LAPSE_CHUNK_MAX / 4 * 3)
#define NAMES_EVERY_NS UINT64_C(500000000) /* a thread's name is a file of /proc */
#define LABEL_BYTES 1024 /* of a key, a value or a span's name; the rest is cut off */

static void note_failure(struct lapse_store *store, int error)
{
    lapse_message(LAPSE_MESSAGE_SPOOL, store->spool.exists ? store->spool.path : store->spool.base,
                  ": cannot be written: ", lapse_error_text(error), "; samples are kept in memory");
    store->write_errors++;
    if (!store->first_error)
        store->first_error = error;
    store->unsent = true;
}

static bool send(struct lapse_store *store)
{
    if (!store->wire.size)
        return true;
    if (!store->unsent) { /* a reader that lost a chunk so knows whose the next one is */
        uint64_t tag;
        memcpy(&tag, lapse_runtime.session_id, sizeof tag);
        lapse_wire_fixed64(&store->wire, CHUNK_SESSION, tag);
    }
    int result = lapse_spool_append(&store->spool, store->wire.bytes, (uint32_t)store->wire.size);
    if (result) {
        note_failure(store, result);
        return false;
    }
    store->unsent = false;
    store->wire.size = 0;
    store->wire.overflow = 0;
    store->chunk_has_nodes = false;
    return true;
}

bool lapse_store_room(struct lapse_store *store)
{
    return store->wire.size < FULL || send(store);
}

/* A file of /proc as a whole. Returns its bytes (at most capacity), 0 when unreadable. */
static size_t read_file(const char *path, char *to, size_t capacity)
{
    long fd = lapse_sys(SYS_open, path, O_RDONLY | O_CLOEXEC);
    size_t size = 0;
    if (fd < 0)
        return 0;
    while (size < capacity) {
        long got = lapse_sys(SYS_read, fd, to + size, capacity - size);
        if (got <= 0)
            break;
        size += (size_t)got;
    }
    lapse_sys(SYS_close, fd);
    return size;
}

static void put_arguments(struct lapse_wire *wire)
{
    static char bytes[32768];
    size_t size = read_file("/proc/thread-self/cmdline", bytes, sizeof bytes);
    for (size_t at = 0; at < size;) {
        size_t length = strnlen(bytes + at, size - at);
        lapse_wire_bytes(wire, 10, bytes + at, length);
        at += length + 1;
    }
}

/* The NSpid line of /proc/self/status: pids from the outermost namespace in. */
static void put_namespace_pids(struct lapse_wire *wire)
{
    static char status[8192];
    size_t size = read_file("/proc/self/status", status, sizeof status - 1);
    status[size] = 0;
    const char *at = strstr(status, "\nNSpid:");
    if (!at)
        return;
    size_t mark = lapse_wire_begin(wire, 7);
    for (at += 7; *at && *at != '\n';) {
        uint64_t pid = 0;
        while (*at == '\t' || *at == ' ')
            at++;
        while (*at >= '0' && *at <= '9')
            pid = pid * 10 + (uint64_t)(*at++ - '0');
        lapse_wire_varint(wire, pid);
    }
    lapse_wire_end(wire, mark);
}

static void put_host(struct lapse_wire *wire)
{
    char name[512];
    size_t size = read_file("/proc/sys/kernel/hostname", name, sizeof name - 1);
    if (size && name[size - 1] == '\n')
        size--;
    if (size)
        lapse_wire_bytes(wire, 11, name, size);
}

static void put_header(struct lapse_store *store)
{
    const struct lapse_settings *settings = &lapse_runtime.settings;
    struct lapse_wire *wire = &store->wire;
    char program[LAPSE_PATH_MAX];
    /* Not /proc/self: that is the first thread's, which may have ended. */
    long size = lapse_sys(SYS_readlink, "/proc/thread-self/exe", program, sizeof program - 1);
    size_t mark = lapse_wire_begin(wire, CHUNK_HEADER);
    lapse_wire_uint(wire, 1, 1);
    lapse_wire_string(wire, 2, "lapse " LAPSE_VERSION);
    lapse_wire_bytes(wire, 3, lapse_runtime.session_id, sizeof lapse_runtime.session_id);
    if (settings->has_run_id)
        lapse_wire_bytes(wire, 4, settings->run_id, sizeof settings->run_id);
    lapse_wire_uint(wire, 5, settings->run_index);
    lapse_wire_uint(wire, 6, lapse_runtime.pid);
    put_namespace_pids(wire);
    lapse_wire_uint(wire, 8, (uint64_t)lapse_sys(SYS_getppid));
    if (size > 0)
        lapse_wire_bytes(wire, 9, program, (size_t)size);
    put_arguments(wire);
    put_host(wire);
    lapse_wire_uint(wire, 12, lapse_runtime.clock);
    lapse_wire_uint(wire, 13, lapse_runtime.period_ns);
    lapse_wire_uint(wire, 14, lapse_runtime.start_ns);
    lapse_wire_uint(wire, 15, lapse_runtime.start_realtime_ns);
    lapse_wire_uint(wire, 16, lapse_runtime.depth);
    lapse_wire_uint(wire, 17, settings->min_samples);
    lapse_wire_uint(wire, 18, settings->gap_ns);
    lapse_wire_uint(wire, 19, settings->close);
    lapse_wire_uint(wire, 20, settings->run_variant);
    lapse_wire_end(wire, mark);
    store->header_written = true;
}

static void put_module(struct lapse_wire *wire, const struct lapse_store_module *known)
{
    const struct lapse_mapped_module *module = &known->module;
    size_t mark = lapse_wire_begin(wire, CHUNK_MODULES);
    lapse_wire_uint(wire, 1, known->id);
    lapse_wire_string(wire, 2, module->path);
    if (module->build_id_size)
        lapse_wire_bytes(wire, 3, module->build_id, module->build_id_size);
    lapse_wire_uint(wire, 4, module->start);
    lapse_wire_uint(wire, 5, module->end);
    lapse_wire_uint(wire, 6, module->bias);
    for (uint32_t i = 0; i < module->text_count; i++) {
        size_t range = lapse_wire_begin(wire, 7);
        lapse_wire_uint(wire, 1, module->text[i].start);
        lapse_wire_uint(wire, 2, module->text[i].end);
        lapse_wire_uint(wire, 3, module->text[i].file_offset);
        lapse_wire_end(wire, range);
    }
    lapse_wire_uint(wire, 8, known->loaded_ns);
    lapse_wire_uint(wire, 9, known->unloaded_ns);
    lapse_wire_end(wire, mark);
}

static bool put_modules(struct lapse_store *store)
{
    for (uint32_t i = 0; i < store->known_count; i++) {
        if (!store->known[i].changed)
            continue;
        if (!lapse_store_room(store))
            return false;
        put_module(&store->wire, &store->known[i]);
        store->known[i].changed = false;
    }
    return true;
}

static bool put_thread(struct lapse_store *store, struct lapse_store_thread *thread)
{
    if (!thread->changed)
        return true;
    if (!lapse_store_room(store))
        return false;
    struct lapse_wire *wire = &store->wire;
    size_t mark = lapse_wire_begin(wire, CHUNK_THREADS);
    lapse_wire_uint(wire, 1, thread->id);
    lapse_wire_uint(wire, 2, thread->tid);
    lapse_wire_string(wire, 3, thread->name);
    lapse_wire_uint(wire, 4, thread->start_ns);
    lapse_wire_uint(wire, 5, thread->end_ns);
    lapse_wire_uint(wire, 6, thread->cpu_ns);
    lapse_wire_uint(wire, 7, thread->unsampled);
    lapse_wire_end(wire, mark);
    thread->changed = false;
    return true;
}

static bool put_nodes(struct lapse_store *store)
{
    uint32_t count;
    const struct lapse_call_node *nodes = lapse_call_tree_nodes(store->tree, &count);
    for (uint32_t i = store->nodes_written + 1; i < count; i++) {
        if (!lapse_store_room(store))
            return false;
        if (!store->chunk_has_nodes)
            lapse_wire_uint(&store->wire, CHUNK_FIRST_NODE, i);
        store->chunk_has_nodes = true;
        size_t mark = lapse_wire_begin(&store->wire, CHUNK_NODES);
        lapse_wire_uint(&store->wire, 1, nodes[i].parent);
        lapse_wire_uint(&store->wire, 2, nodes[i].call_site);
        lapse_wire_uint(&store->wire, 3, lapse_function_address(nodes[i].function));
        lapse_wire_uint(&store->wire, 4, nodes[i].flags);
        lapse_wire_end(&store->wire, mark);
        store->nodes_written = i;
    }
    return true;
}

/* Where a text is in the process: for who finds records that point there in the ring's file (ring_file.h). */
static void put_address(struct lapse_store *store, uint32_t field, uint64_t address)
{
    if (lapse_ring_file_is_used())
        lapse_wire_uint(&store->wire, field, address);
}

static bool put_labels(struct lapse_store *store)
{
    char text[LABEL_BYTES];
    for (; store->label_sets_written < store->label_set_count; store->label_sets_written++) {
        const struct lapse_label_set *set = &store->label_sets[store->label_sets_written];
        if (!lapse_store_room(store))
            return false;
        size_t mark = lapse_wire_begin(&store->wire, CHUNK_LABELS);
        lapse_wire_uint(&store->wire, 1, store->label_sets_forgotten + store->label_sets_written + 1);
        for (uint32_t i = 0; i < set->count; i++) {
            size_t label = lapse_wire_begin(&store->wire, 2);
            lapse_store_host_string(text, sizeof text, store->label_pairs[set->first + i].key);
            lapse_wire_string(&store->wire, 1, text);
            lapse_store_host_string(text, sizeof text, store->label_pairs[set->first + i].value);
            lapse_wire_string(&store->wire, 2, text);
            put_address(store, 3, store->label_pairs[set->first + i].key);
            put_address(store, 4, store->label_pairs[set->first + i].value);
            lapse_wire_end(&store->wire, label);
        }
        lapse_wire_end(&store->wire, mark);
    }
    return true;
}

static bool put_spans(struct lapse_store *store)
{
    char text[LABEL_BYTES];
    for (uint32_t i = 0; i < store->span_count; i++) {
        const struct lapse_pending_span *span = &store->spans[i];
        if (!lapse_store_room(store)) {
            /* What went out stays out. */
            memmove(store->spans, span, (store->span_count - i) * sizeof *span);
            store->span_count -= i;
            return false;
        }
        lapse_store_host_string(text, sizeof text, span->name);
        size_t mark = lapse_wire_begin(&store->wire, CHUNK_SPANS);
        lapse_wire_uint(&store->wire, 1, span->thread);
        lapse_wire_uint(&store->wire, 2, span->start_ns);
        lapse_wire_uint(&store->wire, 3, span->end_ns);
        lapse_wire_string(&store->wire, 4, text);
        put_address(store, 5, span->name);
        lapse_wire_end(&store->wire, mark);
    }
    store->span_count = 0;
    return true;
}

enum sample_field { TIME = 3, NODE, LEAF, WEIGHT, LABEL, CFA };

/* One packed list of a block. Labels and cut CFAs are left out where all are 0. */
static void put_list(struct lapse_store *store, const struct lapse_store_thread *thread,
                     enum sample_field field)
{
    const struct lapse_pending *pending = store->pending;
    struct lapse_wire *wire = &store->wire;
    uint64_t time = pending[thread->first].time_ns, leaf = 0, node = 0, any = 0;
    size_t start = wire->size, mark = lapse_wire_begin(wire, field);
    for (uint32_t i = thread->first; i != LAPSE_NO_SAMPLE; i = pending[i].next) {
        const struct lapse_pending *sample = &pending[i];
        switch (field) {
        case TIME: lapse_wire_varint(wire, sample->time_ns - time); time = sample->time_ns; any = 1; break;
        case NODE: lapse_wire_zigzag(wire, (int64_t)(sample->node - node)); node = sample->node; any = 1; break;
        case LEAF: lapse_wire_zigzag(wire, (int64_t)(sample->leaf - leaf)); leaf = sample->leaf; any = 1; break;
        case WEIGHT: lapse_wire_varint(wire, sample->weight_ns); any = 1; break;
        case LABEL: lapse_wire_varint(wire, sample->label); any |= sample->label; break;
        case CFA: lapse_wire_varint(wire, sample->cut_cfa); any |= sample->cut_cfa; break;
        }
    }
    lapse_wire_end(wire, mark);
    if (!any)
        wire->size = start;
}

static void put_samples(struct lapse_store *store, struct lapse_store_thread *thread)
{
    struct lapse_wire *wire = &store->wire;
    size_t mark = lapse_wire_begin(wire, CHUNK_SAMPLES);
    lapse_wire_uint(wire, 1, thread->id);
    lapse_wire_uint(wire, 2, store->pending[thread->first].time_ns);
    for (int field = TIME; field <= CFA; field++)
        put_list(store, thread, (enum sample_field)field);
    lapse_wire_end(wire, mark);
    thread->first = thread->last = LAPSE_NO_SAMPLE;
}

/* Of those that have ended, and of those that live, so far. */
static uint64_t unsampled_ns(void)
{
    /* relaxed: statistics */
    uint64_t sum = atomic_load_explicit(&lapse_runtime.unsampled_ns, memory_order_relaxed);
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_acquire);
    if (!atomic_load_explicit(&lapse_runtime.unsampled_threads, memory_order_relaxed))
        return sum;
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_slot *slot = lapse_slots_at(i);
        if (slot && atomic_load_explicit(&slot->state, memory_order_acquire) == LAPSE_SLOT_LIVE)
            sum += lapse_clock_unsampled(slot);
    }
    return sum;
}

static void put_counters(struct lapse_store *store)
{
    struct lapse_slot_totals totals;
    lapse_slots_totals(&totals);
    /* relaxed: statistics */
    const uint64_t values[] = {
        totals.ticks, totals.merged, totals.recorded, totals.dropped_full, totals.dropped_gate,
        totals.truncated, totals.failures, totals.guessed,
        atomic_load_explicit(&lapse_runtime.unsampled_threads, memory_order_relaxed),
        unsampled_ns(),
        store->late_ticks, totals.handler_ns,
        lapse_drain_cpu_ns(),
        atomic_load_explicit(&lapse_runtime.rate_lowered, memory_order_relaxed),
        lapse_unwind_cache_full(), store->write_errors,
        atomic_load_explicit(&lapse_slots.next_thread, memory_order_relaxed),
        totals.dropped_weight, store->lost_samples,
        atomic_load_explicit(&lapse_annotations_dropped, memory_order_relaxed),
        store->unread_modules,
        atomic_load_explicit(&lapse_runtime.signal_taken, memory_order_relaxed),
        lapse_runtime.before_ns,
    };
    size_t mark = lapse_wire_begin(&store->wire, CHUNK_COUNTERS);
    for (uint32_t i = 0; i < sizeof values / sizeof *values; i++)
        lapse_wire_uint(&store->wire, i + 1, values[i]);
    lapse_wire_end(&store->wire, mark);
}

/* Threads that have ended and are written are forgotten; their memory serves the next. */
static void forget_thread(struct lapse_store *store, uint32_t at)
{
    struct lapse_store_thread *thread = store->threads[at];
    struct lapse_store_thread **link = &store->thread_buckets[thread->id % LAPSE_THREAD_BUCKETS];
    while (*link != thread)
        link = &(*link)->next;
    *link = thread->next;
    store->threads[at] = store->threads[--store->thread_count];
    lapse_arena_resize(&store->arena, thread->pcs, thread->capacity * sizeof *thread->pcs, 0);
    lapse_arena_resize(&store->arena, thread->nodes, thread->capacity * sizeof *thread->nodes, 0);
    lapse_arena_resize(&store->arena, thread, sizeof *thread, 0);
}

void lapse_store_write(struct lapse_store *store)
{
    if ((!store->samples && !store->span_count) || (store->unsent && !send(store)))
        return;
    if (!store->header_written) {
        put_header(store);
        if (!store->modules_read_ns && !store->is_ending) /* no stack will need them any more */
            lapse_store_read_modules(store, lapse_sys_clock(CLOCK_MONOTONIC));
    }
    if (!put_modules(store))
        return;
    uint64_t now = lapse_sys_clock(CLOCK_MONOTONIC);
    bool reads_names = now - store->names_read_ns >= NAMES_EVERY_NS;
    if (reads_names)
        store->names_read_ns = now;
    for (uint32_t i = 0; i < store->thread_count; i++) {
        struct lapse_store_thread *thread = store->threads[i];
        if (reads_names && thread->first != LAPSE_NO_SAMPLE && !thread->end_ns)
            lapse_store_read_name(thread); /* threads name themselves after they have begun */
        if (!put_thread(store, thread))
            return;
    }
    if (!put_labels(store) || !put_spans(store) || !put_nodes(store) || !lapse_store_room(store))
        return;
    if (store->wire.size + store->pending_count * 60 > LAPSE_CHUNK_MAX - 4096 && !send(store))
        return;
    for (uint32_t i = store->thread_count; i-- > 0;) { /* from behind: the last takes a forgotten one's place */
        struct lapse_store_thread *thread = store->threads[i];
        if (thread->first != LAPSE_NO_SAMPLE)
            put_samples(store, thread);
        if (thread->end_ns)
            forget_thread(store, i);
    }
    store->pending_count = 0;
    lapse_store_forget_labels(store); /* no sample waits for one of them */
    /* In the chunk that holds the samples: both are in the file, or neither is. */
    lapse_wire_uint(&store->wire, CHUNK_RING_POSITION, store->ring_position);
    put_counters(store);
    send(store);
}

void lapse_store_write_symbols(struct lapse_store *store, const struct lapse_function_name *names,
                               uint32_t count)
{
    if (store->unsent)
        return;
    for (uint32_t i = 0; i < count; i++) {
        if (names[i].run_time || (!names[i].name && !names[i].size))
            continue;
        if (!lapse_store_room(store))
            return;
        uint64_t from_ns, until_ns;
        lapse_store_module_of(store, names[i].function, &from_ns, &until_ns);
        size_t mark = lapse_wire_begin(&store->wire, CHUNK_SYMBOLS);
        lapse_wire_uint(&store->wire, 1, names[i].start);
        lapse_wire_uint(&store->wire, 2, names[i].size);
        lapse_wire_string(&store->wire, 3, names[i].name ? names[i].name : "");
        if (names[i].system_name && strcmp(names[i].name, names[i].system_name))
            lapse_wire_string(&store->wire, 4, names[i].system_name);
        lapse_wire_uint(&store->wire, 7, from_ns);
        lapse_wire_uint(&store->wire, 8, until_ns);
        lapse_wire_end(&store->wire, mark);
    }
    if (store->unread_modules && lapse_store_room(store))
        put_counters(store); /* again: this one is known only now */
    send(store);
}

void lapse_store_hold(struct lapse_store *store)
{
    store->is_ending = true;
    if (lapse_runtime.settings.shared[0] && !lapse_runtime.settings.exports && !store->spool.exists)
        lapse_spool_hold(&store->spool, lapse_arena_resize(&store->arena, NULL, 0, LAPSE_SPOOL_HELD));
}

void lapse_store_let_go(struct lapse_store *store)
{
    int result = lapse_spool_let_go(&store->spool, lapse_runtime.settings.shared);
    if (result)
        note_failure(store, result);
}

void lapse_store_write_end(struct lapse_store *store, uint32_t reason, uint32_t signal)
{
    struct rusage usage;
    if (store->unsent)
        return;
    memset(&usage, 0, sizeof usage);
    lapse_sys(SYS_getrusage, RUSAGE_SELF, &usage);
    size_t mark = lapse_wire_begin(&store->wire, CHUNK_END);
    lapse_wire_uint(&store->wire, 1, reason);
    lapse_wire_uint(&store->wire, 2, signal);
    lapse_wire_uint(&store->wire, 3, lapse_sys_clock(CLOCK_MONOTONIC));
    lapse_wire_uint(&store->wire, 4, (uint64_t)usage.ru_utime.tv_sec * 1000000000u + (uint64_t)usage.ru_utime.tv_usec * 1000);
    lapse_wire_uint(&store->wire, 5, (uint64_t)usage.ru_stime.tv_sec * 1000000000u + (uint64_t)usage.ru_stime.tv_usec * 1000);
    lapse_wire_end(&store->wire, mark);
    send(store);
}
