/* SPDX-License-Identifier: MIT */
/* Perfetto's native trace: one perf_sample packet a sample with its call stack, so that the flame
 * graph view works, and the calls as slices on the thread's track; spans and labels on tracks below
 * it. One packet sequence; every name, frame and stack is sent once, right before its first use.
 * Times are the profile's monotonic ones, without a clock id.
 * Called by `lapse export --to=perfetto`. Offline only; memory: distinct stacks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "captions.h"
#include "intern.h"
#include "json_writer.h"
#include "wire.h"

enum packet_field {
    TIMESTAMP = 8, SEQUENCE_ID = 10, TRACK_EVENT = 11, INTERNED_DATA = 12, SEQUENCE_FLAGS = 13,
    DEFAULTS = 59, TRACK_DESCRIPTOR = 60, PERF_SAMPLE = 66, FIRST_ON_SEQUENCE = 87,
};
enum interned_field {
    EVENT_CATEGORIES = 1, EVENT_NAMES = 2, FUNCTION_NAMES = 5, FRAMES = 6, CALLSTACKS = 7,
    BUILD_IDS = 16, MAPPING_PATHS = 17, SOURCE_PATHS = 18, MAPPINGS = 19,
};
enum event_type { SLICE_BEGIN = 1, SLICE_END = 2 };
enum category { CALL = 1, INFERRED = 2, SPAN = 3, LABEL = 4 };

struct perfetto {
    const struct lapse_profile *profile;
    struct lapse_output output, text;
    struct lapse_wire packet, body;
    struct lapse_ids ids;
    struct lapse_intern frames; /* (function, pc, line) */
    uint8_t *event_name_sent, *function_sent, *mapping_sent, *stack_sent;
    struct lapse_strings spans, sources; /* names whose iids follow those of functions */
    uint32_t *labels; /* of each thread's last sample */
    uint64_t *weight_ns; /* of each thread so far */
    char head[2 * LAPSE_LAY_SLACK]; /* of short packets of one time, up to the body's key */
    uint32_t head_size;             /* 0: there is none */
    uint64_t head_ns;
    int error;
};

/* Clear a buffer for a message of up to `size` bytes. */
static void reset(struct perfetto *perfetto, struct lapse_wire *wire, size_t size)
{
    if (size > wire->capacity) {
        uint8_t *bytes = realloc(wire->bytes, size);
        if (bytes) {
            wire->bytes = bytes;
            wire->capacity = size;
        } else {
            perfetto->error = -ENOMEM;
        }
    }
    wire->size = 0;
}

/* A number that is written even when it is 0 (a time of 0 is a time). */
static void put_number(struct lapse_wire *wire, uint32_t field, uint64_t value)
{
    lapse_wire_varint(wire, (uint64_t)field << 3);
    lapse_wire_varint(wire, value);
}

static void begin_packet(struct perfetto *perfetto, size_t size)
{
    reset(perfetto, &perfetto->packet, size + 64);
    lapse_wire_uint(&perfetto->packet, SEQUENCE_ID, 1);
}

static void end_packet(struct perfetto *perfetto)
{
    if (perfetto->packet.overflow)
        perfetto->error = -EMSGSIZE;
    char *to = lapse_output_room(&perfetto->output, perfetto->packet.size + 16);
    if (!to)
        return;
    size_t size = perfetto->packet.size, at = 0;
    to[at++] = 0x0a; /* Trace.packet */
    for (; size >= 0x80; size >>= 7)
        to[at++] = (char)(size | 0x80);
    to[at++] = (char)size;
    memcpy(to + at, perfetto->packet.bytes, perfetto->packet.size);
    perfetto->output.size += at + perfetto->packet.size;
}

static void put_body(struct perfetto *perfetto, uint32_t field, const struct lapse_wire *body)
{
    if (body->overflow)
        perfetto->error = -EMSGSIZE;
    lapse_wire_bytes(&perfetto->packet, field, body->bytes, body->size);
}

