/* SPDX-License-Identifier: MIT */
/* OUT.events: starts and ends of calls as the prefix-diff engine infers them from the samples, read
 * back from our own spool. Context: the drain thread, at the end of a session.
 *
 *   # lapse events 1
 *   # clock CLOCK period_ns N            and one such line for each counter
 *   TIME_NS TAB THREAD TAB start|end TAB DEPTH TAB NAME [TAB inferred|ambiguous]
 *
 * Per thread times never go back, ends come before starts at one time, starts and ends match. The
 * sixth column is there where sampling did not prove the event. */
#include <errno.h>
#include <string.h>

#include "annotations.h"
#include "drain.h"
#include "outputs.h"
#include "sort.h"
#include "state.h"
#include "sys.h"
#include "text.h"

struct sample { uint64_t time, cut_cfa; uint32_t thread, node; };

struct events {
    const struct lapse_names *names;
    struct lapse_writer writer;
    struct lapse_diff *diff;
    struct sample *samples; /* of one chunk */
    uint32_t count, capacity;
    uint8_t *body;
};

static void write_edge(void *context, const struct lapse_edge *edge)
{
    struct events *events = context;
    struct lapse_writer *writer = &events->writer;
    char name[4096];
    size_t size = lapse_escaped_name(name, sizeof name, lapse_names_of(events->names, edge->function));
    lapse_writer_number(writer, edge->time_ns);
    lapse_writer_string(writer, "\t");
    lapse_writer_number(writer, edge->thread);
    lapse_writer_string(writer, edge->kind == LAPSE_EDGE_START ? "\tstart\t" : "\tend\t");
    lapse_writer_number(writer, edge->depth);
    lapse_writer_string(writer, "\t");
    lapse_writer_bytes(writer, name, size);
    if (edge->proof != LAPSE_PROVEN)
        lapse_writer_string(writer, edge->proof == LAPSE_INFERRED ? "\tinferred" : "\tambiguous");
    lapse_writer_string(writer, "\n");
}

static void write_pair(struct lapse_writer *writer, const char *name, uint64_t value)
{
    lapse_writer_string(writer, "# ");
    lapse_writer_string(writer, name);
    lapse_writer_string(writer, " ");
    lapse_writer_number(writer, value);
    lapse_writer_string(writer, "\n");
}

static void write_head(struct events *events)
{
    static const char *const clocks[] = { "cpu", "perf", "wall" };
    const struct lapse_store *store = events->names->store;
    struct lapse_writer *writer = &events->writer;
    struct lapse_slot_totals totals;
    lapse_slots_totals(&totals);
    lapse_writer_string(writer, "# lapse events 1\n# clock ");
    lapse_writer_string(writer, clocks[lapse_runtime.clock]);
    lapse_writer_string(writer, "\n");
    write_pair(writer, "period_ns", lapse_runtime.period_ns);
    write_pair(writer, "ticks", totals.ticks);
    write_pair(writer, "merged_ticks", totals.merged);
    write_pair(writer, "recorded", totals.recorded);
    write_pair(writer, "dropped_ring_full", totals.dropped_full);
    write_pair(writer, "dropped_gate_closed", totals.dropped_gate);
    write_pair(writer, "dropped_weight_ns", totals.dropped_weight);
    write_pair(writer, "truncated", totals.truncated);
    write_pair(writer, "unwind_failures", totals.failures);
    write_pair(writer, "guessed_frames", totals.guessed);
    write_pair(writer, "late_ticks", store->late_ticks);
    write_pair(writer, "unsampled_threads",
               atomic_load_explicit(&lapse_runtime.unsampled_threads, memory_order_relaxed));
    write_pair(writer, "before_ns", lapse_runtime.before_ns);
    write_pair(writer, "signal_taken",
               atomic_load_explicit(&lapse_runtime.signal_taken, memory_order_relaxed));
    write_pair(writer, "lost_samples", store->lost_samples);
    write_pair(writer, "dropped_spans", atomic_load_explicit(&lapse_annotations_dropped, memory_order_relaxed));
    write_pair(writer, "handler_ns", totals.handler_ns);
    write_pair(writer, "drain_ns", lapse_drain_cpu_ns());
}

/* Lists of a SampleBlock that matter here, walked side by side. */
struct block { struct lapse_wire_reader time, node, cfa; uint64_t base; uint32_t thread; bool has_cfa; };

static int read_block(struct lapse_wire_reader body, struct block *block)
{
    struct lapse_wire_reader field;
    uint32_t number;
    uint64_t value;
    int more;
    memset(block, 0, sizeof *block);
    while ((more = lapse_wire_next(&body, &number, &value, &field)) > 0) {
        switch (number) {
        case 1: block->thread = (uint32_t)value; break;
        case 2: block->base = value; break;
        case 3: block->time = field; break;
        case 4: block->node = field; break;
        case 8: block->cfa = field; block->has_cfa = true; break;
        default: break;
        }
    }
    return more;
}

