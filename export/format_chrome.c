/* SPDX-License-Identifier: MIT */
/* Trace Event JSON: each thread's calls as begin and end events, balanced and in order of time, names
 * of threads and processes, spans as asynchronous events, losses as counters. Opens in Perfetto,
 * chrome://tracing and speedscope. Begin and end rather than complete events: both ends of
 * neighbours are then the same number. A call whose start is inferred has the category "inferred"; an end
 * has none, since Perfetto lets it end only a call of its own category. No arguments, which would make
 * functions of one name several in speedscope.
 * Called by `lapse export --to=chrome`. Offline only. */
#include <errno.h>
#include <stdlib.h>

#include "calls.h"
#include "captions.h"
#include "json_names.h"

struct chrome {
    const struct lapse_profile *profile;
    struct lapse_output output;
    struct lapse_json_names names;
    struct lapse_ids ids;
    struct lapse_output places; /* `"pid":1,"tid":2,"ts":` of each thread */
    size_t *place_offsets;
    struct lapse_output head; /* what all edges of one time and kind begin with */
    uint64_t zero_ns;
    struct edge { uint32_t function; bool inferred; } *batch; /* ends, then starts */
    uint32_t batch_ends, batch_count, batch_capacity;
    uint32_t batch_thread; /* all of one thread */
    uint64_t batch_ns;     /* and of one time */
};

static void put(struct chrome *chrome, const char *text)
{
    lapse_output_text(&chrome->output, text);
}

static void put_time(struct chrome *chrome, uint64_t time_ns)
{
    lapse_output_thousandths(&chrome->output,
                             time_ns > chrome->zero_ns ? time_ns - chrome->zero_ns : 0);
}

static void put_place(struct chrome *chrome, uint32_t thread)
{
    lapse_output_bytes(&chrome->output, chrome->places.bytes + chrome->place_offsets[thread],
                       chrome->place_offsets[thread + 1] - chrome->place_offsets[thread]);
}

static int prepare_places(struct chrome *chrome)
{
    const struct lapse_profile *profile = chrome->profile;
    chrome->place_offsets = calloc(profile->thread_count + 1u, sizeof *chrome->place_offsets);
    if (!chrome->place_offsets)
        return -ENOMEM;
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        lapse_output_text(&chrome->places, "\"pid\":");
        lapse_output_uint(&chrome->places, chrome->ids.processes[profile->threads[i].process]);
        lapse_output_text(&chrome->places, ",\"tid\":");
        lapse_output_uint(&chrome->places, chrome->ids.threads[i]);
        lapse_output_text(&chrome->places, ",\"ts\":");
        chrome->place_offsets[i + 1] = chrome->places.size;
    }
    return chrome->places.error;
}

static void put_metadata(struct chrome *chrome, const char *kind, uint32_t pid, uint32_t tid,
                         const char *name)
{
    put(chrome, ",\n{\"ph\":\"M\",\"pid\":");
    lapse_output_uint(&chrome->output, pid);
    put(chrome, ",\"tid\":");
    lapse_output_uint(&chrome->output, tid);
    put(chrome, ",\"name\":\"");
    put(chrome, kind);
    put(chrome, "\",\"args\":{\"name\":");
    lapse_json_string(&chrome->output, name);
    put(chrome, "}}");
}

static void put_names(struct chrome *chrome)
{
    const struct lapse_profile *profile = chrome->profile;
    for (uint32_t i = 0; i < profile->process_count; i++)
        put_metadata(chrome, "process_name", chrome->ids.processes[i], 0,
                     *profile->processes[i].name ? profile->processes[i].name : "process");
    for (uint32_t i = 0; i < profile->thread_count; i++)
        put_metadata(chrome, "thread_name", chrome->ids.processes[profile->threads[i].process],
                     chrome->ids.threads[i], lapse_caption_thread(profile, i));
}

/* What edges of the batch's thread begin with, up to the name. */
static void make_head(struct chrome *chrome, bool start, uint64_t time_ns)
{
    struct lapse_output *head = &chrome->head;
    size_t place = chrome->place_offsets[chrome->batch_thread];
    head->size = 0;
    lapse_output_text(head, start ? ",\n{\"ph\":\"B\"," : ",\n{\"ph\":\"E\",");
    lapse_output_bytes(head, chrome->places.bytes + place,
                       chrome->place_offsets[chrome->batch_thread + 1] - place);
    lapse_output_thousandths(head, time_ns > chrome->zero_ns ? time_ns - chrome->zero_ns : 0);
    lapse_output_text(head, ",\"name\":");
    lapse_output_pad(head);
}

/* Edges of one kind. Ends have names too: speedscope matches them by name. */
static void put_edges(struct chrome *chrome, const struct edge *edges, uint32_t count, bool start,
                      uint64_t time_ns)
{
    static const char inferred[32] = ",\"cat\":\"inferred\"}";
    if (!count)
        return;
    make_head(chrome, start, time_ns);
    const char *head = chrome->head.bytes;
    size_t head_size = chrome->head.size;
    for (uint32_t i = 0; i < count; i++) {
        char *to = lapse_output_room(&chrome->output, head_size + 48 +
                                     lapse_json_name_size(&chrome->names, edges[i].function));
        if (!to)
            return;
        to = lapse_lay(to, head, head_size);
        to = lapse_json_name_lay(to, &chrome->names, edges[i].function);
        if (start && edges[i].inferred)
            to = lapse_lay(to, inferred, 18);
        else
            *to++ = '}';
        chrome->output.size = (size_t)(to - chrome->output.bytes);
    }
}

