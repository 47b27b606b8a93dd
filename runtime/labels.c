/* SPDX-License-Identifier: MIT */
/* Labels and spans on their way into the recording (store.h). Context: the drain thread. A set of
 * labels is known by the addresses of its strings; the text is read when the set is first written,
 * by the kernel, so that an application which broke its promise (a plugin that is gone) costs a
 * wrong label and not the process. */
#include <stdatomic.h>
#include <string.h>

#include "annotations.h"
#include "memory.h"
#include "store.h"

void lapse_store_host_string(char *to, size_t size, uint64_t address)
{
    size_t done = 0;
    while (done + 1 < size) {
        /* Up to the end of the page: the next one may not be there. */
        size_t part = 4096 - ((address + done) & 4095);
        part = part < size - 1 - done ? part : size - 1 - done;
        size_t got = address ? lapse_memory_read(to + done, (uintptr_t)(address + done), part) : 0;
        const char *end = memchr(to + done, 0, got);
        if (end)
            return;
        done += got;
        if (got < part)
            break;
    }
    to[done] = 0;
}

static uint32_t bucket_of(const struct lapse_record *record)
{
    uint64_t hash = record->label_count;
    for (uint32_t i = 0; i < 2 * record->label_count; i++)
        hash = (hash ^ record->labels[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 40) % LAPSE_LABEL_BUCKETS;
}

uint32_t lapse_store_labels(struct lapse_store *store, const struct lapse_record *record)
{
    uint32_t count = record->label_count;
    if (!count)
        return 0;
    uint32_t *bucket = &store->label_buckets[bucket_of(record)];
    for (uint32_t place = *bucket; place; place = store->label_sets[place - 1].next) {
        const struct lapse_label_set *set = &store->label_sets[place - 1];
        if (set->count == count && !memcmp(&store->label_pairs[set->first], record->labels,
                                           count * sizeof *store->label_pairs))
            return store->label_sets_forgotten + place;
    }
    struct lapse_label_set *sets = lapse_store_grow(store, store->label_sets, &store->label_set_capacity,
                                                    store->label_set_count + 1, sizeof *sets);
    if (sets)
        store->label_sets = sets;
    struct lapse_label_pair *pairs = lapse_store_grow(store, store->label_pairs, &store->label_pair_capacity,
                                                      store->label_pair_count + count, sizeof *pairs);
    if (pairs)
        store->label_pairs = pairs;
    if (!sets || !pairs)
        return 0;
    memcpy(&pairs[store->label_pair_count], record->labels, count * sizeof *pairs);
    sets[store->label_set_count] = (struct lapse_label_set){ store->label_pair_count, count, *bucket };
    store->label_pair_count += count;
    *bucket = ++store->label_set_count;
    return store->label_sets_forgotten + *bucket;
}

void lapse_store_forget_labels(struct lapse_store *store)
{
    if (store->label_sets_written < LAPSE_LABEL_SETS_KEPT)
        return;
    store->label_sets_forgotten += store->label_set_count;
    store->label_set_count = store->label_sets_written = store->label_pair_count = 0;
    memset(store->label_buckets, 0, sizeof store->label_buckets);
}

void lapse_store_span(struct lapse_store *store, uint32_t thread, const struct lapse_record *record)
{
    struct lapse_pending_span *spans = lapse_store_grow(store, store->spans, &store->span_capacity,
                                                        store->span_count + 1, sizeof *spans);
    if (!spans) {
        atomic_fetch_add_explicit(&lapse_annotations_dropped, 1, memory_order_relaxed);
        return;
    }
    store->spans = spans;
    spans[store->span_count++] = (struct lapse_pending_span){ record->weight_ns, record->time_ns,
                                                              record->cut_cfa, thread };
}
