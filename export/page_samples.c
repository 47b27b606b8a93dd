/* SPDX-License-Identifier: MIT */
/* See page_samples.h. The columns of a block, in order: threads, label sets and numbers of samples
 * as runs (length, value); times as differences within a thread; leaves; weights as differences
 * within a thread. The reader is readSamples in page/data.js. */
#include "page_samples.h"

#include <errno.h>
#include <stdlib.h>

#include "wire.h"

struct lapse_page_sample {
    uint64_t time, weight;
    uint32_t thread, leaf, labels, number;
};

struct lapse_page_thread {
    struct lapse_page_sample open; /* stands for `seen` samples; 0: none */
    uint64_t last_time, last_weight;
    uint64_t chance; /* of the choice among them */
    uint32_t seen;
};

int lapse_page_samples_init(struct lapse_page_samples *samples, struct lapse_page_stream *stream,
                            uint32_t thread_count, const uint64_t *base_ns, uint32_t thinned)
{
    *samples = (struct lapse_page_samples){
        .stream = stream, .base_ns = base_ns, .thinned = thinned, .thread_count = thread_count,
        .threads = calloc(thread_count ? thread_count : 1, sizeof *samples->threads),
        .block = malloc(LAPSE_PAGE_BLOCK * sizeof *samples->block),
    };
    return samples->threads && samples->block ? 0 : -ENOMEM;
}

void lapse_page_samples_fini(struct lapse_page_samples *samples)
{
    free(samples->threads);
    free(samples->block);
}

static void write_difference(struct lapse_page_stream *stream, uint64_t value, uint64_t *last)
{
    int64_t by = (int64_t)(value - *last);
    lapse_page_uint(stream, (uint64_t)by << 1 ^ (uint64_t)(by >> 63));
    *last = value;
}

static uint32_t thread_of(const struct lapse_page_sample *sample) { return sample->thread; }
static uint32_t labels_of(const struct lapse_page_sample *sample) { return sample->labels; }
static uint32_t number_of(const struct lapse_page_sample *sample) { return sample->number; }

static void write_runs(struct lapse_page_samples *samples,
                       uint32_t (*value_of)(const struct lapse_page_sample *))
{
    for (uint32_t from = 0, to; from < samples->size; from = to) {
        uint32_t value = value_of(&samples->block[from]);
        for (to = from + 1; to < samples->size && value_of(&samples->block[to]) == value; to++)
            ;
        lapse_page_uint(samples->stream, to - from);
        lapse_page_uint(samples->stream, value);
    }
}

static void write_block(struct lapse_page_samples *samples)
{
    const struct lapse_page_sample *block = samples->block;
    lapse_page_uint(samples->stream, samples->size);
    write_runs(samples, thread_of);
    write_runs(samples, labels_of);
    write_runs(samples, number_of);
    for (uint32_t i = 0; i < samples->size; i++)
        write_difference(samples->stream, block[i].time,
                         &samples->threads[block[i].thread].last_time);
    for (uint32_t i = 0; i < samples->size; i++)
        lapse_page_uint(samples->stream, block[i].leaf);
    for (uint32_t i = 0; i < samples->size; i++)
        write_difference(samples->stream, block[i].weight,
                         &samples->threads[block[i].thread].last_weight);
    samples->written += samples->size;
    samples->size = 0;
}

static void close_open(struct lapse_page_samples *samples, struct lapse_page_thread *thread)
{
    if (!thread->seen)
        return;
    samples->block[samples->size++] = thread->open;
    thread->seen = 0;
    if (samples->size == LAPSE_PAGE_BLOCK)
        write_block(samples);
}

/* Is the new one of those that a sample stands for to take its place? With the probability of its
 * share of their weight, so that sums over a part of the run are right on average. The same profile
 * makes the same choices. */
static bool takes_over(struct lapse_page_thread *thread, uint64_t weight)
{
    uint64_t x = thread->chance + 0x9e3779b97f4a7c15u;
    thread->chance = x;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (x ^ x >> 31) % (thread->open.weight + weight) < weight;
}

int lapse_page_samples_add(void *context, const struct lapse_profile_sample *sample)
{
    struct lapse_page_samples *samples = context;
    if (sample->thread >= samples->thread_count)
        return 0;
    struct lapse_page_thread *thread = &samples->threads[sample->thread];
    struct lapse_page_sample *open = &thread->open;
    uint64_t base_ns = samples->base_ns[sample->thread];
    if (thread->seen == samples->thinned)
        close_open(samples, thread);
    if (!thread->seen)
        *open = (struct lapse_page_sample){ .thread = sample->thread, .leaf = sample->leaf,
                                            .labels = sample->labels, .number = 1 };
    else if (sample->weight_ns && takes_over(thread, sample->weight_ns)) {
        open->leaf = sample->leaf;
        open->labels = sample->labels;
    }
    /* The last time, not the first: a weight stands for the time before its sample. */
    open->time = sample->time_ns > base_ns ? sample->time_ns - base_ns : 0;
    open->weight += sample->weight_ns;
    thread->seen++;
    return 0;
}

void lapse_page_samples_finish(struct lapse_page_samples *samples)
{
    for (uint32_t i = 0; i < samples->thread_count; i++)
        close_open(samples, &samples->threads[i]);
    if (samples->size)
        write_block(samples);
    lapse_page_uint(samples->stream, 0);
}
