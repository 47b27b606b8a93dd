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
#include "format.h"
#include "output.h"
#include "text.h"

#define NAME_BYTES 8192

struct writer {
    struct lapse_profile *profile;
    struct lapse_output output;
    struct lapse_output names; /* escaped once for all their lines */
    size_t *name_ends;         /* by function */
    struct lapse_output head;  /* `TIME TAB THREAD` of the edge before, which many edges share */
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
    return 0;
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

static void put_name(struct writer *writer, uint32_t depth, uint32_t function, bool inferred, bool ambiguous)
{
    size_t begin = function ? writer->name_ends[function - 1] : 0;
    lapse_output_uint(&writer->output, depth);
    lapse_output_char(&writer->output, '\t');
    lapse_output_bytes(&writer->output, writer->names.bytes + begin, writer->name_ends[function] - begin);
    if (inferred || ambiguous)
        lapse_output_text(&writer->output, ambiguous ? "\tambiguous" : "\tinferred");
    lapse_output_char(&writer->output, '\n');
}

static int write_edge(void *context, const struct lapse_call_edge *edge)
{
    struct writer *writer = context;
    if (edge->time_ns != writer->head_ns || edge->thread != writer->head_thread || !writer->head.size) {
        writer->head.size = 0;
        lapse_output_uint(&writer->head, edge->time_ns);
        lapse_output_char(&writer->head, '\t');
        put_thread(writer, &writer->head, edge->thread);
        writer->head_ns = edge->time_ns;
        writer->head_thread = edge->thread;
    }
    lapse_output_bytes(&writer->output, writer->head.bytes, writer->head.size);
    lapse_output_text(&writer->output, edge->start ? "\tstart\t" : "\tend\t");
    put_name(writer, edge->depth, edge->function, edge->inferred, edge->ambiguous);
    return writer->output.error;
}

static void write_interval(void *context, const struct lapse_interval *interval)
{
    struct writer *writer = context;
    uint8_t proof = interval->start_proof > interval->end_proof ? interval->start_proof : interval->end_proof;
    lapse_output_uint(&writer->output, interval->start_ns);
    lapse_output_char(&writer->output, '\t');
    lapse_output_uint(&writer->output, interval->end_ns);
    lapse_output_char(&writer->output, '\t');
    put_thread(writer, &writer->output, (uint32_t)interval->thread);
    lapse_output_char(&writer->output, '\t');
    put_name(writer, interval->depth, (uint32_t)(interval->function - 1), proof == LAPSE_INFERRED,
             proof == LAPSE_AMBIGUOUS);
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
    lapse_output_text(&writer->output, profile->process_count ? clocks[profile->processes[0].clock] : "cpu");
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
    put_pair(writer, "signal_taken", counters->signal_taken);
    put_pair(writer, "lost_samples", counters->lost_samples);
    put_pair(writer, "dropped_spans", counters->dropped_spans);
    put_pair(writer, "handler_ns", counters->handler_ns);
    put_pair(writer, "drain_ns", counters->drain_ns);
}

static int write_calls(struct lapse_profile *profile, FILE *to, const struct lapse_export_options *options,
                       bool intervals, char *error, size_t error_size)
{
    struct writer writer = { .profile = profile };
    struct lapse_calls_options calls = {
        .edge = intervals ? NULL : write_edge, .interval = intervals ? write_interval : NULL,
        .context = &writer, .export_options = options, .as_asked = true,
    };
    int result = lapse_output_init(&writer.output, to), head = lapse_output_init(&writer.head, NULL);
    if (!result)
        result = head ? head : prepare_names(&writer);
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
        snprintf(error, error_size, "%s: %s", intervals ? "intervals" : "events",
                 result == -ENOTSUP ? "the input has no times" : strerror(-result));
    return result;
}

int lapse_write_events(struct lapse_profile *profile, FILE *to,
                       const struct lapse_export_options *options, char *error, size_t error_size)
{
    return write_calls(profile, to, options, false, error, error_size);
}

int lapse_write_intervals(struct lapse_profile *profile, FILE *to,
                          const struct lapse_export_options *options, char *error, size_t error_size)
{
    return write_calls(profile, to, options, true, error, error_size);
}