/* One entry of interned data: an iid and a string in field 2. */
static void send_string(struct perfetto *perfetto, enum interned_field field, uint64_t iid,
                        const void *bytes, size_t size)
{
    reset(perfetto, &perfetto->body, size + 64);
    size_t mark = lapse_wire_begin(&perfetto->body, field);
    lapse_wire_uint(&perfetto->body, 1, iid);
    lapse_wire_bytes(&perfetto->body, 2, bytes, size);
    lapse_wire_end(&perfetto->body, mark);
    begin_packet(perfetto, perfetto->body.size);
    lapse_wire_uint(&perfetto->packet, SEQUENCE_FLAGS, 2);
    put_body(perfetto, INTERNED_DATA, &perfetto->body);
    end_packet(perfetto);
}

static void send_text(struct perfetto *perfetto, enum interned_field field, uint64_t iid,
                      const char *text)
{
    perfetto->text.size = 0;
    lapse_output_utf8(&perfetto->text, text);
    send_string(perfetto, field, iid, perfetto->text.bytes, perfetto->text.size);
}

/* Send `body` as the one entry of interned data. */
static void send_body(struct perfetto *perfetto, enum interned_field field)
{
    begin_packet(perfetto, perfetto->body.size + 32);
    lapse_wire_uint(&perfetto->packet, SEQUENCE_FLAGS, 2);
    size_t mark = lapse_wire_begin(&perfetto->packet, INTERNED_DATA);
    put_body(perfetto, field, &perfetto->body);
    lapse_wire_end(&perfetto->packet, mark);
    end_packet(perfetto);
}

static void send_build_id(struct perfetto *perfetto, uint32_t module)
{
    const char *hex = perfetto->profile->modules[module].build_id;
    uint8_t raw[64];
    size_t size = 0;
    for (unsigned byte; size < sizeof raw && sscanf(hex + 2 * size, "%2x", &byte) == 1;)
        raw[size++] = (uint8_t)byte;
    send_string(perfetto, BUILD_IDS, module + 1u, raw, size);
}

/* The path goes as one component: its iid is the module's too. */
static void send_mapping(struct perfetto *perfetto, uint32_t module)
{
    const struct lapse_profile_module *m = &perfetto->profile->modules[module];
    if (perfetto->mapping_sent[module])
        return;
    perfetto->mapping_sent[module] = 1;
    send_build_id(perfetto, module);
    send_text(perfetto, MAPPING_PATHS, module + 1u, *m->path == '/' ? m->path + 1 : m->path);
    reset(perfetto, &perfetto->body, 128);
    lapse_wire_uint(&perfetto->body, 1, module + 1u);
    lapse_wire_uint(&perfetto->body, 2, module + 1u);
    lapse_wire_uint(&perfetto->body, 8, m->file_offset);
    lapse_wire_uint(&perfetto->body, 3, m->file_offset);
    lapse_wire_uint(&perfetto->body, 4, m->start);
    lapse_wire_uint(&perfetto->body, 5, m->end);
    lapse_wire_uint(&perfetto->body, 6, m->start - m->bias);
    lapse_wire_uint(&perfetto->body, 7, module + 1u);
    send_body(perfetto, MAPPINGS);
}

static uint64_t source_iid(struct perfetto *perfetto, const char *file)
{
    uint32_t before = perfetto->sources.count;
    uint32_t number = file ? lapse_strings_number(&perfetto->sources, file, strlen(file)) : 0;
    if (!file)
        return 0;
    if (number == LAPSE_INDEX_NONE) {
        perfetto->error = -ENOMEM;
        return 0;
    }
    if (number == before)
        send_text(perfetto, SOURCE_PATHS, number + 1u, file);
    return number + 1u;
}

