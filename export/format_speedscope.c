/* SPDX-License-Identifier: MIT */
/* speedscope's own JSON. Profiles, in this order: all threads merged (each distinct stack once);
 * each thread's samples in order of time, as wide as the CPU time they stand for; each thread's
 * calls over real time. Frames are told apart by name, as in the report.
 * Called by `lapse export --to=speedscope`. Offline only; memory: distinct stacks, samples wait in
 * lanes. */
#include <errno.h>
#include <stdlib.h>

#include "calls.h"
#include "captions.h"
#include "json_writer.h"
#include "lanes.h"
#include "view.h"

struct speedscope {
    struct lapse_profile *profile;
    struct lapse_view *view;
    uint32_t *frame_of; /* function -> frame (function of the view) */
    struct digits { char text[LAPSE_LAY_SLACK - 1]; uint8_t size; } *digits; /* by frame */
    struct lapse_output output;
    struct lapse_output stacks; /* text of stacks, each with what stands between it and another */
    struct stack_text { size_t at; uint32_t size; bool made; } *stack_texts; /* by view node */
    struct lapse_lanes samples; /* runs of samples of one stack */
    struct run { uint64_t weight_ns; uint32_t node; bool open; } *runs; /* by thread: the last */
    struct lapse_lanes edges;
    uint64_t *last_edge_ns;     /* by thread, since zero */
    uint64_t zero_ns;
    bool first;
};

static void put(struct speedscope *speedscope, const char *text)
{
    lapse_output_text(&speedscope->output, text);
}

/* Comma and newline before every item but the first. */
static void separate(struct speedscope *speedscope)
{
    if (!speedscope->first)
        put(speedscope, ",\n");
    speedscope->first = false;
}

/* Records of the lanes. A run: node of the view (4 bytes), weight (8). */
enum { RUN_SIZE = 12 };

/* An edge: frame * 4 + is_start * 2 + moves (4 bytes); if it moves, the time since the last (8). */
enum { EDGE_SIZE = 4, EDGE_TIME_SIZE = 8, FRAMES_MOST = 1 << 30 };

static void end_run(struct speedscope *speedscope, uint32_t thread)
{
    struct lapse_lane *lane = &speedscope->samples.lanes[thread];
    struct run *run = &speedscope->runs[thread];
    uint8_t *to = run->open ? lapse_lane_room(&speedscope->samples, lane) : NULL;
    if (to) {
        memcpy(to, &run->node, 4);
        memcpy(to + 4, &run->weight_ns, 8);
        lane->used += RUN_SIZE;
    }
    *run = (struct run){ 0 };
}

static int collect_sample(void *context, const struct lapse_profile_sample *sample)
{
    struct speedscope *speedscope = context;
    struct run *run = &speedscope->runs[sample->thread];
    uint32_t leaf_node = speedscope->profile->leaves[sample->leaf].node;
    uint32_t node = speedscope->view->node_of_profile_node[leaf_node];
    if (!run->open || run->node != node) {
        end_run(speedscope, sample->thread);
        *run = (struct run){ .node = node, .open = true };
    }
    run->weight_ns += sample->weight_ns;
    return speedscope->samples.error;
}

static int collect_edge(void *context, const struct lapse_call_edge *edge)
{
    struct speedscope *speedscope = context;
    struct lapse_lane *lane = &speedscope->edges.lanes[edge->thread];
    uint64_t *last_ns = &speedscope->last_edge_ns[edge->thread];
    uint64_t since_ns = 0;
    if (edge->time_ns > speedscope->zero_ns + *last_ns)
        since_ns = edge->time_ns - speedscope->zero_ns - *last_ns;
    uint32_t what =
        speedscope->frame_of[edge->function] * 4 + (unsigned)edge->start * 2 + !!since_ns;
    uint8_t *to = lapse_lane_room(&speedscope->edges, lane);
    if (!to)
        return speedscope->edges.error;
    memcpy(to, &what, EDGE_SIZE);
    memcpy(to + EDGE_SIZE, &since_ns, EDGE_TIME_SIZE); /* counts only if it moves */
    lane->used += EDGE_SIZE + EDGE_TIME_SIZE * !!since_ns;
    *last_ns += since_ns;
    return 0;
}

static void put_frames(struct speedscope *speedscope)
{
    speedscope->first = true;
    for (uint32_t i = 0; i < speedscope->view->function_count; i++) {
        const struct lapse_profile_function *function =
            &speedscope->profile->functions[speedscope->view->functions[i].function];
        separate(speedscope);
        put(speedscope, "{\"name\":");
        lapse_json_string(&speedscope->output, function->name);
        if (function->file) {
            put(speedscope, ",\"file\":");
            lapse_json_string(&speedscope->output, function->file);
        }
        if (function->file && function->line) {
            put(speedscope, ",\"line\":");
            lapse_output_uint(&speedscope->output, function->line);
        }
        put(speedscope, "}");
    }
}

