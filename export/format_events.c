/* SPDX-License-Identifier: MIT */
/* Events and intervals of a profile as text.
 *
 *   # lapse events 1                       # lapse intervals 1
 *   # clock CLOCK, period_ns N, and one such line for each counter
 *   TIME TAB THREAD TAB start|end TAB DEPTH TAB NAME [TAB inferred|ambiguous]
 *   START TAB END TAB THREAD TAB DEPTH TAB NAME [TAB inferred|ambiguous]
 *
 * Times are nanoseconds of the monotonic clock. THREAD is the kernel's thread id, PID/TID where the
 * profile has several processes. Per thread times never go back; ends come before starts at one
 * time; starts and ends match. Offline only. */
#include <errno.h>
#include <string.h>
#include <stdlib.h>

#include "calls.h"
#include "captions.h"
#include "format.h"
#include "output.h"
#include "text.h"

#define NAME_BYTES 8192

struct writer {
    struct lapse_profile *profile;
    struct lapse_output output;
    struct lapse_output names; /* escaped once for all their lines */
    size_t *name_ends;         /* by function */
    struct lapse_output head;  /* `TIME TAB THREAD`, which many edges share */
    uint64_t head_ns;
    uint32_t head_thread;
};

static int prepare_names(struct writer *writer)
{
    const struct lapse_profile *profile = writer->profile;
    int error = lapse_output_init(&writer->names, NULL);
    writer->name_ends = calloc(profile->function_count + 1u, sizeof *writer->name_ends);
    if (error || !writer->name_ends)
        return -ENOMEM;
    for (uint32_t i = 0; i < profile->function_count; i++) {
        char *name = lapse_output_room(&writer->names, NAME_BYTES);
        if (!name)
            return -ENOMEM;
        writer->names.size += lapse_escaped_name(name, NAME_BYTES, profile->functions[i].name);
        writer->name_ends[i] = writer->names.size;
    }
    lapse_output_pad(&writer->names);
    return writer->names.error;
}

static void put_thread(struct writer *writer, struct lapse_output *output, uint32_t index)
{
    const struct lapse_profile_thread *thread = &writer->profile->threads[index];
    if (writer->profile->process_count > 1) {
        lapse_output_uint(output, writer->profile->processes[thread->process].pid);
        lapse_output_char(output, '/');
    }
    lapse_output_uint(output, thread->tid);
}

/* What lines of one time and thread have in common. */
static void make_head(struct writer *writer, uint64_t time_ns, uint32_t thread)
{
    if (time_ns == writer->head_ns && thread == writer->head_thread && writer->head.size)
        return;
    writer->head.size = 0;
    lapse_output_uint(&writer->head, time_ns);
    lapse_output_char(&writer->head, '\t');
    put_thread(writer, &writer->head, thread);
    lapse_output_pad(&writer->head);
    writer->head_ns = time_ns;
    writer->head_thread = thread;
}

/* A line, or the rest of one: `head`, what stands between it and the depth, the depth, the name. */
static void put_line(struct writer *writer, const char between[LAPSE_LAY_SLACK],
                     size_t between_size, uint32_t depth, uint32_t function, enum lapse_proof proof)
{
    static const char proofs[][LAPSE_LAY_SLACK] = { "\n", "\tinferred\n", "\tambiguous\n" };
    static const uint8_t sizes[] = { 1, 10, 11 };
    size_t begin = function ? writer->name_ends[function - 1] : 0;
    size_t size = writer->name_ends[function] - begin;
    char *to = lapse_output_room(&writer->output, writer->head.size + size + 64 + LAPSE_LAY_SLACK);
    if (!to)
        return;
    to = lapse_lay(to, writer->head.bytes, writer->head.size);
    to = lapse_lay(to, between, between_size);
    to += lapse_decimal(to, depth);
    *to++ = '\t';
    to = lapse_lay(to, writer->names.bytes + begin, size);
    to = lapse_lay(to, proofs[proof], sizes[proof]);
    writer->output.size = (size_t)(to - writer->output.bytes);
}

static int write_edge(void *context, const struct lapse_call_edge *edge)
{
    static const char start[LAPSE_LAY_SLACK] = "\tstart\t", end[LAPSE_LAY_SLACK] = "\tend\t";
    struct writer *writer = context;
    make_head(writer, edge->time_ns, edge->thread);
    put_line(writer, edge->start ? start : end, edge->start ? 7 : 5, edge->depth, edge->function,
             edge->ambiguous ? LAPSE_AMBIGUOUS : edge->inferred ? LAPSE_INFERRED : LAPSE_PROVEN);
    return writer->output.error;
}