static uint64_t frame_iid(struct perfetto *perfetto, uint32_t function, uint64_t pc, uint32_t line)
{
    const struct lapse_profile_function *f = &perfetto->profile->functions[function];
    bool is_new;
    struct lapse_key key = { { function, pc, line, 0 } };
    uint32_t number = lapse_intern(&perfetto->frames, key, &is_new);
    if (number == LAPSE_INDEX_NONE) {
        perfetto->error = -ENOMEM;
        return 0;
    }
    if (!is_new)
        return number + 1u;
    if (!perfetto->function_sent[function])
        send_text(perfetto, FUNCTION_NAMES, function + 1u, f->name);
    perfetto->function_sent[function] = 1;
    const struct lapse_profile_module *module = NULL;
    if (f->module != LAPSE_NONE && pc >= perfetto->profile->modules[f->module].start) {
        module = &perfetto->profile->modules[f->module];
        send_mapping(perfetto, f->module);
    }
    uint64_t source = source_iid(perfetto, f->file);
    reset(perfetto, &perfetto->body, 128);
    lapse_wire_uint(&perfetto->body, 1, number + 1u);
    lapse_wire_uint(&perfetto->body, 2, function + 1u);
    if (module) {
        lapse_wire_uint(&perfetto->body, 3, f->module + 1u);
        put_number(&perfetto->body, 4, pc - module->start);
    }
    lapse_wire_uint(&perfetto->body, 5, source);
    lapse_wire_uint(&perfetto->body, 6, line);
    send_body(perfetto, FRAMES);
    return number + 1u;
}

/* The stack's iid is its leaf's number plus one. Frames are found from the leaf outwards, and wanted
 * root first. */
static void send_stack(struct perfetto *perfetto, uint32_t leaf_index)
{
    const struct lapse_profile *profile = perfetto->profile;
    const struct lapse_profile_leaf *leaf = &profile->leaves[leaf_index];
    uint32_t depth = profile->nodes[leaf->node].depth, node = leaf->node, line = leaf->line;
    uint64_t pc = leaf->pc, *iids = malloc((depth + 1u) * sizeof *iids);
    perfetto->stack_sent[leaf_index] = 1;
    if (!iids) {
        perfetto->error = -ENOMEM;
        return;
    }
    for (uint32_t i = depth; i > 0; i--) {
        const struct lapse_profile_node *n = &profile->nodes[node];
        iids[i - 1] = frame_iid(perfetto, n->function, pc, line);
        if (!(n->flags & LAPSE_NODE_INLINED))
            pc = n->call_pc ? n->call_pc - 1 : 0;
        line = n->call_line;
        node = n->parent;
    }
    reset(perfetto, &perfetto->body, 12 * (size_t)depth + 64);
    lapse_wire_uint(&perfetto->body, 1, leaf_index + 1u);
    for (uint32_t i = 0; i < depth; i++)
        lapse_wire_uint(&perfetto->body, 2, iids[i]);
    send_body(perfetto, CALLSTACKS);
    free(iids);
}

/* Tracks: processes, then threads, then two below each thread. */
static uint64_t process_track(uint32_t process) { return process + 1u; }
static uint64_t thread_track(const struct perfetto *perfetto, uint32_t thread)
{
    return perfetto->profile->process_count + 1ull + thread;
}
static uint64_t label_track(const struct perfetto *perfetto, uint32_t thread)
{
    return thread_track(perfetto, perfetto->profile->thread_count) + thread;
}
static uint64_t span_track(const struct perfetto *perfetto, uint32_t thread, uint32_t lane)
{
    return label_track(perfetto, perfetto->profile->thread_count) + thread +
           (uint64_t)lane * perfetto->profile->thread_count;
}

static void send_track(struct perfetto *perfetto, uint64_t uuid, const char *name, uint64_t parent)
{
    begin_packet(perfetto, strlen(name) * 3 + 64);
    size_t mark = lapse_wire_begin(&perfetto->packet, TRACK_DESCRIPTOR);
    lapse_wire_uint(&perfetto->packet, 1, uuid);
    lapse_wire_string(&perfetto->packet, 2, name);
    lapse_wire_uint(&perfetto->packet, 5, parent);
    lapse_wire_end(&perfetto->packet, mark);
    end_packet(perfetto);
}