/* `,\n[1,2,3]` */
static void make_stack(struct speedscope *speedscope, uint32_t node)
{
    const struct lapse_view_node *nodes = speedscope->view->nodes;
    struct lapse_output *pool = &speedscope->stacks;
    size_t start = pool->size, end = 11 * (size_t)nodes[node].depth + 4, at = end;
    /* Frames come leaf first: numbers are laid down from the end of the room. */
    char *room = lapse_output_room(pool, end);
    if (!room)
        return;
    room[--at] = ']';
    for (uint32_t n = node; n; n = nodes[n].parent) {
        const struct digits *digits = &speedscope->digits[nodes[n].function];
        at -= digits->size;
        memcpy(room + at, digits->text, digits->size);
        if (nodes[n].parent)
            room[--at] = ',';
    }
    at -= 3;
    memcpy(room + at, ",\n[", 3);
    memmove(room, room + at, end - at);
    pool->size += end - at;
    speedscope->stack_texts[node] = (struct stack_text){ start, (uint32_t)(end - at), true };
}

static void put_stack(struct speedscope *speedscope, uint32_t node)
{
    if (!speedscope->stack_texts[node].made)
        make_stack(speedscope, node);
    const struct stack_text *text = &speedscope->stack_texts[node];
    uint32_t left_out = speedscope->first && text->made ? 2 : 0; /* nothing before the first */
    lapse_output_bytes(&speedscope->output, speedscope->stacks.bytes + text->at + left_out,
                       text->size - left_out);
    speedscope->first = false;
}

static void put_profile_head(struct speedscope *speedscope, const char *type, const char *kind,
                             uint32_t thread, uint64_t end_value)
{
    const struct lapse_profile *profile = speedscope->profile;
    put(speedscope, "{\"type\":\"");
    put(speedscope, type);
    put(speedscope, "\",\"name\":\"");
    if (thread == LAPSE_NONE) {
        put(speedscope, "all threads");
    } else {
        if (profile->process_count > 1) {
            lapse_json_escaped(&speedscope->output,
                               profile->processes[profile->threads[thread].process].name);
            put(speedscope, " ");
            lapse_output_uint(&speedscope->output,
                              profile->processes[profile->threads[thread].process].pid);
            put(speedscope, ": ");
        }
        lapse_json_escaped(&speedscope->output, lapse_caption_thread(profile, thread));
        put(speedscope, " (");
        lapse_output_uint(&speedscope->output, profile->threads[thread].tid);
        put(speedscope, kind);
    }
    put(speedscope, profile->weight_unit == LAPSE_WEIGHT_NS
                        ? "\",\"unit\":\"nanoseconds\",\"startValue\":0,\"endValue\":"
                        : "\",\"unit\":\"none\",\"startValue\":0,\"endValue\":");
    lapse_output_uint(&speedscope->output, end_value);
    speedscope->first = true;
}

/* The node after `node` in depth-first order, 0 at the end. */
static uint32_t next_node(const struct lapse_view *view, uint32_t node)
{
    if (view->nodes[node].first_child != LAPSE_NONE)
        return view->nodes[node].first_child;
    while (node && view->nodes[node].next_sibling == LAPSE_NONE)
        node = view->nodes[node].parent;
    return node ? view->nodes[node].next_sibling : 0;
}

static void put_merged(struct speedscope *speedscope)
{
    const struct lapse_view *view = speedscope->view;
    put_profile_head(speedscope, "sampled", "", LAPSE_NONE, view->weight_ns);
    put(speedscope, ",\"samples\":[\n");
    if (view->nodes[0].self_ns)
        put_stack(speedscope, 0);
    for (uint32_t node = next_node(view, 0); node; node = next_node(view, node))
        if (view->nodes[node].self_ns)
            put_stack(speedscope, node);
    put(speedscope, "],\"weights\":[");
    speedscope->first = true;
    uint32_t node = 0;
    do {
        if (view->nodes[node].self_ns) {
            separate(speedscope);
            lapse_output_uint(&speedscope->output, view->nodes[node].self_ns);
        }
    } while ((node = next_node(view, node)));
    put(speedscope, "]}");
}

static uint32_t node_of_run(const uint8_t *record)
{
    uint32_t node;
    memcpy(&node, record, 4);
    return node;
}

