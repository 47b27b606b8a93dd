/* SPDX-License-Identifier: MIT */
/* The profile's builder: reads inputs, makes processes and threads of sessions, streams samples.
 * Called by every command that reads. Offline only. */
#include "profile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chunk_file.h"
#include "profile_source.h"

#define PROGRESS_SAMPLES 65536u

/* Arguments as a shell would take them back. Empty ones at the end are what a program has made of its own while
 * it called itself something else. */
static const char *join_arguments(struct lapse_strings *strings,
                                  const struct lapse_session *session)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    uint32_t count = session->argument_count;
    while (count && !*session->arguments[count - 1])
        count--;
    for (uint32_t i = 0; i < count; i++) {
        const char *argument = session->arguments[i];
        bool plain = *argument &&
                     !argument[strspn(argument, "abcdefghijklmnopqrstuvwxyz"
                                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789%+,-./:=@_^")];
        fputs(i ? " " : "", to);
        if (plain)
            fputs(argument, to);
        for (const char *at = plain ? "" : argument; *at; at++)
            fprintf(to, *at == '\'' ? "%s'\\''" : "%s%c", at == argument ? "'" : "", *at);
        if (!plain)
            fputs(*argument ? "'" : "''", to);
    }
    if (fclose(to)) {
        free(text);
        return NULL;
    }
    const char *kept = lapse_strings_keep_bytes(strings, text, size);
    free(text);
    return kept;
}

static void add_counters(struct lapse_counters *to, const struct lapse_counters *from)
{
    uint64_t *sums = (uint64_t *)to;
    const uint64_t *values = (const uint64_t *)from;
    _Static_assert(sizeof *to % sizeof *sums == 0, "only 64-bit counters");
    for (size_t i = 0; i < sizeof *to / sizeof *sums; i++)
        sums[i] += values[i];
}

/* Were they recorded together? Where recordings do not say, those of one file were. */
static bool is_same_run(const struct lapse_session *a, const struct lapse_session *b, bool one_file)
{
    if (a->run_index != b->run_index || a->variant != b->variant || a->has_run_id != b->has_run_id)
        return false;
    return a->has_run_id ? !memcmp(a->run_id, b->run_id, sizeof a->run_id) : one_file;
}

/* The last session met of the same run is most often the last of all. */
static uint32_t run_of(const struct lapse_profile *profile, const struct lapse_session *session)
{
    const struct lapse_profile_source *source = profile->source;
    uint32_t first = source->first_link[source->recording_count - 1], runs = 0;
    for (uint32_t i = profile->process_count; i-- > 0;) {
        if (is_same_run(source->links[i].session, session, i >= first))
            return profile->processes[i].run;
        runs = profile->processes[i].run >= runs ? profile->processes[i].run + 1 : runs;
    }
    return runs;
}

static int add_process(struct lapse_profile *profile, const struct lapse_session *session)
{
    struct lapse_strings *strings = &profile->source->strings;
    struct lapse_profile_process *processes =
        lapse_array_grow(profile->processes, profile->process_count, sizeof *processes);
    if (!processes)
        return -ENOMEM;
    profile->processes = processes;
    struct lapse_profile_process *process = &processes[profile->process_count];
    *process = (struct lapse_profile_process){
        .pid = session->pid,
        .session = profile->process_count,
        .run_index = session->run_index,
        .variant = session->variant,
        .start_ns = session->start_monotonic_ns,
        .start_realtime_ns = session->start_realtime_ns,
        .cpu_ns = session->user_ns + session->system_ns,
        .counters = session->counters,
        .clock = session->clock,
        .period_ns = session->period_ns,
        .ended = session->ended,
        .end_reason = session->end_reason,
        .end_signal = session->end_signal,
        .end_ns = session->ended ? session->end_ns : session->last_sample_ns,
        .program = lapse_strings_keep(strings, session->program),
        .name = lapse_strings_keep(
            strings, *session->program ? lapse_profile_last_part(session->program) : "[unknown]"),
        .command = join_arguments(strings, session),
        .host = lapse_strings_keep(strings, session->host),
        .run = run_of(profile, session),
    };
    if (!process->program || !process->name || !process->command || !process->host)
        return -ENOMEM;
    profile->process_count++;
    add_counters(&profile->counters, &session->counters);
    return 0;
}

static int add_threads(struct lapse_profile *profile, struct lapse_session_link *link,
                       uint32_t process)
{
    link->thread_base = profile->thread_count;
    for (uint32_t i = 0; i < link->session->thread_count; i++) {
        const struct lapse_recorded_thread *from = &link->session->threads[i];
        struct lapse_profile_thread *threads =
            lapse_array_grow(profile->threads, profile->thread_count, sizeof *threads);
        const char *name = lapse_strings_keep(&profile->source->strings, from->name);
        if (!threads || !name || lapse_map_put(&link->threads, from->id, profile->thread_count))
            return -ENOMEM;
        profile->threads = threads;
        threads[profile->thread_count++] = (struct lapse_profile_thread){
            .process = process, .tid = from->tid, .name = name, .start_ns = from->start_ns,
            .end_ns = from->end_ns, .cpu_ns = from->cpu_ns, .unsampled = from->unsampled,
        };
    }
    return 0;
}

/* Equal sets of different sessions are one: they are told apart by their texts, end to end. */
static uint32_t label_set(struct lapse_profile *profile, const struct lapse_label_set *set)
{
    struct lapse_profile_source *source = profile->source;
    char *text = NULL;
    size_t size = 0;
    uint32_t number = LAPSE_INDEX_NONE, index;
    FILE *to = open_memstream(&text, &size);
    if (to) {
        for (uint32_t i = 0; i < set->label_count; i++)
            fprintf(to, "%s%c%s%c", set->labels[i].key, 0, set->labels[i].value, 0);
        if (!fclose(to))
            number = lapse_strings_number(&source->label_texts, text, size);
        free(text);
    }
    if (number == LAPSE_INDEX_NONE)
        return LAPSE_NONE;
    if (lapse_map_get(&source->label_sets, number, &index))
        return index;
    struct lapse_profile_label_set *sets =
        lapse_array_grow(profile->label_sets, profile->label_set_count, sizeof *sets);
    struct lapse_profile_label *labels = calloc(set->label_count + 1, sizeof *labels);
    if (sets)
        profile->label_sets = sets;
    if (!sets || !labels || lapse_map_put(&source->label_sets, number, profile->label_set_count)) {
        free(labels);
        return LAPSE_NONE;
    }
    for (uint32_t i = 0; i < set->label_count; i++) {
        labels[i].key = lapse_strings_keep(&source->strings, set->labels[i].key);
        labels[i].value = lapse_strings_keep(&source->strings, set->labels[i].value);
        if (!labels[i].key || !labels[i].value)
            labels[i].key = labels[i].value = "";
    }
    sets[profile->label_set_count] = (struct lapse_profile_label_set){ labels, set->label_count };
    return profile->label_set_count++;
}

static int add_labels_and_spans(struct lapse_profile *profile, struct lapse_session_link *link)
{
    for (uint32_t i = 0; i < link->session->label_set_count; i++) {
        uint32_t index = label_set(profile, &link->session->label_sets[i]);
        if (index == LAPSE_NONE ||
            lapse_map_put(&link->label_sets, link->session->label_sets[i].id, index))
            return -ENOMEM;
    }
    for (uint32_t i = 0; i < link->session->span_count; i++) {
        const struct lapse_recorded_span *from = &link->session->spans[i];
        struct lapse_profile_span *spans =
            lapse_array_grow(profile->spans, profile->span_count, sizeof *spans);
        const char *name = lapse_strings_keep(&profile->source->strings, from->name);
        uint32_t thread;
        if (!spans || !name)
            return -ENOMEM;
        profile->spans = spans;
        if (!lapse_map_get(&link->threads, from->thread, &thread)) {
            profile->damage.bad_references++;
            continue;
        }
        spans[profile->span_count++] =
            (struct lapse_profile_span){ thread, from->start_ns, from->end_ns, name };
    }
    return 0;
}

static int add_session(struct lapse_profile *profile, const struct lapse_session *session)
{
    struct lapse_profile_source *source = profile->source;
    struct lapse_session_link *links =
        lapse_array_grow(source->links, source->link_count, sizeof *links);
    uint32_t nodes;
    if (!links)
        return -ENOMEM;
    source->links = links;
    struct lapse_session_link *link = &links[source->link_count];
    *link = (struct lapse_session_link){
        .session = session,
        .has_lines = session->address_count || source->options.symbolizer,
    };
    source->link_count++;
    lapse_call_tree_nodes(session->tree, &nodes);
    link->nodes = calloc(nodes + 1, sizeof *link->nodes);
    if (!link->nodes)
        return -ENOMEM;
    link->nodes[0].validity.until_ns = UINT64_MAX; /* the root of all holds always */
    if (!profile->period_ns)
        profile->period_ns = session->period_ns;
    int error = add_process(profile, session);
    if (!error)
        error = lapse_profile_add_modules(profile, link);
    if (!error)
        error = add_threads(profile, link, profile->process_count - 1);
    return error ? error : add_labels_and_spans(profile, link);
}

static int add_recording(struct lapse_profile *profile, struct lapse_recording *recording)
{
    struct lapse_profile_source *source = profile->source;
    struct lapse_recording **recordings =
        lapse_array_grow(source->recordings, source->recording_count, sizeof *recordings);
    if (recordings)
        source->recordings = recordings;
    uint32_t *first_link =
        lapse_array_grow(source->first_link, source->recording_count, sizeof *first_link);
    if (first_link)
        source->first_link = first_link;
    if (!recordings || !first_link) {
        lapse_recording_close(recording);
        return -ENOMEM;
    }
    recordings[source->recording_count] = recording;
    first_link[source->recording_count++] = source->link_count;
    profile->damage.bad_chunks += recording->damage.bad_chunks;
    profile->damage.skipped_bytes += recording->damage.skipped_bytes;
    profile->damage.cut_bytes += recording->damage.cut_bytes;
    profile->damage.bad_references += recording->damage.bad_references;
    int error = 0;
    for (uint32_t i = 0; i < recording->session_count && !error; i++)
        error = add_session(profile, &recording->sessions[i]);
    return error;
}

/* A recording shows a chunk's magic near its beginning, even when the very first bytes are damaged;
 * text has no zero bytes. What is empty is left to the reader of recordings to refuse. */
static bool looks_like_recording(int fd)
{
    char bytes[65536];
    ssize_t size = pread(fd, bytes, sizeof bytes, 0);
    return size <= 0 || lapse_recording_is(bytes, (size_t)size) || memchr(bytes, 0, (size_t)size);
}

static int add_input(struct lapse_profile *profile, const char *path, char *error,
                     size_t error_size)
{
    struct lapse_recording *recording;
    int fd = lapse_open_seekable(path);
    if (fd < 0) {
        snprintf(error, error_size, "%s: %s", path, strerror(-fd));
        return fd;
    }
    const char *name = strcmp(path, "-") ? path : "standard input";
    if (!looks_like_recording(fd)) {
        profile->source->folded_count++;
        int failed = lapse_profile_read_folded(profile, fd, name, error, error_size);
        close(fd);
        return failed;
    }
    int result = lapse_recording_open_fd(&recording, fd, name, error, error_size);
    if (result)
        return result;
    result = add_recording(profile, recording);
    if (result)
        snprintf(error, error_size, "%s: %s", name, strerror(-result));
    return result;
}

/* Samples wait until there are some: looking up their leaves one right after the other lets the processor
 * wait for several places in memory at once, and that wait is most of the cost of a sample. */
enum { WAITING = 64 };

struct sample_pass {
    struct lapse_recorded_sample waiting[WAITING];
    uint32_t waiting_count;
    struct lapse_profile *profile;
    uint32_t recording;
    uint64_t done, total, count;
    lapse_each_profile_samples *each;
    void *context;
};

static void show_progress(struct sample_pass *pass, uint32_t more)
{
    const struct lapse_profile_options *options = &pass->profile->source->options;
    uint64_t total, before = pass->count;
    pass->count += more;
    if (options->progress &&
        (!before || before / PROGRESS_SAMPLES != pass->count / PROGRESS_SAMPLES))
        options->progress(options->progress_context,
                          pass->done +
                              lapse_recording_progress(
                                  pass->profile->source->recordings[pass->recording], &total),
                          pass->total);
}

static int resolve(const struct sample_pass *pass, const struct lapse_recorded_sample *from,
                   struct lapse_profile_sample *sample)
{
    struct lapse_profile_source *source = pass->profile->source;
    struct lapse_session_link *link =
        &source->links[source->first_link[pass->recording] + from->session];
    *sample = (struct lapse_profile_sample){
        .time_ns = from->time_ns,
        .weight_ns = from->weight_ns,
        .cut_cfa = from->cut_cfa,
        .leaf =
            lapse_profile_leaf_at(pass->profile, link, from->node, from->leaf_pc, from->time_ns),
    };
    if (sample->leaf == LAPSE_NONE)
        return -ENOMEM;
    __builtin_prefetch(&pass->profile->leaves[sample->leaf]);
    sample->thread = link->thread_base + from->thread_index;
    if (sample->thread >= pass->profile->thread_count)
        return -ESTALE; /* the file has changed since it was opened */
    if (from->labels && !lapse_map_get(&link->label_sets, from->labels, &sample->labels))
        sample->labels = 0;
    return 0;
}

static int give_waiting(struct sample_pass *pass)
{
    struct lapse_profile_sample samples[WAITING];
    uint32_t count = pass->waiting_count;
    int error = 0;
    pass->waiting_count = 0;
    for (uint32_t i = 0; i < count && !error; i++)
        error = resolve(pass, &pass->waiting[i], &samples[i]);
    if (error || !count)
        return error;
    show_progress(pass, count);
    return pass->each(pass->context, samples, count);
}

static int give(void *context, const struct lapse_recorded_sample *sample)
{
    struct sample_pass *pass = context;
    struct lapse_profile_source *source = pass->profile->source;
    lapse_profile_leaf_ahead(pass->profile,
                             &source->links[source->first_link[pass->recording] + sample->session],
                             sample->node, sample->leaf_pc);
    pass->waiting[pass->waiting_count++] = *sample;
    return pass->waiting_count == WAITING ? give_waiting(pass) : 0;
}

static int each_samples(struct lapse_profile *profile, lapse_each_profile_samples *each,
                        void *context)
{
    struct lapse_profile_source *source = profile->source;
    struct sample_pass pass = { .profile = profile, .each = each, .context = context };
    uint64_t size;
    int error = 0;
    for (uint32_t i = 0; i < source->recording_count; i++) {
        lapse_recording_progress(source->recordings[i], &size);
        pass.total += size;
    }
    for (pass.recording = 0; pass.recording < source->recording_count && !error; pass.recording++) {
        error = lapse_recording_each_sample(source->recordings[pass.recording], give, &pass);
        if (!error)
            error = give_waiting(&pass);
        lapse_recording_progress(source->recordings[pass.recording], &size);
        pass.done += size;
    }
    if (source->options.progress && !error && pass.total)
        source->options.progress(source->options.progress_context, pass.total, pass.total);
    return error;
}

int lapse_profile_each_samples(struct lapse_profile *profile, lapse_each_profile_samples *each,
                               void *context)
{
    return profile->has_times ? each_samples(profile, each, context) : -ENOTSUP;
}

struct one_by_one { lapse_each_profile_sample *each; void *context; };

static int give_each(void *context, const struct lapse_profile_sample *samples, uint32_t count)
{
    const struct one_by_one *one_by_one = context;
    int error = 0;
    for (uint32_t i = 0; i < count && !error; i++)
        error = one_by_one->each(one_by_one->context, &samples[i]);
    return error;
}

int lapse_profile_each_sample(struct lapse_profile *profile, lapse_each_profile_sample *each,
                              void *context)
{
    return lapse_profile_each_samples(profile, give_each, &(struct one_by_one){ each, context });
}

static void count_sample(struct lapse_profile *profile, const struct lapse_profile_sample *sample)
{
    struct lapse_profile_leaf *leaf = &profile->leaves[sample->leaf];
    struct lapse_profile_thread *thread = &profile->threads[sample->thread];
    leaf->count++;
    leaf->weight_ns += sample->weight_ns;
    leaf->squares += (double)sample->weight_ns * (double)sample->weight_ns;
    thread->count++;
    thread->weight_ns += sample->weight_ns;
    if (!profile->first_ns || sample->time_ns < profile->first_ns)
        profile->first_ns = sample->time_ns;
    if (sample->time_ns > profile->last_ns)
        profile->last_ns = sample->time_ns;
}

static int count_samples(void *context, const struct lapse_profile_sample *samples, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        count_sample(context, &samples[i]);
    return 0;
}

/* Recordings next to folded text: weights in samples of one period, which is what such text has. */
static void convert_to_counts(struct lapse_profile *profile, const uint64_t *folded_weights,
                              uint32_t folded_leaves)
{
    double period = profile->period_ns ? (double)profile->period_ns : 1;
    for (uint32_t i = 0; i < profile->leaf_count; i++) {
        struct lapse_profile_leaf *leaf = &profile->leaves[i];
        uint64_t folded = i < folded_leaves ? folded_weights[i] : 0;
        uint64_t samples = (uint64_t)((double)(leaf->weight_ns - folded) / period + 0.5);
        leaf->squares = (double)(folded + samples);
        leaf->weight_ns = leaf->count = folded + samples;
    }
}

static int count_all(struct lapse_profile *profile)
{
    uint32_t folded_leaves = profile->leaf_count;
    uint64_t *folded_weights = malloc((folded_leaves + 1) * sizeof *folded_weights);
    if (!folded_weights)
        return -ENOMEM;
    for (uint32_t i = 0; i < folded_leaves; i++)
        folded_weights[i] = profile->leaves[i].weight_ns;
    int error = each_samples(profile, count_samples, profile);
    if (!error && profile->source->folded_count) {
        if (profile->source->recording_count)
            convert_to_counts(profile, folded_weights, folded_leaves);
        else
            profile->period_ns = 0;
        profile->weight_unit = LAPSE_WEIGHT_COUNT;
    }
    free(folded_weights);
    profile->has_times = !profile->source->folded_count;
    for (uint32_t i = 0; i < profile->leaf_count; i++) {
        profile->count += profile->leaves[i].count;
        profile->weight_ns += profile->leaves[i].weight_ns;
    }
    return error;
}

static int create(struct lapse_profile **out, const struct lapse_profile_options *options)
{
    static const struct lapse_label_set empty = { 0 };
    struct lapse_profile *profile = calloc(1, sizeof *profile);
    struct lapse_profile_source *source = calloc(1, sizeof *source);
    if (!profile || !source) {
        free(profile);
        free(source);
        return -ENOMEM;
    }
    *out = profile;
    profile->source = source;
    if (options)
        source->options = *options;
    profile->nodes = lapse_array_grow(NULL, 0, sizeof *profile->nodes);
    if (!profile->nodes || label_set(profile, &empty) != 0)
        return -ENOMEM;
    profile->nodes[0] = (struct lapse_profile_node){ .function = LAPSE_NONE };
    profile->node_count = 1;
    return 0;
}

int lapse_profile_open(struct lapse_profile **out, const char *const *paths, uint32_t count,
                       const struct lapse_profile_options *options, char *error, size_t error_size)
{
    struct lapse_profile *profile = NULL;
    const char *cause = count ? paths[0] : "profile";
    int result = create(&profile, options);
    if (result)
        snprintf(error, error_size, "%s: %s", cause, strerror(-result));
    for (uint32_t i = 0; i < count && !result; i++)
        result = add_input(profile, cause = paths[i], error, error_size);
    if (!result) {
        result = count_all(profile);
        if (!result)
            result = lapse_profile_add_notes(profile);
        if (result)
            snprintf(error, error_size, "%s: %s", cause, strerror(-result));
    }
    *out = profile;
    if (result) {
        lapse_profile_close(profile);
        *out = NULL;
    }
    return result;
}

static void free_link(struct lapse_session_link *link)
{
    free(link->modules);
    free(link->nodes);
    free(link->leaves);
    free(link->near_leaves);
    free(link->functions);
    free(link->frames);
    lapse_index_free(&link->leaf_index);
    lapse_map_free(&link->function_map);
    lapse_map_free(&link->frame_map);
    lapse_map_free(&link->threads);
    lapse_map_free(&link->label_sets);
}

static void free_source(struct lapse_profile_source *source)
{
    for (uint32_t i = 0; i < source->link_count; i++)
        free_link(&source->links[i]);
    for (uint32_t i = 0; i < source->recording_count; i++)
        lapse_recording_close(source->recordings[i]);
    lapse_strings_free(&source->strings);
    lapse_strings_free(&source->label_texts);
    lapse_map_free(&source->label_sets);
    lapse_index_free(&source->functions);
    lapse_index_free(&source->nodes);
    lapse_index_free(&source->leaves);
    lapse_index_free(&source->modules);
    free(source->positions);
    free(source->recordings);
    free(source->first_link);
    free(source->links);
    free(source);
}

void lapse_profile_close(struct lapse_profile *profile)
{
    if (!profile)
        return;
    for (uint32_t i = 0; i < profile->label_set_count; i++)
        free((void *)profile->label_sets[i].labels);
    free_source(profile->source);
    free(profile->modules);
    free(profile->functions);
    free(profile->nodes);
    free(profile->leaves);
    free(profile->processes);
    free(profile->threads);
    free(profile->label_sets);
    free(profile->spans);
    free(profile->notes);
    free(profile);
}