/* Field 3 is a process, field 4 a thread; both carry a pid first and a name. */
static void send_owner(struct perfetto *perfetto, uint64_t uuid, uint32_t process, uint32_t thread)
{
    bool is_thread = thread != LAPSE_NONE;
    const struct lapse_profile *profile = perfetto->profile;
    perfetto->text.size = 0;
    lapse_output_utf8(&perfetto->text, is_thread ? lapse_caption_thread(profile, thread)
                                                 : profile->processes[process].name);
    begin_packet(perfetto, perfetto->text.size + 64);
    size_t track = lapse_wire_begin(&perfetto->packet, TRACK_DESCRIPTOR);
    lapse_wire_uint(&perfetto->packet, 1, uuid);
    size_t mark = lapse_wire_begin(&perfetto->packet, is_thread ? 4 : 3);
    lapse_wire_uint(&perfetto->packet, 1, perfetto->ids.processes[process]);
    if (is_thread)
        lapse_wire_uint(&perfetto->packet, 2, perfetto->ids.threads[thread]);
    lapse_wire_bytes(&perfetto->packet, is_thread ? 5 : 6, perfetto->text.bytes,
                     perfetto->text.size);
    lapse_wire_end(&perfetto->packet, mark);
    lapse_wire_end(&perfetto->packet, track);
    end_packet(perfetto);
}

/* The first packet clears the sequence's state and says what a sample is worth. */
static void send_head(struct perfetto *perfetto)
{
    const struct lapse_profile *profile = perfetto->profile;
    static const char *const categories[] = { "call", "inferred", "span", "label" };
    begin_packet(perfetto, 128);
    lapse_wire_uint(&perfetto->packet, SEQUENCE_FLAGS, 1);
    lapse_wire_uint(&perfetto->packet, FIRST_ON_SEQUENCE, 1);
    size_t defaults = lapse_wire_begin(&perfetto->packet, DEFAULTS);
    size_t samples = lapse_wire_begin(&perfetto->packet, 12);
    size_t timebase = lapse_wire_begin(&perfetto->packet, 1);
    lapse_wire_uint(&perfetto->packet, 1, profile->period_ns);
    lapse_wire_uint(&perfetto->packet, 4, 3); /* task clock */
    lapse_wire_end(&perfetto->packet, timebase);
    lapse_wire_end(&perfetto->packet, samples);
    lapse_wire_end(&perfetto->packet, defaults);
    end_packet(perfetto);
    for (uint32_t i = 0; i < 4; i++)
        send_text(perfetto, EVENT_CATEGORIES, i + 1u, categories[i]);
    for (uint32_t i = 0; i < profile->process_count; i++)
        send_owner(perfetto, process_track(i), i, LAPSE_NONE);
    for (uint32_t i = 0; i < profile->thread_count; i++)
        send_owner(perfetto, thread_track(perfetto, i), profile->threads[i].process, i);
}

/* Events and samples are many and short: they are laid down byte by byte, the lengths, all below 128,
 * filled in at the end. */
static char *lay(char *at, uint8_t key, uint64_t value)
{
    *at++ = (char)key;
    for (; value >= 0x80; value >>= 7)
        *at++ = (char)(value | 0x80);
    *at++ = (char)value;
    return at;
}

#define KEY(field) ((uint8_t)((field) << 3))
enum { SHORT_PACKET = 100 };

static void make_head(struct perfetto *perfetto, uint64_t time_ns)
{
    char *at = perfetto->head;
    *at = 0x0a;
    at = lay(at + 2, KEY(SEQUENCE_ID), 1);
    at = lay(at, KEY(TIMESTAMP), time_ns);
    at = lay(at, KEY(SEQUENCE_FLAGS), 2);
    perfetto->head_size = (uint32_t)(at - perfetto->head);
    perfetto->head_ns = time_ns;
}

/* Up to the body's length; body gets where that is. */
static char *lay_head(struct perfetto *perfetto, uint64_t time_ns, enum packet_field field,
                      char **body)
{
    char *at = lapse_output_room(&perfetto->output, SHORT_PACKET);
    if (!at)
        return NULL;
    if (!perfetto->head_size || perfetto->head_ns != time_ns)
        make_head(perfetto, time_ns);
    memcpy(at, perfetto->head, sizeof perfetto->head);
    at += perfetto->head_size;
    uint32_t key = (uint32_t)field << 3 | 2;
    if (key >= 0x80)
        *at++ = (char)(key | 0x80);
    *at++ = (char)(key >= 0x80 ? key >> 7 : key);
    *body = at;
    return at + 1;
}

