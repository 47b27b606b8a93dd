/* SPDX-License-Identifier: MIT */
/* lapse's own page: page.html with the profile inside, one file that needs no other and no network.
 * The data are columns (varints and text, read by page/data.js), deflated, in base64: so nothing
 * that the profiled program chose is ever seen by the browser's parser. Samples are streamed; memory
 * is one block of them. Called by `lapse export --to=html` and `lapse view`. Offline only. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format.h"
#include "output.h"
#include "page.h"
#include "page_samples.h"
#include "page_stream.h"
#include "page_times.h"

/* More samples than this make a page that is slow to open: then one stands for several in a row. */
#define SAMPLES_ALL 4000000u
#define SAMPLES_THINNED 2000000u

static void write_time(struct lapse_page_stream *stream, uint64_t base_ns, uint64_t time_ns)
{
    lapse_page_uint(stream, time_ns > base_ns ? time_ns - base_ns : 0);
}

/* The process that the profile is mostly of. */
static const struct lapse_profile_process *main_process(const struct lapse_profile *profile)
{
    uint64_t *weights = calloc(profile->process_count, sizeof *weights);
    uint32_t most = 0;
    for (uint32_t i = 0; weights && i < profile->thread_count; i++) {
        uint32_t process = profile->threads[i].process;
        weights[process] += profile->threads[i].weight_ns;
        if (weights[process] > weights[most] ||
            (weights[process] == weights[most] && process < most))
            most = process;
    }
    free(weights);
    return &profile->processes[most];
}

static void write_title(struct lapse_page_stream *stream, const struct lapse_profile *profile,
                        const struct lapse_export_options *options)
{
    char title[4096];
    if (options->title) {
        lapse_page_text(stream, options->title);
    } else if (!profile->process_count) {
        lapse_page_text(stream, "profile");
    } else {
        const struct lapse_profile_process *of = main_process(profile);
        const char *command = of->command && *of->command ? of->command : of->name;
        if (profile->process_count > 1)
            snprintf(title, sizeof title, "%.4000s (and %u more)", command,
                     profile->process_count - 1);
        else
            snprintf(title, sizeof title, "%.4000s", command);
        lapse_page_text(stream, title);
    }
}

static void write_counters(struct lapse_page_stream *stream, const struct lapse_counters *c)
{
    const struct { const char *name; uint64_t value; } counters[] = {
        { "ticks", c->ticks },
        { "recorded", c->recorded },
        { "ticks merged by the kernel", c->merged_ticks },
        { "dropped, ring full", c->dropped_ring_full },
        { "cut, code being resolved", c->dropped_gate_closed },
        { "dropped, CPU time", c->dropped_weight_ns },
        { "dropped spans", c->dropped_spans },
        { "lost samples", c->lost_samples },
        { "truncated stacks", c->truncated },
        { "unwind failures", c->unwind_failures },
        { "guessed frames", c->guessed_frames },
        { "threads seen", c->threads_seen },
        { "threads not sampled", c->unsampled_threads },
        { "not sampled, CPU time", c->unsampled_ns },
        { "late ticks", c->late_ticks },
        { "rate lowered", c->rate_lowered },
        { "signal taken by the program", c->signal_taken },
        { "rule cache full", c->cache_full },
        { "write errors", c->write_errors },
        { "lapse's own handler, CPU time", c->handler_ns },
        { "lapse's own drain, CPU time", c->drain_ns },
    };
    uint32_t used = 0;
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++)
        used += counters[i].value != 0;
    lapse_page_uint(stream, used);
    for (size_t i = 0; i < sizeof counters / sizeof *counters; i++) {
        if (!counters[i].value)
            continue;
        lapse_page_text(stream, counters[i].name);
        lapse_page_uint(stream, counters[i].value);
    }
}

