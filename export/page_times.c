/* SPDX-License-Identifier: MIT */
/* See page_times.h. */
#include "page_times.h"

#include <errno.h>
#include <stdlib.h>

static void begin(uint64_t *base_ns, uint64_t time_ns)
{
    if (time_ns && (!*base_ns || time_ns < *base_ns))
        *base_ns = time_ns;
}

static void end(struct lapse_page_times *times, uint64_t base_ns, uint64_t time_ns)
{
    if (time_ns > base_ns && time_ns - base_ns > times->duration_ns)
        times->duration_ns = time_ns - base_ns;
}

static void find_bases(struct lapse_page_times *times, const struct lapse_profile *profile,
                       uint64_t *runs)
{
    for (uint32_t i = 0; i < profile->process_count; i++)
        begin(&runs[profile->processes[i].run], profile->processes[i].start_ns);
    for (uint32_t i = 0; i < profile->thread_count; i++)
        begin(&runs[profile->processes[profile->threads[i].process].run],
              profile->threads[i].start_ns);
    for (uint32_t i = 0; i < profile->span_count; i++) {
        uint32_t process = profile->threads[profile->spans[i].thread].process;
        begin(&runs[profile->processes[process].run], profile->spans[i].start_ns);
    }
    /* A run alone begins with its first sample at the latest; of one among others nothing else is known. */
    for (uint32_t i = 0; i < times->run_count; i++)
        if (times->run_count == 1 || !runs[i])
            begin(&runs[i], profile->first_ns);
    for (uint32_t i = 0; i < profile->process_count; i++)
        times->process_base_ns[i] = runs[profile->processes[i].run];
    for (uint32_t i = 0; i < profile->thread_count; i++)
        times->thread_base_ns[i] = times->process_base_ns[profile->threads[i].process];
}

static void find_duration(struct lapse_page_times *times, const struct lapse_profile *profile)
{
    for (uint32_t i = 0; i < profile->process_count; i++)
        end(times, times->process_base_ns[i], profile->processes[i].end_ns);
    for (uint32_t i = 0; i < profile->thread_count; i++)
        end(times, times->thread_base_ns[i], profile->threads[i].end_ns);
    for (uint32_t i = 0; i < profile->span_count; i++)
        end(times, times->thread_base_ns[profile->spans[i].thread], profile->spans[i].end_ns);
    if (times->run_count == 1 && profile->process_count)
        end(times, times->process_base_ns[0], profile->last_ns);
}

int lapse_page_times_init(struct lapse_page_times *times, const struct lapse_profile *profile)
{
    *times = (struct lapse_page_times){
        .process_base_ns = calloc(profile->process_count + 1u, sizeof *times->process_base_ns),
        .thread_base_ns = calloc(profile->thread_count + 1u, sizeof *times->thread_base_ns),
    };
    for (uint32_t i = 0; i < profile->process_count; i++)
        if (profile->processes[i].run >= times->run_count)
            times->run_count = profile->processes[i].run + 1;
    uint64_t *runs = calloc(times->run_count + 1u, sizeof *runs);
    bool ready = runs && times->process_base_ns && times->thread_base_ns;
    if (ready && profile->has_times) {
        find_bases(times, profile, runs);
        find_duration(times, profile);
    }
    free(runs);
    return ready ? 0 : -ENOMEM;
}

void lapse_page_times_fini(struct lapse_page_times *times)
{
    free(times->process_base_ns);
    free(times->thread_base_ns);
    *times = (struct lapse_page_times){ 0 };
}