static void lay_end(struct perfetto *perfetto, const char *at, char *body)
{
    char *start = perfetto->output.bytes + perfetto->output.size;
    *body = (char)(at - body - 1);
    start[1] = (char)(at - start - 2);
    perfetto->output.size += (size_t)(at - start);
}

static void send_begin(struct perfetto *perfetto, uint64_t time_ns, enum category category,
                       uint64_t track, uint64_t name)
{
    char *body, *at = lay_head(perfetto, time_ns, TRACK_EVENT, &body);
    if (!at)
        return;
    at = lay(at, KEY(3), category);
    at = lay(at, KEY(9), SLICE_BEGIN);
    at = lay(at, KEY(10), name);
    at = lay(at, KEY(11), track);
    lay_end(perfetto, at, body);
}

/* It ends the innermost slice. With a category it would end the innermost one of that category, and
 * of a call whose one edge is inferred the other may be proven. */
static void send_end(struct perfetto *perfetto, uint64_t time_ns, uint64_t track)
{
    char *body, *at = lay_head(perfetto, time_ns, TRACK_EVENT, &body);
    if (!at)
        return;
    at = lay(at, KEY(9), SLICE_END);
    at = lay(at, KEY(11), track);
    lay_end(perfetto, at, body);
}

static int on_edge(void *context, const struct lapse_call_edge *edge)
{
    struct perfetto *perfetto = context;
    uint64_t track = thread_track(perfetto, edge->thread), name = edge->function + 1u;
    if (edge->start) {
        if (!perfetto->event_name_sent[edge->function])
            send_text(perfetto, EVENT_NAMES, name,
                      perfetto->profile->functions[edge->function].name);
        perfetto->event_name_sent[edge->function] = 1;
        send_begin(perfetto, edge->time_ns, edge->inferred ? INFERRED : CALL, track, name);
    } else {
        send_end(perfetto, edge->time_ns, track);
    }
    return perfetto->error ? perfetto->error : perfetto->output.error;
}

/* iid of an event name that is no function's. */
static uint64_t text_iid(struct perfetto *perfetto, const char *text)
{
    uint32_t before = perfetto->spans.count;
    uint32_t number = lapse_strings_number(&perfetto->spans, text, strlen(text));
    uint64_t iid = perfetto->profile->function_count + 1ull + number;
    if (number == LAPSE_INDEX_NONE) {
        perfetto->error = -ENOMEM;
        return 0;
    }
    if (number == before)
        send_text(perfetto, EVENT_NAMES, iid, text);
    return iid;
}

/* A slice of the labels' track lasts as long as the thread's samples carry the same set. */
static void change_labels(struct perfetto *perfetto, uint32_t thread, uint32_t labels,
                          uint64_t time_ns)
{
    const struct lapse_profile *profile = perfetto->profile;
    uint64_t track = label_track(perfetto, thread);
    if (perfetto->labels[thread])
        send_end(perfetto, time_ns, track);
    else
        send_track(perfetto, track, "labels", thread_track(perfetto, thread));
    perfetto->labels[thread] = labels;
    if (!labels)
        return;
    char text[4096] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < profile->label_sets[labels].count && used < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s=%s", i ? ", " : "",
                                 profile->label_sets[labels].labels[i].key,
                                 profile->label_sets[labels].labels[i].value);
    uint64_t name = text_iid(perfetto, *text ? text : "(none)");
    send_begin(perfetto, time_ns, LABEL, track, name);
}

static int on_sample(void *context, const struct lapse_profile_sample *sample)
{
    struct perfetto *perfetto = context;
    uint32_t process = perfetto->profile->threads[sample->thread].process;
    if (!perfetto->stack_sent[sample->leaf])
        send_stack(perfetto, sample->leaf);
    if (sample->labels != perfetto->labels[sample->thread])
        change_labels(perfetto, sample->thread, sample->labels, sample->time_ns);
    perfetto->weight_ns[sample->thread] += sample->weight_ns;
    char *body, *at = lay_head(perfetto, sample->time_ns, PERF_SAMPLE, &body);
    if (!at)
        return perfetto->output.error;
    at = lay(at, KEY(2), perfetto->ids.processes[process]);
    at = lay(at, KEY(3), perfetto->ids.threads[sample->thread]);
    at = lay(at, KEY(4), sample->leaf + 1u);
    at = lay(at, KEY(5), 2); /* user */
    at = lay(at, KEY(6), perfetto->weight_ns[sample->thread]);
    lay_end(perfetto, at, body);
    return perfetto->error ? perfetto->error : perfetto->output.error;
}