/* The stacks of a thread's runs. Texts of stacks lie all over the memory: those of the runs to come
 * are fetched, first where they are, then themselves. */
static int put_stacks(struct speedscope *speedscope, uint32_t thread)
{
    enum { AHEAD = 8 * RUN_SIZE, LINE = 64, LINES_MOST = 4 };
    const struct stack_text *texts = speedscope->stack_texts;
    struct lapse_lane_reader reader;
    int more = lapse_lane_open(&reader, &speedscope->samples, thread);
    while (more >= 0 && (more = lapse_lane_more(&reader)) > 0) {
        ptrdiff_t left = reader.end - reader.at;
        if (left > 2 * AHEAD)
            __builtin_prefetch(&texts[node_of_run(reader.at + 2 * AHEAD)]);
        if (left > AHEAD) {
            const struct stack_text *text = &texts[node_of_run(reader.at + AHEAD)];
            for (uint32_t at = 0; at < text->size && at < LINES_MOST * LINE; at += LINE)
                __builtin_prefetch(speedscope->stacks.bytes + text->at + at);
        }
        put_stack(speedscope, node_of_run(reader.at));
        reader.at += RUN_SIZE;
    }
    lapse_lane_close(&reader);
    return more < 0 ? more : speedscope->stacks.error;
}

static int put_weights(struct speedscope *speedscope, uint32_t thread)
{
    struct lapse_lane_reader reader;
    uint64_t weight, before = 0;
    char text[48] = ",\n0"; /* of the weight before, which often is the next one too */
    size_t size = 3, left_out = 2;
    int more = lapse_lane_open(&reader, &speedscope->samples, thread);
    while (more >= 0 && (more = lapse_lane_more(&reader)) > 0) {
        memcpy(&weight, reader.at + 4, 8);
        reader.at += RUN_SIZE;
        if (weight != before)
            size = 2 + lapse_decimal(text + 2, weight);
        before = weight;
        char *to = lapse_output_room(&speedscope->output, 48);
        if (!to)
            break;
        lapse_lay(to, text + left_out, size - left_out);
        speedscope->output.size += size - left_out;
        left_out = 0;
    }
    lapse_lane_close(&reader);
    return more < 0 ? more : speedscope->output.error;
}

static int put_sampled(struct speedscope *speedscope, uint32_t thread)
{
    put(speedscope, ",\n");
    put_profile_head(speedscope, "sampled", ")", thread,
                     speedscope->profile->threads[thread].weight_ns);
    put(speedscope, ",\"samples\":[\n");
    int error = put_stacks(speedscope, thread);
    put(speedscope, "],\"weights\":[");
    if (!error)
        error = put_weights(speedscope, thread);
    put(speedscope, "]}");
    return error;
}

static int put_evented(struct speedscope *speedscope, uint32_t thread)
{
    struct lapse_lane_reader reader;
    struct lapse_output *output = &speedscope->output;
    static const char heads[2][48] = { ",\n{\"type\":\"C\",\"frame\":",
                                       ",\n{\"type\":\"O\",\"frame\":" };
    uint64_t since = 0, at = 0;
    uint32_t what;
    char tail[64]; /* `,"at":TIME}`, which all edges of a time share */
    size_t tail_size = 0;
    int more = lapse_lane_open(&reader, &speedscope->edges, thread);
    put(speedscope, ",\n");
    put_profile_head(speedscope, "evented", ") over time", thread,
                     speedscope->last_edge_ns[thread]);
    put(speedscope, ",\"events\":[\n");
    while (more >= 0 && (more = lapse_lane_more(&reader)) > 0) {
        memcpy(&what, reader.at, EDGE_SIZE);
        if (what & 1) {
            memcpy(&since, reader.at + EDGE_SIZE, EDGE_TIME_SIZE);
            at += since;
        }
        if (what & 1 || !tail_size) {
            memcpy(tail, ",\"at\":", 6);
            tail_size = 6 + lapse_decimal(tail + 6, at);
            tail[tail_size++] = '}';
        }
        reader.at += EDGE_SIZE + EDGE_TIME_SIZE * (what & 1);
        const struct digits *digits = &speedscope->digits[what >> 2];
        char *to = lapse_output_room(output, 128);
        if (!to)
            break;
        /* No comma before the first. */
        const char *head = heads[what >> 1 & 1] + 2 * speedscope->first;
        to = lapse_lay(to, head, 22 - 2u * speedscope->first);
        speedscope->first = false;
        to = lapse_lay(to, digits->text, digits->size);
        to = lapse_lay(to, tail, tail_size);
        output->size = (size_t)(to - output->bytes);
    }
    put(speedscope, "]}");
    lapse_lane_close(&reader);
    return more < 0 ? more : speedscope->output.error;
}