static int take_block(struct events *events, struct lapse_wire_reader body)
{
    struct block block;
    int result = read_block(body, &block);
    uint64_t time = block.base, node = 0, value = 0;
    while (!result && block.time.at < block.time.end) {
        struct sample *samples = lapse_store_grow(events->names->store, events->samples, &events->capacity,
                                                  events->count + 1, sizeof *samples);
        if (!samples)
            return -ENOMEM;
        events->samples = samples;
        struct sample *sample = &samples[events->count++];
        result = lapse_wire_read_varint(&block.time, &value);
        time += value;
        if (!result)
            result = lapse_wire_read_varint(&block.node, &value);
        node += (uint64_t)lapse_wire_unzigzag(value);
        *sample = (struct sample){ .time = time, .thread = block.thread, .node = (uint32_t)node };
        if (!result && block.has_cfa)
            result = lapse_wire_read_varint(&block.cfa, &sample->cut_cfa);
    }
    return result;
}

static bool sample_less(void *context, uint32_t a, uint32_t b)
{
    const struct sample *samples = context;
    return samples[a].time != samples[b].time ? samples[a].time < samples[b].time
                                              : samples[a].thread < samples[b].thread;
}

/* The samples of one chunk, all threads by time. */
static int push_samples(struct events *events)
{
    struct lapse_store *store = events->names->store;
    size_t size = (size_t)events->count * sizeof(uint32_t) + 1;
    uint32_t *order = lapse_arena_resize(&store->arena, NULL, 0, size), nodes;
    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < events->count; i++)
        order[i] = i;
    lapse_sort(order, events->count, sample_less, events->samples);
    lapse_call_tree_nodes(store->tree, &nodes);
    int result = 0;
    for (uint32_t i = 0; i < events->count && !result; i++) {
        const struct sample *sample = &events->samples[order[i]];
        result = sample->node < nodes ? lapse_diff_push_node_cut(events->diff, sample->time, sample->thread,
                                                                 store->tree, sample->node, sample->cut_cfa)
                                      : -EBADMSG;
    }
    lapse_arena_resize(&store->arena, order, size, 0);
    return result;
}

static int take_chunk(struct events *events, const uint8_t *bytes, uint32_t size)
{
    struct lapse_wire_reader chunk = { bytes, bytes + size }, body;
    uint32_t field;
    uint64_t value;
    int more, result = 0;
    events->count = 0;
    while (!result && (more = lapse_wire_next(&chunk, &field, &value, &body)) > 0)
        if (field == 5)
            result = take_block(events, body);
    return result ? result : push_samples(events);
}

static int replay(struct events *events)
{
    struct lapse_store *store = events->names->store;
    uint8_t head[LAPSE_CHUNK_HEAD];
    for (uint64_t at = 0; at < store->spool.size;) {
        uint32_t size, crc;
        if (lapse_spool_read(&store->spool, head, sizeof head, at) != (long)sizeof head ||
            lapse_chunk_head_read(head, &size, &crc) ||
            lapse_spool_read(&store->spool, events->body, size, at + sizeof head) != (long)size)
            return -EIO;
        int result = take_chunk(events, events->body, size);
        if (result)
            return result;
        at += sizeof head + size;
    }
    return lapse_diff_finish(events->diff);
}

void lapse_events_write(const struct lapse_names *names)
{
    struct lapse_store *store = names->store;
    const struct lapse_settings *settings = &lapse_runtime.settings;
    struct events events = { .names = names };
    struct lapse_diff_options options = {
        .close = settings->close, .period_ns = lapse_runtime.period_ns, .gap_ns = settings->gap_ns,
        .min_samples = settings->min_samples, .allocator = store->allocator,
        .edge = write_edge, .context = &events,
    };
    events.body = lapse_arena_resize(&store->arena, NULL, 0, LAPSE_CHUNK_MAX);
    if (!events.body || lapse_diff_create(&events.diff, &options))
        return;
    lapse_writer_open(&events.writer, store, ".events");
    write_head(&events);
    int result = replay(&events);
    if (!events.writer.error)
        events.writer.error = result;
    lapse_writer_close(&events.writer);
    lapse_diff_destroy(events.diff);
    lapse_arena_resize(&store->arena, events.samples, events.capacity * sizeof *events.samples, 0);
    lapse_arena_resize(&store->arena, events.body, LAPSE_CHUNK_MAX, 0);
}
