/* SPDX-License-Identifier: MIT */
/* Samples on their way into the page: blocks of columns, so that like stands with like and deflates
 * well. Memory: one block, and a few words a thread. Used by html.c only; offline; one owner. */
#ifndef LAPSE_EXPORT_PAGE_SAMPLES_H
#define LAPSE_EXPORT_PAGE_SAMPLES_H

#include "page_stream.h"
#include "profile.h"

enum { LAPSE_PAGE_BLOCK = 16384 };

struct lapse_page_samples {
    struct lapse_page_stream *stream;
    const uint64_t *base_ns; /* by thread: what its times are relative to; the caller's */
    struct lapse_page_thread *threads;
    struct lapse_page_sample *block;
    uint32_t thread_count, size;
    uint32_t thinned; /* one sample of a thread stands for so many in a row; 1: all are kept */
    uint64_t written;
};

int lapse_page_samples_init(struct lapse_page_samples *samples, struct lapse_page_stream *stream,
                            uint32_t thread_count, const uint64_t *base_ns, uint32_t thinned);
/* Of the form that lapse_profile_each_sample calls. */
int lapse_page_samples_add(void *samples, const struct lapse_profile_sample *sample);
/* Write what is left and the end mark. */
void lapse_page_samples_finish(struct lapse_page_samples *samples);
void lapse_page_samples_fini(struct lapse_page_samples *samples);

#endif
