/* SPDX-License-Identifier: MIT */
/* The Firefox Profiler's processed format, version 60: old enough for every viewer (they upgrade what
 * is older, and refuse what is newer), tables shared by all threads (firefox_tables.c). One row a
 * sample, weighted by the CPU time that it stands for; spans and gaps are markers.
 * Called by `lapse export --to=firefox`. Offline only; samples wait in lanes. */
#include <errno.h>
#include <stdlib.h>

#include "calls.h"
#include "captions.h"
#include "firefox_tables.h"
#include "lanes.h"

struct firefox {
    struct lapse_profile *profile;
    struct lapse_output output;
    struct lapse_firefox_tables tables;
    struct lapse_lanes samples; /* stack + 1, time since the last one (first: since zero), weight */
    struct lapse_lanes gaps;    /* start, end */
    uint64_t *gap_counts;       /* by thread */
    uint64_t *last_ns;          /* by thread, since zero */
    uint64_t *counts;           /* by thread */
    uint64_t zero_ns, gap_ns;
    uint32_t gap_name;
};

static void put(struct firefox *firefox, const char *text)
{
    lapse_output_text(&firefox->output, text);
}

static void put_ms(struct firefox *firefox, uint64_t ns)
{
    lapse_output_millionths(&firefox->output, ns);
}

static void put_row(struct firefox *firefox, uint32_t thread, uint32_t stack, uint64_t since_ns,
                    uint64_t weight_ns)
{
    lapse_lane_put(&firefox->samples, thread, stack);
    lapse_lane_put(&firefox->samples, thread, since_ns);
    lapse_lane_put(&firefox->samples, thread, weight_ns);
    firefox->counts[thread]++;
}

static int collect(void *context, const struct lapse_profile_sample *sample)
{
    struct firefox *firefox = context;
    uint64_t time_ns = sample->time_ns > firefox->zero_ns ? sample->time_ns - firefox->zero_ns : 0;
    uint64_t *last_ns = &firefox->last_ns[sample->thread];
    if (time_ns < *last_ns)
        time_ns = *last_ns;
    /* CPU time is from one row to the next, what the first row has counts nowhere: a row without a
     * stack stands where the time of the first sample begins. */
    if (!firefox->counts[sample->thread]) {
        *last_ns = time_ns > sample->weight_ns ? time_ns - sample->weight_ns : 0;
        put_row(firefox, sample->thread, 0, *last_ns, 0);
    } else if (time_ns - *last_ns > firefox->gap_ns) {
        lapse_lane_put(&firefox->gaps, sample->thread, *last_ns);
        lapse_lane_put(&firefox->gaps, sample->thread, time_ns);
        firefox->gap_counts[sample->thread]++;
    }
    put_row(firefox, sample->thread, firefox->tables.leaf_stacks[sample->leaf], time_ns - *last_ns,
            sample->weight_ns);
    *last_ns = time_ns;
    return firefox->samples.error ? firefox->samples.error : firefox->gaps.error;
}

/* Without times: one row for each distinct stack, in a thread of its own. */
static void collect_leaves(struct firefox *firefox)
{
    for (uint32_t i = 0; i < firefox->profile->leaf_count; i++) {
        if (!firefox->profile->leaves[i].weight_ns)
            continue;
        put_row(firefox, 0, firefox->tables.leaf_stacks[i], firefox->counts[0] ? 1000000 : 0,
                firefox->profile->leaves[i].weight_ns);
    }
}

enum column {
    STACK, TIME, WEIGHT, CPU, /* of samples */
    NAME, START, END, PHASE, CATEGORY, DATA, /* of markers */
};

static void put_marker(struct firefox *firefox, enum column column, uint32_t name,
                       uint64_t start_ns, uint64_t end_ns, bool *first)
{
    if (!*first)
        lapse_output_char(&firefox->output, ',');
    *first = false;
    switch (column) {
    case NAME: lapse_output_uint(&firefox->output, name); break;
    case START: put_ms(firefox, start_ns); break;
    case END: put_ms(firefox, end_ns); break;
    case PHASE: put(firefox, "1"); break; /* an interval */
    case CATEGORY: lapse_output_uint(&firefox->output, LAPSE_FIREFOX_OTHER); break;
    default: put(firefox, "null"); break;
    }
}

