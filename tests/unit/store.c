/* SPDX-License-Identifier: MIT */
/* What the drain thread keeps: nothing that grows with the threads that ever were. */
#include "store.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct lapse_store store = { .spool = { .fd = -1 } };

static void begin(void)
{
    snprintf(store.spool.base, sizeof store.spool.base, "/tmp/lapse-store-%d", (int)getpid());
    cr_assert_eq(lapse_store_init(&store), 0);
}

static void end(void)
{
    lapse_spool_close(&store.spool);
    unlink(store.spool.path);
}

static void record(uint32_t thread, uint32_t kind, uint64_t time_ns)
{
    struct lapse_record record = { .kind = kind, .thread = thread, .tid = 1000000 + thread,
                                   .time_ns = time_ns, .weight_ns = 1000 };
    lapse_store_record(&store, &record);
}

Test(store, memory_follows_the_living_threads, .init = begin, .fini = end)
{
    enum { ALL = 30000, AT_ONCE = 50 };
    size_t mapped = 0;
    for (uint32_t thread = 1; thread <= ALL; thread++) {
        record(thread, LAPSE_RECORD_SAMPLE, thread);
        if (thread > AT_ONCE)
            record(thread - AT_ONCE, LAPSE_RECORD_THREAD_END, thread);
        if (thread % 100 == 0)
            lapse_store_write(&store);
        cr_assert_leq(store.thread_count, AT_ONCE + 100u);
        if (thread == 1000)
            mapped = store.arena.mapped;
    }
    cr_assert_eq(store.arena.mapped, mapped, "%zu bytes after 1000 threads, %zu after all", mapped,
                 store.arena.mapped);
    cr_assert_eq(store.samples, ALL);
    cr_assert_eq(store.lost_samples, 0);
    cr_assert_eq(store.write_errors, 0);
}

Test(store, living_threads_keep_what_is_theirs, .init = begin, .fini = end)
{
    /* Every second one ends, so that places change. */
    enum { ALL = 3000 };
    for (uint32_t thread = 1; thread <= ALL; thread++)
        record(thread, LAPSE_RECORD_SAMPLE, thread);
    for (uint32_t thread = 2; thread <= ALL; thread += 2)
        record(thread, LAPSE_RECORD_THREAD_END, ALL + thread);
    lapse_store_write(&store);
    cr_assert_eq(store.thread_count, ALL / 2);
    for (uint32_t thread = 1; thread <= ALL; thread += 2) {
        const struct lapse_store_thread *found = lapse_store_thread(&store, thread, 0);
        cr_assert(found->id == thread && found->start_ns == thread && found->tid == 1000000 + thread);
    }
    cr_assert_eq(store.thread_count, ALL / 2);
}

Test(store, memory_does_not_follow_the_labels, .init = begin, .fini = end)
{
    /* A label of its own for each request, for ever. */
    enum { ALL = 60000 };
    static char texts[ALL][8];
    size_t mapped = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < ALL; i++) {
        uint64_t label[2] = { (uintptr_t)"request", (uintptr_t)texts[i] };
        struct lapse_record record = { .kind = LAPSE_RECORD_SAMPLE, .thread = 1, .tid = 1, .time_ns = i + 1,
                                       .weight_ns = 1000, .labels = label, .label_count = 1 };
        uint32_t id = lapse_store_labels(&store, &record);
        cr_assert_eq(id, last + 1, "a number never means two sets");
        cr_assert_eq(lapse_store_labels(&store, &record), id);
        last = id;
        lapse_store_record(&store, &record);
        if (i % 100 == 99)
            lapse_store_write(&store);
        if (i == 10000)
            mapped = store.arena.mapped;
    }
    cr_assert_eq(store.arena.mapped, mapped, "%zu bytes after 10,000 sets, %zu after all", mapped,
                 store.arena.mapped);
}