static int put_threads(struct speedscope *speedscope, const struct lapse_export_options *options)
{
    struct lapse_calls_options calls = {
        .edge = collect_edge, .sample = collect_sample, .context = speedscope,
        .export_options = options,
    };
    uint32_t threads = speedscope->profile->thread_count;
    int error = lapse_calls(speedscope->profile, &calls);
    for (uint32_t i = 0; i < threads && !error; i++)
        end_run(speedscope, i);
    if (!error)
        error = speedscope->samples.error;
    for (uint32_t i = 0; i < threads && !error; i++)
        error = put_sampled(speedscope, i);
    for (uint32_t i = 0; i < threads && !error; i++)
        error = put_evented(speedscope, i);
    return error;
}

static int write_all(struct speedscope *speedscope, const struct lapse_export_options *options)
{
    char title[512];
    int error = 0;
    lapse_caption_title(title, sizeof title, speedscope->profile, options);
    put(speedscope,
        "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"name\":");
    lapse_json_string(&speedscope->output, title);
    put(speedscope, ",\"exporter\":\"lapse " LAPSE_VERSION "\",\"activeProfileIndex\":0,"
                    "\"shared\":{\"frames\":[\n");
    put_frames(speedscope);
    put(speedscope, "]},\n\"profiles\":[");
    put_merged(speedscope);
    if (speedscope->profile->has_times)
        error = put_threads(speedscope, options);
    put(speedscope, "]}\n");
    return error ? error : lapse_output_finish(&speedscope->output);
}

static int number_frames(struct speedscope *speedscope)
{
    const struct lapse_profile *profile = speedscope->profile;
    const struct lapse_view *view = speedscope->view;
    if (view->function_count >= FRAMES_MOST)
        return -E2BIG;
    for (uint32_t i = 0; i < view->function_count; i++)
        speedscope->digits[i].size = (uint8_t)lapse_decimal(speedscope->digits[i].text, i);
    for (uint32_t i = 1; i < profile->node_count; i++) {
        uint32_t node = view->node_of_profile_node[i];
        if (node != LAPSE_NONE) /* a stack without weight is in no view */
            speedscope->frame_of[profile->nodes[i].function] = view->nodes[node].function;
    }
    return 0;
}

static int prepare(struct speedscope *speedscope, FILE *to)
{
    struct lapse_profile *profile = speedscope->profile;
    int output = lapse_output_init(&speedscope->output, to);
    int stacks = lapse_output_init(&speedscope->stacks, NULL);
    int samples = lapse_lanes_init(&speedscope->samples, profile->thread_count);
    int edges = lapse_lanes_init(&speedscope->edges, profile->thread_count);
    int error = lapse_view_create(&speedscope->view, profile, &(struct lapse_view_options){ 0 });
    if (error || output || stacks || samples || edges)
        return error ? error : -ENOMEM;
    speedscope->stack_texts = calloc(speedscope->view->node_count, sizeof *speedscope->stack_texts);
    speedscope->frame_of = calloc(profile->function_count + 1u, sizeof *speedscope->frame_of);
    speedscope->last_edge_ns = calloc(profile->thread_count + 1u, sizeof *speedscope->last_edge_ns);
    speedscope->runs = calloc(profile->thread_count + 1u, sizeof *speedscope->runs);
    speedscope->digits = calloc(speedscope->view->function_count + 1u, sizeof *speedscope->digits);
    if (!speedscope->stack_texts || !speedscope->frame_of || !speedscope->last_edge_ns ||
        !speedscope->runs || !speedscope->digits)
        return -ENOMEM;
    return number_frames(speedscope);
}

int lapse_write_speedscope(struct lapse_profile *profile, FILE *to,
                           const struct lapse_export_options *options, char *error,
                           size_t error_size)
{
    struct speedscope speedscope = { .profile = profile, .zero_ns = lapse_profile_zero(profile) };
    int result = prepare(&speedscope, to);
    if (!result)
        result = write_all(&speedscope, options);
    if (result)
        lapse_export_failed(error, error_size, "speedscope", result);
    lapse_output_fini(&speedscope.output);
    lapse_output_fini(&speedscope.stacks);
    lapse_lanes_fini(&speedscope.samples);
    lapse_lanes_fini(&speedscope.edges);
    if (speedscope.view)
        lapse_view_destroy(speedscope.view);
    free(speedscope.stack_texts);
    free(speedscope.frame_of);
    free(speedscope.last_edge_ns);
    free(speedscope.runs);
    free(speedscope.digits);
    return result;
}