struct row { uint64_t stack, time_ns, since_ns, weight_ns; bool first; };

static void put_cell(struct firefox *firefox, enum column column, const struct row *row)
{
    if (!row->first)
        lapse_output_char(&firefox->output, ',');
    switch (column) {
    case STACK:
        if (row->stack)
            lapse_output_uint(&firefox->output, row->stack - 1);
        else
            put(firefox, "null");
        break;
    case TIME: put_ms(firefox, row->time_ns); break;
    case WEIGHT:
        if (firefox->profile->weight_unit == LAPSE_WEIGHT_NS)
            put_ms(firefox, row->weight_ns);
        else
            lapse_output_uint(&firefox->output, row->weight_ns);
        break;
    default:
        /* CPU time since the row before, all of it. It may be more than the time between them: a
         * tick comes late, and what was not sampled is in one piece. Viewers draw that as 100 %. */
        lapse_output_uint(&firefox->output, row->weight_ns);
        break;
    }
}

/* One column of a thread, which is read anew for each: no column is kept. */
static int put_column(struct firefox *firefox, uint32_t thread, enum column column,
                      const char *head)
{
    struct lapse_lane_reader reader;
    struct row row = { .first = true };
    put(firefox, head);
    int more = lapse_lane_open(&reader, &firefox->samples, thread);
    while (more >= 0 && (more = lapse_lane_next(&reader, &row.stack)) > 0 &&
           (more = lapse_lane_next(&reader, &row.since_ns)) > 0 &&
           (more = lapse_lane_next(&reader, &row.weight_ns)) > 0) {
        row.time_ns += row.since_ns;
        put_cell(firefox, column, &row);
        row.first = false;
    }
    lapse_lane_close(&reader);
    put(firefox, "]");
    return more < 0 ? more : firefox->output.error;
}

/* One column of a thread's markers: spans, then gaps. */
static int put_marker_column(struct firefox *firefox, uint32_t thread, enum column column,
                             const char *head)
{
    struct lapse_lane_reader reader;
    uint64_t start_ns, end_ns;
    bool first = true;
    put(firefox, head);
    for (uint32_t i = 0; i < firefox->profile->span_count; i++) {
        const struct lapse_profile_span *span = &firefox->profile->spans[i];
        uint64_t zero = firefox->zero_ns;
        if (span->thread == thread)
            put_marker(firefox, column, lapse_firefox_string(&firefox->tables, span->name),
                       span->start_ns > zero ? span->start_ns - zero : 0,
                       span->end_ns > zero ? span->end_ns - zero : 0, &first);
    }
    int more = lapse_lane_open(&reader, &firefox->gaps, thread);
    while (more >= 0 && (more = lapse_lane_next(&reader, &start_ns)) > 0 &&
           (more = lapse_lane_next(&reader, &end_ns)) > 0)
        put_marker(firefox, column, firefox->gap_name, start_ns, end_ns, &first);
    lapse_lane_close(&reader);
    put(firefox, "]");
    return more < 0 ? more : firefox->output.error;
}

static int put_samples(struct firefox *firefox, uint32_t thread)
{
    bool has_time = firefox->profile->weight_unit == LAPSE_WEIGHT_NS;
    put(firefox, ",\n\"samples\":{\"length\":");
    lapse_output_uint(&firefox->output, firefox->counts[thread]);
    put(firefox, has_time ? ",\"weightType\":\"tracing-ms\"" : ",\"weightType\":\"samples\"");
    int error = put_column(firefox, thread, STACK, ",\"stack\":[");
    if (!error)
        error = put_column(firefox, thread, TIME, ",\"time\":[");
    if (!error)
        error = put_column(firefox, thread, WEIGHT, ",\"weight\":[");
    if (!error && firefox->profile->has_times)
        error = put_column(firefox, thread, CPU, ",\"threadCPUDelta\":[");
    put(firefox, "}");
    return error;
}