static int by_start(const void *a, const void *b, void *context)
{
    const struct lapse_profile_span *spans = context, *left = &spans[*(const uint32_t *)a],
                                    *right = &spans[*(const uint32_t *)b];
    if (left->thread != right->thread)
        return left->thread < right->thread ? -1 : 1;
    if (left->start_ns != right->start_ns)
        return left->start_ns < right->start_ns ? -1 : 1;
    if (left->end_ns != right->end_ns)
        return left->end_ns > right->end_ns ? -1 : 1;
    return *(const uint32_t *)a < *(const uint32_t *)b ? -1 : 1;
}

/* Spans that are still open on one track. */
struct span_lane { uint64_t *ends; uint32_t count; };

static void close_spans(struct perfetto *perfetto, struct span_lane *lane, uint64_t track,
                        uint64_t until_ns)
{
    while (lane->count && lane->ends[lane->count - 1] <= until_ns)
        send_end(perfetto, lane->ends[--lane->count], track);
}

enum { SPAN_LANES = 64 };

/* Slices of a track nest, spans need not: each goes to the first track of its thread on which it
 * does. Beyond the last track a span is cut where the one around it ends. */
static void put_span(struct perfetto *perfetto, const struct lapse_profile_span *span,
                     struct span_lane *lanes)
{
    uint32_t at = 0;
    for (;; at++) {
        close_spans(perfetto, &lanes[at], span_track(perfetto, span->thread, at), span->start_ns);
        uint32_t open = lanes[at].count;
        if (!open || lanes[at].ends[open - 1] >= span->end_ns || at + 1 == SPAN_LANES)
            break;
    }
    struct span_lane *lane = &lanes[at];
    uint64_t *ends = lapse_array_grow(lane->ends, lane->count, sizeof *ends);
    if (!ends) {
        perfetto->error = -ENOMEM;
        return;
    }
    lane->ends = ends;
    uint64_t end_ns = span->end_ns > span->start_ns ? span->end_ns : span->start_ns;
    if (lane->count && ends[lane->count - 1] < end_ns)
        end_ns = ends[lane->count - 1];
    ends[lane->count++] = end_ns;
    uint64_t track = span_track(perfetto, span->thread, at);
    if (lane->count == 1)
        send_track(perfetto, track, "spans", thread_track(perfetto, span->thread));
    send_begin(perfetto, span->start_ns, SPAN, track, text_iid(perfetto, span->name));
}

static int put_spans(struct perfetto *perfetto)
{
    const struct lapse_profile *profile = perfetto->profile;
    struct span_lane lanes[SPAN_LANES] = { 0 };
    uint32_t *order = malloc((profile->span_count + 1u) * sizeof *order);
    if (!order)
        return -ENOMEM;
    for (uint32_t i = 0; i < profile->span_count; i++)
        order[i] = i;
    qsort_r(order, profile->span_count, sizeof *order, by_start, profile->spans);
    for (uint32_t i = 0; i < profile->span_count && !perfetto->error; i++) {
        const struct lapse_profile_span *span = &profile->spans[order[i]];
        put_span(perfetto, span, lanes);
        if (i + 1 == profile->span_count || profile->spans[order[i + 1]].thread != span->thread)
            for (uint32_t at = 0; at < SPAN_LANES; at++)
                close_spans(perfetto, &lanes[at], span_track(perfetto, span->thread, at),
                            UINT64_MAX);
    }
    for (uint32_t at = 0; at < SPAN_LANES; at++)
        free(lanes[at].ends);
    free(order);
    return perfetto->error;
}

/* A loss is a counter of the first process, set once at the end. */
struct losses { struct perfetto *perfetto; uint64_t track; };

