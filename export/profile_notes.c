/* SPDX-License-Identifier: MIT */
/* The profile's builder: what was lost, as lines ready to print. Offline only. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "profile_source.h"

#define NOTE_BYTES 512

__attribute__((format(printf, 2, 3)))
static int note(struct lapse_profile *profile, const char *format, ...)
{
    char text[NOTE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *kept = lapse_strings_keep(&profile->source->strings, text);
    for (uint32_t i = 0; i < profile->note_count; i++)
        if (profile->notes[i] == kept)
            return 0;
    const char **notes = lapse_array_grow(profile->notes, profile->note_count, sizeof *notes);
    if (!notes || !kept)
        return -ENOMEM;
    profile->notes = notes;
    notes[profile->note_count++] = kept;
    return 0;
}

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static int loss_notes(struct lapse_profile *profile)
{
    const struct lapse_counters *lost = &profile->counters;
    int error = 0;
    if (lost->dropped_ring_full || lost->dropped_weight_ns)
        error |= note(profile, "%" PRIu64 " samples dropped (buffer full), %.3f s of CPU time",
                      lost->dropped_ring_full, seconds(lost->dropped_weight_ns));
    if (lost->dropped_gate_closed)
        error |= note(profile, "%" PRIu64 " stacks cut while another thread resolved code: below [unwind failed]",
                      lost->dropped_gate_closed);
    if (lost->dropped_spans)
        error |= note(profile, "%" PRIu64 " spans dropped (buffer full, or nested too deep)", lost->dropped_spans);
    if (lost->late_ticks)
        error |= note(profile, "ticks that were due when their thread ended: %" PRIu64 ", shown as [not sampled]",
                      lost->late_ticks);
    if (lost->truncated)
        error |= note(profile, "%" PRIu64 " stacks cut at the depth limit: below [truncated]",
                      lost->truncated);
    if (lost->unwind_failures)
        error |= note(profile, "%" PRIu64 " stacks without their outer frames: below [unwind failed]",
                      lost->unwind_failures);
    if (lost->unsampled_threads)
        error |= note(profile, "%" PRIu64 " threads were not sampled, since no timer was to be had or they block the "
                      "signal by raw system calls: %.3f s of CPU time, shown as [not sampled]",
                      lost->unsampled_threads, seconds(lost->unsampled_ns));
    if (lost->lost_samples || lost->write_errors)
        error |= note(profile, "%" PRIu64 " samples could not be written (%" PRIu64 " failed writes)",
                      lost->lost_samples, lost->write_errors);
    if (lost->unread_modules)
        error |= note(profile, "%" PRIu64 " modules could not be read at exit: their files had changed or were gone",
                      lost->unread_modules);
    if (lost->before_ns)
        error |= note(profile, "%.3f s of CPU time had been used before sampling began, by loading or by an "
                      "earlier program of the process: in no sample here", seconds(lost->before_ns));
    if (lost->signal_taken)
        error |= note(profile, "the program set its own handler for the signal %" PRIu64 " times by raw "
                      "system calls: ticks until it was taken back are [not sampled]", lost->signal_taken);
    if (lost->rate_lowered)
        error |= note(profile, "the rate of %" PRIu64 " threads was lowered to bound the cost",
                      lost->rate_lowered);
    if (lost->guessed_frames)
        error |= note(profile, "%" PRIu64 " frames were found without unwind information: guessed",
                      lost->guessed_frames);
    return error;
}

static int damage_notes(struct lapse_profile *profile)
{
    const struct lapse_damage *damage = &profile->damage;
    int error = 0;
    if (damage->cut_bytes)
        error |= note(profile, "the file ends in the middle of a chunk: %" PRIu64 " bytes not read",
                      damage->cut_bytes);
    if (damage->bad_chunks || damage->skipped_bytes)
        error |= note(profile, "the file is damaged: %" PRIu64 " chunks and %" PRIu64
                      " bytes skipped", damage->bad_chunks, damage->skipped_bytes);
    if (damage->bad_references)
        error |= note(profile, "%" PRIu64 " samples or stacks refer to lost parts of the file: left out",
                      damage->bad_references);
    return error;
}

static int process_notes(struct lapse_profile *profile)
{
    uint32_t open = 0;
    int error = 0;
    for (uint32_t i = 0; i < profile->process_count; i++) {
        const struct lapse_session *session = profile->source->links[i].session;
        open += !profile->processes[i].ended;
        for (uint32_t k = 0; k < session->note_count; k++)
            error |= note(profile, "%.200s (%u): %s", profile->processes[i].name,
                          profile->processes[i].pid, session->notes[k]);
    }
    if (open)
        error |= note(profile, "%u of %u processes without an end mark (killed or still running): up to "
                      "their last written samples", open, profile->process_count);
    return error;
}

/* Under the CPU clock samples, and what was used before them, are all of it but for what nobody could see. */
static int tree_note(struct lapse_profile *profile)
{
    uint64_t tree_ns = 0, known_ns = profile->weight_ns + profile->counters.before_ns + profile->counters.dropped_weight_ns;
    for (uint32_t i = 0; i < profile->process_count; i++) {
        tree_ns += profile->source->links[i].session->tree_ns;
        if (profile->processes[i].clock != LAPSE_RECORDED_CPU)
            return 0;
    }
    if (tree_ns <= known_ns || tree_ns - known_ns < tree_ns / 200) /* half a percent is sampling's own error */
        return 0;
    return note(profile, "%.3f s of %.3f s of CPU time lie in no profile: the kernel's end of processes, programs "
                "that lapse could not be loaded into, or that were paused", seconds(tree_ns - known_ns), seconds(tree_ns));
}

int lapse_profile_add_notes(struct lapse_profile *profile)
{
    return loss_notes(profile) || tree_note(profile) || damage_notes(profile) || process_notes(profile) ? -ENOMEM : 0;
}
