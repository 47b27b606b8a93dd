/* SPDX-License-Identifier: MIT */
/* Records in: threads and pending samples (store.h). Context: the drain thread. */
#include "store.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "state.h"
#include "sys.h"

struct lapse_store lapse_store = { .spool = { .fd = -1 } };
_Atomic uint64_t lapse_store_modules_changed_ns;
_Atomic uint32_t lapse_store_unloading;

#define CHUNK_CAPACITY LAPSE_CHUNK_MAX

void *lapse_store_grow(struct lapse_store *store, void *array, uint32_t *capacity, uint32_t needed,
                       size_t item)
{
    if (needed <= *capacity)
        return array;
    uint32_t size = *capacity ? *capacity : 64;
    while (size < needed)
        size *= 2;
    char *grown = store->allocator.resize(store->allocator.context, array, *capacity * item, size * item);
    if (!grown)
        return NULL;
    memset(grown + *capacity * item, 0, (size - *capacity) * item);
    *capacity = size;
    return grown;
}

int lapse_store_init(struct lapse_store *store)
{
    if (store->tree)
        return 0;
    store->allocator = lapse_arena_allocator(&store->arena);
    /* Tried again later when there is no memory now: what is there is kept. */
    if (!store->pending)
        store->pending = lapse_arena_resize(&store->arena, NULL, 0, LAPSE_PENDING_MAX * sizeof *store->pending);
    if (!store->wire.bytes)
        store->wire.bytes = lapse_arena_resize(&store->arena, NULL, 0, CHUNK_CAPACITY);
    store->wire.capacity = CHUNK_CAPACITY;
    if (!store->pending || !store->wire.bytes)
        return -ENOMEM;
    return lapse_call_tree_create(&store->tree, &store->allocator);
}

void lapse_store_read_name(struct lapse_store_thread *thread)
{
    char path[64], name[20] = "";
    if (thread->named)
        return;
    struct lapse_text text = { path, 0, sizeof path };
    lapse_text_string(&text, "/proc/self/task/");
    lapse_text_number(&text, thread->tid);
    lapse_text_string(&text, "/comm");
    long fd = lapse_sys(SYS_open, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    long size = lapse_sys(SYS_read, fd, name, sizeof name - 1);
    lapse_sys(SYS_close, fd);
    if (size > 0 && name[size - 1] == '\n')
        name[size - 1] = 0;
    if (size > 0 && strcmp(name, thread->name)) {
        memcpy(thread->name, name, (size_t)size + 1);
        thread->changed = true;
    }
}

struct lapse_store_thread *lapse_store_thread(struct lapse_store *store, uint32_t id, uint32_t tid)
{
    struct lapse_store_thread **bucket = &store->thread_buckets[id % LAPSE_THREAD_BUCKETS], *thread;
    for (thread = *bucket; thread; thread = thread->next)
        if (thread->id == id)
            return thread;
    struct lapse_store_thread **threads = lapse_store_grow(store, store->threads, &store->threads_capacity,
                                                           store->thread_count + 1, sizeof *threads);
    if (!threads)
        return NULL;
    store->threads = threads;
    thread = lapse_arena_resize(&store->arena, NULL, 0, sizeof *thread);
    if (!thread)
        return NULL;
    memset(thread, 0, sizeof *thread);
    thread->id = id;
    thread->tid = tid;
    thread->first = thread->last = LAPSE_NO_SAMPLE;
    thread->changed = true;
    lapse_store_read_name(thread);
    thread->next = *bucket;
    return *bucket = threads[store->thread_count++] = thread;
}

static void add_weight(struct lapse_store *store, uint32_t node, uint64_t weight)
{
    uint64_t *weights = lapse_store_grow(store, store->weights, &store->weights_capacity, node + 1,
                                         sizeof *weights);
    if (!weights)
        return;
    store->weights = weights;
    weights[node] += weight;
}

static void add_sample(struct lapse_store *store, struct lapse_store_thread *thread,
                       const struct lapse_pending *sample)
{
    store->samples++;
    add_weight(store, sample->node, sample->weight_ns);
    if (store->pending_count == LAPSE_PENDING_MAX)
        lapse_store_write(store);
    if (store->pending_count == LAPSE_PENDING_MAX) { /* the spool takes nothing */
        store->lost_samples++;
        return;
    }
    uint32_t at = store->pending_count++;
    store->pending[at] = *sample;
    store->pending[at].next = LAPSE_NO_SAMPLE;
    /* Times of one thread strictly increase: the engine's contract. */
    if (sample->time_ns <= thread->last_ns)
        store->pending[at].time_ns = thread->last_ns + 1;
    thread->last_ns = store->pending[at].time_ns;
    if (!thread->start_ns) {
        thread->start_ns = sample->time_ns;
        thread->changed = true;
    }
    if (thread->first == LAPSE_NO_SAMPLE)
        thread->first = at;
    else
        store->pending[thread->last].next = at;
    thread->last = at;
}

/* Weight without a stack: ticks that were due and never came, their number in place of the CFA. */
static void add_late(struct lapse_store *store, struct lapse_store_thread *thread,
                     const struct lapse_record *record)
{
    struct lapse_pending sample = { .time_ns = record->time_ns, .weight_ns = record->weight_ns };
    sample.node = lapse_call_tree_child(store->tree, 0, 0, LAPSE_PSEUDO_NOT_SAMPLED, 0);
    store->late_ticks += record->cut_cfa;
    if (record->flags & LAPSE_RECORD_UNSAMPLED)
        thread->unsampled = thread->changed = true;
    add_sample(store, thread, &sample);
    thread->depth = 0; /* the next stack shares nothing with this one */
}

static void end_thread(struct lapse_store_thread *thread, const struct lapse_record *record)
{
    thread->end_ns = record->time_ns;
    thread->cpu_ns = record->weight_ns;
    thread->changed = true;
}

static void name_thread(struct lapse_store_thread *thread, uint64_t name)
{
    lapse_store_host_string(thread->name, sizeof thread->name, name);
    thread->named = thread->changed = true;
}

void lapse_store_record(struct lapse_store *store, const struct lapse_record *record)
{
    struct lapse_store_thread *thread = lapse_store_thread(store, record->thread, record->tid);
    if (!thread)
        return;
    switch (record->kind) {
    case LAPSE_RECORD_NOT_SAMPLED: add_late(store, thread, record); return;
    case LAPSE_RECORD_THREAD_END: end_thread(thread, record); return;
    case LAPSE_RECORD_SPAN: lapse_store_span(store, thread->id, record); return;
    case LAPSE_RECORD_THREAD_NAME: name_thread(thread, record->cut_cfa); return;
    default: break;
    }
    struct lapse_pending sample = {
        .time_ns = record->time_ns, .weight_ns = record->weight_ns,
        .label = lapse_store_labels(store, record),
        .leaf = record->depth ? record->pcs[0] & ~LAPSE_PC_GUESSED : 0, .cut_cfa = record->cut_cfa,
    };
    sample.node = lapse_store_intern(store, thread, record);
    add_sample(store, thread, &sample);
}