static void put_loss(void *context, const char *name, uint64_t value)
{
    struct losses *losses = context;
    struct perfetto *perfetto = losses->perfetto;
    begin_packet(perfetto, 256);
    size_t mark = lapse_wire_begin(&perfetto->packet, TRACK_DESCRIPTOR);
    lapse_wire_uint(&perfetto->packet, 1, losses->track);
    lapse_wire_string(&perfetto->packet, 2, name);
    lapse_wire_uint(&perfetto->packet, 5, process_track(0));
    size_t counter = lapse_wire_begin(&perfetto->packet, 8);
    lapse_wire_end(&perfetto->packet, counter);
    lapse_wire_end(&perfetto->packet, mark);
    end_packet(perfetto);
    begin_packet(perfetto, 128);
    put_number(&perfetto->packet, TIMESTAMP, lapse_profile_end(perfetto->profile));
    mark = lapse_wire_begin(&perfetto->packet, TRACK_EVENT);
    lapse_wire_uint(&perfetto->packet, 9, 4);
    lapse_wire_uint(&perfetto->packet, 11, losses->track++);
    lapse_wire_uint(&perfetto->packet, 30, value);
    lapse_wire_end(&perfetto->packet, mark);
    end_packet(perfetto);
}

static int write_all(struct perfetto *perfetto, struct lapse_profile *profile,
                     const struct lapse_export_options *options)
{
    struct lapse_calls_options calls = {
        .edge = on_edge, .sample = on_sample, .context = perfetto, .export_options = options,
    };
    send_head(perfetto);
    int error = lapse_calls(profile, &calls);
    uint64_t end = lapse_profile_end(profile);
    for (uint32_t i = 0; i < profile->thread_count && !error; i++)
        if (perfetto->labels[i])
            send_end(perfetto, end, label_track(perfetto, i));
    if (!error)
        error = put_spans(perfetto);
    struct losses losses = {
        perfetto, span_track(perfetto, profile->thread_count, SPAN_LANES),
    };
    if (!error)
        lapse_each_loss(profile, &losses, put_loss);
    if (!error)
        error = perfetto->error;
    return error ? error : lapse_output_finish(&perfetto->output);
}

static int prepare(struct perfetto *perfetto, FILE *to)
{
    const struct lapse_profile *profile = perfetto->profile;
    int output = lapse_output_init(&perfetto->output, to);
    int text = lapse_output_init(&perfetto->text, NULL);
    perfetto->event_name_sent = calloc(profile->function_count + 1u, 1);
    perfetto->function_sent = calloc(profile->function_count + 1u, 1);
    perfetto->mapping_sent = calloc(profile->module_count + 1u, 1);
    perfetto->stack_sent = calloc(profile->leaf_count + 1u, 1);
    perfetto->labels = calloc(profile->thread_count + 1u, sizeof *perfetto->labels);
    perfetto->weight_ns = calloc(profile->thread_count + 1u, sizeof *perfetto->weight_ns);
    if (!profile->has_times)
        return -ENOTSUP;
    if (output || text || !perfetto->event_name_sent || !perfetto->function_sent ||
        !perfetto->mapping_sent || !perfetto->stack_sent || !perfetto->labels ||
        !perfetto->weight_ns)
        return -ENOMEM;
    return lapse_ids_init(&perfetto->ids, profile);
}

int lapse_write_perfetto(struct lapse_profile *profile, FILE *to,
                         const struct lapse_export_options *options, char *error, size_t error_size)
{
    struct perfetto perfetto = { .profile = profile };
    int result = prepare(&perfetto, to);
    if (!result)
        result = write_all(&perfetto, profile, options);
    if (result)
        lapse_export_failed(error, error_size, "perfetto", result);
    lapse_output_fini(&perfetto.output);
    lapse_output_fini(&perfetto.text);
    lapse_ids_fini(&perfetto.ids);
    lapse_intern_fini(&perfetto.frames);
    lapse_strings_free(&perfetto.spans);
    lapse_strings_free(&perfetto.sources);
    free(perfetto.packet.bytes);
    free(perfetto.body.bytes);
    free(perfetto.event_name_sent);
    free(perfetto.function_sent);
    free(perfetto.mapping_sent);
    free(perfetto.stack_sent);
    free(perfetto.labels);
    free(perfetto.weight_ns);
    return result;
}