static void write_head(struct lapse_page_stream *stream, const struct lapse_profile *profile,
                       const struct lapse_export_options *options,
                       const struct lapse_page_times *times, uint32_t thinned)
{
    const struct lapse_profile_process *first = profile->processes;
    lapse_page_text(stream, "lapse-page-1");
    write_title(stream, profile, options);
    lapse_page_text(stream, "lapse " LAPSE_VERSION);
    lapse_page_uint(stream, profile->weight_unit == LAPSE_WEIGHT_COUNT);
    lapse_page_uint(stream, profile->period_ns);
    lapse_page_uint(stream, profile->has_times);
    lapse_page_uint(stream, profile->process_count ? first->start_realtime_ns : 0);
    lapse_page_uint(stream, times->duration_ns);
    lapse_page_uint(stream, profile->count);
    lapse_page_uint(stream, profile->weight_ns);
    lapse_page_uint(stream, options->gap_ns);
    lapse_page_uint(stream, profile->note_count + (thinned > 1) + (times->run_count > 1));
    for (uint32_t i = 0; i < profile->note_count; i++)
        lapse_page_text(stream, profile->notes[i]);
    if (thinned > 1) {
        char text[240];
        snprintf(text, sizeof text,
                 "So many samples that one stands for %u in a row wherever not all is chosen: in the "
                 "timeline, and in parts of the run, of its threads or labels. Figures of the whole "
                 "are of all samples.", thinned);
        lapse_page_text(stream, text);
    }
    if (times->run_count > 1) {
        char text[96];
        snprintf(text, sizeof text, "%u runs: the times of each are since its own start.",
                 times->run_count);
        lapse_page_text(stream, text);
    }
    write_counters(stream, &profile->counters);
}

static void write_functions(struct lapse_page_stream *stream, const struct lapse_profile *profile)
{
    lapse_page_uint(stream, profile->module_count);
    for (uint32_t i = 0; i < profile->module_count; i++) {
        lapse_page_text(stream, profile->modules[i].path);
        lapse_page_text(stream, profile->modules[i].build_id);
    }
    lapse_page_uint(stream, profile->function_count);
    for (uint32_t i = 0; i < profile->function_count; i++) {
        const struct lapse_profile_function *function = &profile->functions[i];
        lapse_page_text(stream, function->name);
        lapse_page_text(stream, function->file);
        lapse_page_uint(stream, function->line);
        lapse_page_uint(stream, function->module == LAPSE_NONE ? 0 : function->module + 1);
        lapse_page_uint(stream, function->flags);
    }
}

static void write_stacks(struct lapse_page_stream *stream, const struct lapse_profile *profile)
{
    lapse_page_uint(stream, profile->node_count);
    for (uint32_t i = 1; i < profile->node_count; i++) {
        const struct lapse_profile_node *node = &profile->nodes[i];
        lapse_page_uint(stream, i - node->parent);
        lapse_page_uint(stream, node->function);
        lapse_page_uint(stream, node->flags);
        lapse_page_uint(stream, node->call_line);
    }
    lapse_page_uint(stream, profile->leaf_count);
    for (uint32_t i = 0; i < profile->leaf_count; i++) {
        const struct lapse_profile_leaf *leaf = &profile->leaves[i];
        lapse_page_uint(stream, leaf->node);
        lapse_page_uint(stream, leaf->line);
        lapse_page_uint(stream, leaf->count);
        lapse_page_uint(stream, leaf->weight_ns);
        /* Sum of squared weights, beyond that of equal weights. */
        double weight = (double)leaf->weight_ns;
        double more = leaf->count ? leaf->squares - weight * weight / (double)leaf->count : 0;
        lapse_page_uint(stream, more >= 1 && more < 1e19 ? (uint64_t)more : 0);
    }
}

static void write_end_reason(struct lapse_page_stream *stream,
                             const struct lapse_profile_process *process)
{
    static const char *const words[] = {
        [LAPSE_END_UNKNOWN] = "ended", [LAPSE_END_EXIT] = "exit", [LAPSE_END_STOP] = "stopped",
        [LAPSE_END_EXEC] = "exec", [LAPSE_END_SIGNAL] = "signal", [LAPSE_END_SANDBOX] = "sandbox",
        [LAPSE_END_KILLED] = "killed",
    };
    char text[48];
    uint32_t reason = (uint32_t)process->end_reason;
    if (!process->ended)
        snprintf(text, sizeof text, "no end mark");
    else if (process->end_signal)
        snprintf(text, sizeof text, "signal %u", process->end_signal);
    else
        snprintf(text, sizeof text, "%s",
                 reason < sizeof words / sizeof *words ? words[reason] : words[0]);
    lapse_page_text(stream, text);
}