static void write_interval(void *context, const struct lapse_interval *interval)
{
    struct writer *writer = context;
    static const char tab[LAPSE_LAY_SLACK] = "\t";
    enum lapse_proof proof = interval->start_proof > interval->end_proof ? interval->start_proof
                                                                         : interval->end_proof;
    make_head(writer, interval->end_ns, (uint32_t)interval->thread);
    lapse_output_uint(&writer->output, interval->start_ns);
    lapse_output_char(&writer->output, '\t');
    put_line(writer, tab, 1, interval->depth, (uint32_t)(interval->function - 1), proof);
}

static void put_pair(struct writer *writer, const char *name, uint64_t value)
{
    lapse_output_text(&writer->output, "# ");
    lapse_output_text(&writer->output, name);
    lapse_output_char(&writer->output, ' ');
    lapse_output_uint(&writer->output, value);
    lapse_output_char(&writer->output, '\n');
}

static void put_head(struct writer *writer, const char *what)
{
    static const char *const clocks[] = { "cpu", "perf", "wall" };
    const struct lapse_profile *profile = writer->profile;
    const struct lapse_counters *counters = &profile->counters;
    lapse_output_text(&writer->output, "# lapse ");
    lapse_output_text(&writer->output, what);
    lapse_output_text(&writer->output, " 1\n# clock ");
    lapse_output_text(&writer->output,
                      profile->process_count ? clocks[profile->processes[0].clock] : "cpu");
    lapse_output_char(&writer->output, '\n');
    put_pair(writer, "period_ns", profile->period_ns);
    put_pair(writer, "ticks", counters->ticks);
    put_pair(writer, "merged_ticks", counters->merged_ticks);
    put_pair(writer, "recorded", counters->recorded);
    put_pair(writer, "dropped_ring_full", counters->dropped_ring_full);
    put_pair(writer, "dropped_gate_closed", counters->dropped_gate_closed);
    put_pair(writer, "dropped_weight_ns", counters->dropped_weight_ns);
    put_pair(writer, "truncated", counters->truncated);
    put_pair(writer, "unwind_failures", counters->unwind_failures);
    put_pair(writer, "guessed_frames", counters->guessed_frames);
    put_pair(writer, "late_ticks", counters->late_ticks);
    put_pair(writer, "unsampled_threads", counters->unsampled_threads);
    put_pair(writer, "before_ns", counters->before_ns);
    put_pair(writer, "signal_taken", counters->signal_taken);
    put_pair(writer, "lost_samples", counters->lost_samples);
    put_pair(writer, "dropped_spans", counters->dropped_spans);
    put_pair(writer, "handler_ns", counters->handler_ns);
    put_pair(writer, "drain_ns", counters->drain_ns);
}

static int write_calls(struct lapse_profile *profile, FILE *to,
                       const struct lapse_export_options *options, bool intervals, char *error,
                       size_t error_size)
{
    struct writer writer = { .profile = profile };
    struct lapse_calls_options calls = {
        .edge = intervals ? NULL : write_edge, .interval = intervals ? write_interval : NULL,
        .context = &writer, .export_options = options, .as_asked = true,
    };
    int output = lapse_output_init(&writer.output, to),
        head = lapse_output_init(&writer.head, NULL);
    int result = !profile->has_times ? -ENOTSUP : output ? output : head;
    if (!result)
        result = prepare_names(&writer);
    if (!result) {
        put_head(&writer, intervals ? "intervals" : "events");
        result = lapse_calls(profile, &calls);
        int written = lapse_output_finish(&writer.output);
        result = result ? result : written;
    }
    lapse_output_fini(&writer.output);
    lapse_output_fini(&writer.head);
    lapse_output_fini(&writer.names);
    free(writer.name_ends);
    if (result)
        lapse_export_failed(error, error_size, intervals ? "intervals" : "events", result);
    return result;
}

int lapse_write_events(struct lapse_profile *profile, FILE *to,
                       const struct lapse_export_options *options, char *error, size_t error_size)
{
    return write_calls(profile, to, options, false, error, error_size);
}

int lapse_write_intervals(struct lapse_profile *profile, FILE *to,
                          const struct lapse_export_options *options, char *error,
                          size_t error_size)
{
    return write_calls(profile, to, options, true, error, error_size);
}