/* A start and an end of one name at one time are a call of no length to speedscope, whatever their
 * order. Where a function ends and is called again, the ends are put a nanosecond earlier: that is
 * as true, they lie somewhere between the samples. */
static void flush_batch(struct chrome *chrome)
{
    const struct edge *starts = chrome->batch + chrome->batch_ends;
    uint32_t ends = chrome->batch_ends, start_count = chrome->batch_count - ends, earlier = 0;
    for (uint32_t i = 0; i < ends && start_count && !earlier; i++)
        earlier = chrome->names.numbers[chrome->batch[i].function] ==
                  chrome->names.numbers[starts->function];
    uint64_t time_ns = chrome->batch_ns;
    put_edges(chrome, chrome->batch, ends, false, time_ns - (time_ns ? earlier : 0));
    put_edges(chrome, starts, start_count, true, time_ns);
    chrome->batch_count = chrome->batch_ends = 0;
}

static int take_edge(void *context, const struct lapse_call_edge *edge)
{
    struct chrome *chrome = context;
    if (chrome->batch_ns != edge->time_ns || chrome->batch_thread != edge->thread) {
        flush_batch(chrome);
        chrome->batch_ns = edge->time_ns;
        chrome->batch_thread = edge->thread;
    }
    if (chrome->batch_count == chrome->batch_capacity) {
        uint32_t capacity = chrome->batch_capacity ? chrome->batch_capacity * 2 : 64;
        struct edge *batch = realloc(chrome->batch, capacity * sizeof *batch);
        if (!batch)
            return -ENOMEM;
        chrome->batch = batch;
        chrome->batch_capacity = capacity;
    }
    chrome->batch[chrome->batch_count++] = (struct edge){ edge->function, edge->inferred };
    if (!edge->start)
        chrome->batch_ends = chrome->batch_count;
    return chrome->output.error;
}

static void put_span_edge(struct chrome *chrome, const struct lapse_profile_span *span, uint32_t id,
                          char phase)
{
    put(chrome, ",\n{\"ph\":\"");
    lapse_output_char(&chrome->output, phase);
    put(chrome, "\",");
    put_place(chrome, span->thread);
    put_time(chrome, phase == 'b' ? span->start_ns : span->end_ns);
    put(chrome, ",\"id\":");
    lapse_output_uint(&chrome->output, id + 1u);
    put(chrome, ",\"cat\":\"span\",\"name\":");
    lapse_json_string(&chrome->output, span->name);
    put(chrome, "}");
}

static void put_loss(void *context, const char *name, uint64_t value)
{
    struct chrome *chrome = context;
    put(chrome, ",\n{\"ph\":\"C\",\"pid\":");
    lapse_output_uint(&chrome->output,
                      chrome->profile->process_count ? chrome->ids.processes[0] : 0);
    put(chrome, ",\"tid\":0,\"ts\":");
    put_time(chrome, lapse_profile_end(chrome->profile));
    put(chrome, ",\"name\":");
    lapse_json_string(&chrome->output, name);
    put(chrome, ",\"args\":{\"value\":");
    lapse_output_uint(&chrome->output, value);
    put(chrome, "}}");
}

static int write_all(struct chrome *chrome, struct lapse_profile *profile,
                     const struct lapse_export_options *options)
{
    char title[512];
    lapse_caption_title(title, sizeof title, profile, options);
    /* The first event has no category, or speedscope may take the list for another format. */
    put(chrome, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
                "{\"ph\":\"M\",\"pid\":0,\"tid\":0,\"name\":\"trace_title\",\"args\":{\"name\":");
    lapse_json_string(&chrome->output, title);
    put(chrome, "}}");
    put_names(chrome);
    struct lapse_calls_options calls = {
        .edge = take_edge, .context = chrome, .export_options = options,
    };
    int error = lapse_calls(profile, &calls);
    flush_batch(chrome);
    for (uint32_t i = 0; i < profile->span_count && !error; i++) {
        put_span_edge(chrome, &profile->spans[i], i, 'b');
        put_span_edge(chrome, &profile->spans[i], i, 'e');
    }
    lapse_each_loss(profile, chrome, put_loss);
    put(chrome, "\n]}\n");
    return error;
}

int lapse_write_chrome(struct lapse_profile *profile, FILE *to,
                       const struct lapse_export_options *options, char *error, size_t error_size)
{
    struct chrome chrome = { .profile = profile, .zero_ns = lapse_profile_zero(profile) };
    int output = lapse_output_init(&chrome.output, to);
    int result = profile->has_times ? output : -ENOTSUP;
    int places = lapse_output_init(&chrome.places, NULL),
        head = lapse_output_init(&chrome.head, NULL);
    int names = lapse_json_names_init(&chrome.names, profile);
    if (!result)
        result = places ? places : head ? head : names;
    if (!result)
        result = lapse_ids_init(&chrome.ids, profile);
    if (!result)
        result = prepare_places(&chrome);
    if (!result)
        result = write_all(&chrome, profile, options);
    if (!result)
        result = lapse_output_finish(&chrome.output);
    if (result)
        lapse_export_failed(error, error_size, "chrome", result);
    lapse_json_names_fini(&chrome.names);
    lapse_ids_fini(&chrome.ids);
    lapse_output_fini(&chrome.places);
    lapse_output_fini(&chrome.head);
    lapse_output_fini(&chrome.output);
    free(chrome.place_offsets);
    free(chrome.batch);
    return result;
}