static void write_processes(struct lapse_page_stream *stream, const struct lapse_profile *profile,
                            const struct lapse_page_times *times)
{
    lapse_page_uint(stream, profile->process_count);
    for (uint32_t i = 0; i < profile->process_count; i++) {
        const struct lapse_profile_process *process = &profile->processes[i];
        const struct lapse_counters *c = &process->counters;
        lapse_page_uint(stream, process->pid);
        lapse_page_text(stream, process->name);
        lapse_page_text(stream, process->program);
        lapse_page_text(stream, process->command);
        lapse_page_text(stream, process->host);
        write_time(stream, times->process_base_ns[i], process->start_ns);
        write_time(stream, times->process_base_ns[i], process->end_ns);
        lapse_page_uint(stream, process->cpu_ns);
        lapse_page_uint(stream, (uint64_t)process->clock);
        lapse_page_uint(stream, process->period_ns);
        lapse_page_uint(stream, c->recorded);
        lapse_page_uint(stream, c->dropped_ring_full + c->lost_samples);
        write_end_reason(stream, process);
        lapse_page_uint(stream, process->run);
    }
}

static void write_threads(struct lapse_page_stream *stream, const struct lapse_profile *profile,
                          const struct lapse_page_times *times)
{
    lapse_page_uint(stream, profile->thread_count);
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        const struct lapse_profile_thread *thread = &profile->threads[i];
        lapse_page_uint(stream, thread->process);
        lapse_page_uint(stream, thread->tid);
        lapse_page_text(stream, thread->name);
        write_time(stream, times->thread_base_ns[i], thread->start_ns);
        write_time(stream, times->thread_base_ns[i], thread->end_ns);
        lapse_page_uint(stream, thread->cpu_ns);
        lapse_page_uint(stream, thread->unsampled);
    }
    lapse_page_uint(stream, profile->label_set_count);
    for (uint32_t i = 0; i < profile->label_set_count; i++) {
        const struct lapse_profile_label_set *set = &profile->label_sets[i];
        lapse_page_uint(stream, set->count);
        for (uint32_t j = 0; j < set->count; j++) {
            lapse_page_text(stream, set->labels[j].key);
            lapse_page_text(stream, set->labels[j].value);
        }
    }
    lapse_page_uint(stream, profile->span_count);
    for (uint32_t i = 0; i < profile->span_count; i++) {
        const struct lapse_profile_span *span = &profile->spans[i];
        lapse_page_uint(stream, span->thread);
        write_time(stream, times->thread_base_ns[span->thread], span->start_ns);
        write_time(stream, times->thread_base_ns[span->thread], span->end_ns);
        lapse_page_text(stream, span->name);
    }
}

static int write_samples(struct lapse_page_stream *stream, struct lapse_profile *profile,
                         const struct lapse_page_times *times, uint32_t thinned)
{
    struct lapse_page_samples samples;
    int error = lapse_page_samples_init(&samples, stream, profile->thread_count,
                                        times->thread_base_ns, thinned);
    if (!error && profile->has_times)
        error = lapse_profile_each_sample(profile, lapse_page_samples_add, &samples);
    if (!error)
        lapse_page_samples_finish(&samples);
    lapse_page_samples_fini(&samples);
    return error;
}

int lapse_write_html(struct lapse_profile *profile, FILE *to,
                     const struct lapse_export_options *options, char *error, size_t error_size)
{
    struct lapse_page_times times;
    int result = lapse_page_times_init(&times, profile);
    uint32_t thinned = 1;
    if (profile->has_times && profile->count > SAMPLES_ALL)
        thinned = (uint32_t)((profile->count + SAMPLES_THINNED - 1) / SAMPLES_THINNED);
    struct lapse_output output;
    struct lapse_page_stream *stream = malloc(sizeof *stream);
    int prepared = lapse_output_init(&output, to);
    if (!stream || prepared)
        result = -ENOMEM;
    if (!result)
        result = lapse_page_stream_init(stream, &output);
    if (!result) {
        lapse_output_bytes(&output, lapse_page_head, lapse_page_head_size);
        write_head(stream, profile, options, &times, thinned);
        write_functions(stream, profile);
        write_stacks(stream, profile);
        write_processes(stream, profile, &times);
        write_threads(stream, profile, &times);
        result = write_samples(stream, profile, &times, thinned);
        int ended = lapse_page_stream_fini(stream);
        result = result ? result : ended;
        lapse_output_bytes(&output, lapse_page_tail, lapse_page_tail_size);
    }
    int finished = lapse_output_finish(&output);
    result = result ? result : finished;
    lapse_output_fini(&output);
    lapse_page_times_fini(&times);
    free(stream);
    if (result)
        snprintf(error, error_size, "the page could not be written: %s", strerror(-result));
    return result;
}