static int put_markers(struct firefox *firefox, uint32_t thread)
{
    static const char *const heads[] = {
        [NAME] = ",\"name\":[", [START] = ",\"startTime\":[", [END] = ",\"endTime\":[",
        [PHASE] = ",\"phase\":[", [CATEGORY] = ",\"category\":[", [DATA] = ",\"data\":[",
    };
    uint64_t count = firefox->gap_counts[thread];
    int error = 0;
    for (uint32_t i = 0; i < firefox->profile->span_count; i++)
        count += firefox->profile->spans[i].thread == thread;
    put(firefox, ",\n\"markers\":{\"length\":");
    lapse_output_uint(&firefox->output, count);
    for (enum column column = NAME; column <= DATA && !error; column++)
        error = put_marker_column(firefox, thread, column, heads[column]);
    put(firefox, "}");
    return error;
}

static void put_moment(struct firefox *firefox, const char *head, uint64_t time_ns)
{
    put(firefox, head);
    if (time_ns)
        put_ms(firefox, time_ns > firefox->zero_ns ? time_ns - firefox->zero_ns : 0);
    else
        put(firefox, "null");
}

static void put_thread_head(struct firefox *firefox, uint32_t index)
{
    const struct lapse_profile_thread *thread = &firefox->profile->threads[index];
    const struct lapse_profile_process *process = &firefox->profile->processes[thread->process];
    put(firefox, "{\"name\":");
    lapse_json_string(&firefox->output, lapse_caption_thread(firefox->profile, index));
    put(firefox,
        thread->tid == process->pid ? ",\"isMainThread\":true" : ",\"isMainThread\":false");
    put(firefox, ",\"processType\":\"default\",\"processName\":");
    lapse_json_string(&firefox->output, process->name);
    put(firefox, ",\"pid\":\"");
    lapse_output_uint(&firefox->output, process->pid);
    if (process->session) {
        lapse_output_char(&firefox->output, '.');
        lapse_output_uint(&firefox->output, process->session);
    }
    put(firefox, "\",\"tid\":");
    lapse_output_uint(&firefox->output, thread->tid);
    put_moment(firefox, ",\"processStartupTime\":", process->start_ns ? process->start_ns
                                                                      : firefox->zero_ns + 1);
    put_moment(firefox, ",\"processShutdownTime\":", process->end_ns);
    put_moment(firefox, ",\"registerTime\":", thread->start_ns ? thread->start_ns
                                                               : firefox->zero_ns + 1);
    put_moment(firefox, ",\"unregisterTime\":", thread->end_ns);
    put(firefox, ",\"pausedRanges\":[]");
}

static int put_threads(struct firefox *firefox)
{
    uint32_t count = firefox->profile->has_times ? firefox->profile->thread_count : 1;
    int error = 0;
    put(firefox, ",\n\"threads\":[");
    for (uint32_t i = 0; i < count && !error; i++) {
        put(firefox, i ? ",\n" : "\n");
        if (firefox->profile->has_times)
            put_thread_head(firefox, i);
        else
            put(firefox, "{\"name\":\"all\",\"isMainThread\":true,\"processType\":\"default\","
                         "\"processName\":\"profile\",\"pid\":\"1\",\"tid\":1,"
                         "\"processStartupTime\":0,\"processShutdownTime\":null,"
                         "\"registerTime\":0,\"unregisterTime\":null,\"pausedRanges\":[]");
        error = put_samples(firefox, i);
        if (!error)
            error = put_markers(firefox, i);
        put(firefox, "}");
    }
    put(firefox, "]");
    return error;
}

static void put_loss(void *context, const char *name, uint64_t value)
{
    struct firefox *firefox = context;
    put(firefox, ",{\"label\":");
    lapse_json_string(&firefox->output, name);
    put(firefox, ",\"format\":\"integer\",\"value\":");
    lapse_output_uint(&firefox->output, value);
    put(firefox, "}");
}

static void put_meta(struct firefox *firefox, const struct lapse_export_options *options)
{
    const struct lapse_profile *profile = firefox->profile;
    char title[512];
    lapse_caption_title(title, sizeof title, profile, options);
    put(firefox, "{\"meta\":{\"version\":29,\"preprocessedProfileVersion\":60,\"processType\":0,"
                 "\"stackwalk\":1,\"symbolicated\":true,\"usesOnlyOneStackType\":true,"
                 "\"sourceCodeIsNotOnSearchfox\":true,\"platform\":\"Linux\",\"oscpu\":\"x86_64\","
                 "\"markerSchema\":[],\"interval\":");
    if (profile->period_ns)
        put_ms(firefox, profile->period_ns);
    else
        put(firefox, "1");
    put(firefox, ",\"startTime\":");
    put_ms(firefox, lapse_profile_zero_utc(profile));
    put(firefox, ",\"product\":");
    lapse_json_string(&firefox->output, title);
    put(firefox, ",\"importedFrom\":\"lapse " LAPSE_VERSION "\",\"sampleUnits\":{\"time\":\"ms\","
                 "\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},\"categories\":");
    lapse_firefox_categories(&firefox->output);
    /* Losses show in the profile's information panel. */
    put(firefox, ",\"extra\":[{\"label\":\"Losses\",\"entries\":["
                 "{\"label\":\"recorded\",\"format\":\"integer\",\"value\":");
    lapse_output_uint(&firefox->output, profile->count);
    put(firefox, "}");
    lapse_each_loss(profile, firefox, put_loss);
    put(firefox, "]}]}");
}

static int write_all(struct firefox *firefox, const struct lapse_export_options *options)
{
    int error = 0;
    if (firefox->profile->has_times)
        error = lapse_profile_each_sample(firefox->profile, collect, firefox);
    else
        collect_leaves(firefox);
    put_meta(firefox, options);
    put(firefox, ",\n\"libs\":");
    lapse_firefox_libs(&firefox->tables, &firefox->output);
    if (!error)
        error = put_threads(firefox);
    put(firefox, ",\n\"shared\":");
    lapse_firefox_shared(&firefox->tables, &firefox->output);
    put(firefox, "}\n");
    return error ? error : lapse_output_finish(&firefox->output);
}

static int prepare(struct firefox *firefox, FILE *to, const struct lapse_export_options *options)
{
    struct lapse_profile *profile = firefox->profile;
    int output = lapse_output_init(&firefox->output, to);
    int lanes = lapse_lanes_init(&firefox->samples, profile->thread_count + 1);
    int gaps = lapse_lanes_init(&firefox->gaps, profile->thread_count + 1);
    int tables = lapse_firefox_tables_init(&firefox->tables, profile);
    firefox->last_ns = calloc(profile->thread_count + 1u, sizeof *firefox->last_ns);
    firefox->counts = calloc(profile->thread_count + 1u, sizeof *firefox->counts);
    firefox->gap_counts = calloc(profile->thread_count + 1u, sizeof *firefox->gap_counts);
    firefox->zero_ns = lapse_profile_zero(profile);
    firefox->gap_ns = profile->has_times ? lapse_calls_gap(profile, options) : UINT64_MAX;
    if (output || lanes || gaps || tables || !firefox->last_ns || !firefox->counts ||
        !firefox->gap_counts)
        return -ENOMEM;
    firefox->gap_name = lapse_firefox_string(&firefox->tables, "not sampled");
    return 0;
}

int lapse_write_firefox(struct lapse_profile *profile, FILE *to,
                        const struct lapse_export_options *options, char *error, size_t error_size)
{
    struct firefox firefox = { .profile = profile };
    int result = prepare(&firefox, to, options);
    if (!result)
        result = write_all(&firefox, options);
    if (result)
        lapse_export_failed(error, error_size, "firefox", result);
    lapse_output_fini(&firefox.output);
    lapse_firefox_tables_fini(&firefox.tables);
    lapse_lanes_fini(&firefox.samples);
    lapse_lanes_fini(&firefox.gaps);
    free(firefox.last_ns);
    free(firefox.counts);
    free(firefox.gap_counts);
    return result;
}
