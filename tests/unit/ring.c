/* SPDX-License-Identifier: MIT */
/* The ring on sizes of 8 to 64 words: exact contents, full and empty, the wrap of positions, stalled
 * producers, hostile words. One thread; tests/stress has the threads. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

struct rig {
    struct lapse_ring ring;
    void *memory;
    uint64_t scratch[64];
};

static void open_rig(struct rig *rig, uint64_t words, uint64_t start)
{
    memset(rig, 0, sizeof *rig);
    rig->memory = aligned_alloc(4096, LAPSE_RING_CONTROL_SIZE + 4096);
    cr_assert(rig->memory);
    memset(rig->memory, 0, LAPSE_RING_CONTROL_SIZE + 4096);
    cr_assert_eq(lapse_ring_init(&rig->ring, rig->memory, words, start), 0);
}

static void close_rig(struct rig *rig)
{
    cr_assert(lapse_ring_is_valid(&rig->ring));
    free(rig->memory);
}

static const uint64_t pcs[10] = { 0xa0, 0xa1, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9 };

static struct lapse_record sample(uint64_t time, uint32_t depth)
{
    return (struct lapse_record){ .kind = LAPSE_RECORD_SAMPLE, .flags = LAPSE_RECORD_TRUNCATED,
        .thread = 7, .tid = 4711, .time_ns = time, .weight_ns = 5000, .cut_cfa = 0xc0,
        .pcs = pcs, .depth = depth };
}

static int pop(struct rig *rig, struct lapse_record *record)
{
    return lapse_ring_pop(&rig->ring, record, rig->scratch, 64);
}

static void expect(struct rig *rig, uint64_t time, uint32_t depth)
{
    struct lapse_record record;
    cr_assert_eq(pop(rig, &record), 1);
    cr_assert_eq(record.kind, LAPSE_RECORD_SAMPLE);
    cr_assert_eq(record.flags, LAPSE_RECORD_TRUNCATED);
    cr_assert_eq(record.thread, 7);
    cr_assert_eq(record.tid, 4711);
    cr_assert_eq(record.label_count, 0);
    cr_assert_eq(record.time_ns, time);
    cr_assert_eq(record.weight_ns, 5000);
    cr_assert_eq(record.cut_cfa, 0xc0);
    cr_assert_eq(record.depth, depth);
    cr_assert_arr_eq(record.pcs, pcs, depth * sizeof *pcs);
}

Test(ring, refuses_sizes_that_are_no_power_of_two)
{
    struct rig rig;
    open_rig(&rig, 64, 0);
    cr_assert_eq(lapse_ring_init(&rig.ring, rig.memory, 48, 0), -EINVAL);
    cr_assert_eq(lapse_ring_init(&rig.ring, rig.memory, 4, 0), -EINVAL);
    cr_assert_eq(lapse_ring_init(&rig.ring, rig.memory, 0, 0), -EINVAL);
    cr_assert_eq(lapse_ring_init(&rig.ring, rig.memory, 64, 0), 0);
    close_rig(&rig);
}

Test(ring, empty_gives_nothing)
{
    struct rig rig;
    struct lapse_record record;
    open_rig(&rig, 16, 0);
    cr_assert_eq(pop(&rig, &record), 0);
    cr_assert_eq(lapse_ring_used(&rig.ring), 0);
    close_rig(&rig);
}

Test(ring, words_lie_as_specified)
{
    struct rig rig;
    open_rig(&rig, 16, 0);
    struct lapse_record record = sample(99, 2);
    cr_assert_eq(lapse_ring_push(&rig.ring, &record), 0);
    const uint64_t *words = (const uint64_t *)((char *)rig.memory + LAPSE_RING_CONTROL_SIZE);
    const uint64_t wanted[9] = { 8 | 1 << 16 | 1 << 24 | UINT64_C(0x9e3779b9) << 32, 99,
                                 7 | UINT64_C(4711) << 32, 5000, 0, 0xc0, 0xa0, 0xa1, 0 };
    cr_assert_arr_eq(words, wanted, sizeof wanted);
    expect(&rig, 99, 2);
    close_rig(&rig);
}

Test(ring, labels_follow_the_stack)
{
    struct rig rig;
    static const uint64_t labels[4] = { 0xb0, 0xb1, 0xb2, 0xb3 };
    open_rig(&rig, 16, 10);
    struct lapse_record record = sample(99, 3), out;
    record.labels = labels;
    record.label_count = 2;
    cr_assert_eq(lapse_ring_push(&rig.ring, &record), 0);
    cr_assert_eq(pop(&rig, &out), 1);
    cr_assert_eq(out.depth, 3);
    cr_assert_eq(out.label_count, 2);
    cr_assert_arr_eq(out.pcs, pcs, 3 * sizeof *pcs);
    cr_assert_arr_eq(out.labels, labels, sizeof labels);
    close_rig(&rig);
}

Test(ring, full_then_drain)
{
    struct rig rig;
    struct lapse_record record;
    open_rig(&rig, 16, 0);
    struct lapse_record a = sample(1, 2), b = sample(2, 2), c = sample(3, 0);
    cr_assert_eq(lapse_ring_push(&rig.ring, &a), 0);
    cr_assert_eq(lapse_ring_push(&rig.ring, &b), 0);
    cr_assert_eq(lapse_ring_used(&rig.ring), 16);
    cr_assert_eq(lapse_ring_push(&rig.ring, &c), -ENOBUFS);
    expect(&rig, 1, 2);
    cr_assert_eq(lapse_ring_push(&rig.ring, &c), 0);
    expect(&rig, 2, 2);
    expect(&rig, 3, 0);
    cr_assert_eq(pop(&rig, &record), 0);
    close_rig(&rig);
}

Test(ring, nothing_is_written_behind_the_limit)
{
    struct rig rig;
    struct lapse_record record;
    open_rig(&rig, 64, 0);
    struct lapse_record a = sample(1, 2), b = sample(2, 2), c = sample(3, 0);
    atomic_store(&rig.ring.limit, 14);
    cr_assert_eq(lapse_ring_push(&rig.ring, &a), 0);
    cr_assert_eq(lapse_ring_push(&rig.ring, &b), -ENOBUFS);
    cr_assert_eq(lapse_ring_push(&rig.ring, &c), 0);
    expect(&rig, 1, 2);
    expect(&rig, 3, 0);
    cr_assert_eq(lapse_ring_push(&rig.ring, &c), -ENOBUFS, "handing back does not move the limit");
    atomic_store(&rig.ring.limit, LAPSE_RING_NO_LIMIT);
    for (int i = 0; i < 64; i++) {
        cr_assert_eq(lapse_ring_push(&rig.ring, &b), 0);
        expect(&rig, 2, 2);
    }
    cr_assert_eq(pop(&rig, &record), 0);
    close_rig(&rig);
}

Test(ring, a_record_larger_than_the_ring_is_refused)
{
    struct rig rig;
    open_rig(&rig, 8, 0);
    struct lapse_record record = sample(1, 3);
    cr_assert_eq(lapse_ring_push(&rig.ring, &record), -ENOBUFS);
    record.depth = 2;
    cr_assert_eq(lapse_ring_push(&rig.ring, &record), 0);
    expect(&rig, 1, 2);
    close_rig(&rig);
}

Test(ring, records_wrap_at_every_offset)
{
    struct rig rig;
    open_rig(&rig, 16, 0);
    for (uint32_t i = 0; i < 200; i++) {
        struct lapse_record record = sample(i, i % 10);
        cr_assert_eq(lapse_ring_push(&rig.ring, &record), 0);
        expect(&rig, i, i % 10);
        cr_assert(lapse_ring_is_valid(&rig.ring));
    }
    close_rig(&rig);
}

/* From every place before it: a record may begin at the very last position. */
Test(ring, positions_run_over_their_end)
{
    struct rig rig;
    for (uint64_t before = 0; before < 64; before++) {
        open_rig(&rig, 64, UINT64_MAX - before);
        for (uint32_t i = 0; i < 8; i++) {
            struct lapse_record a = sample(2 * i, i % 10), b = sample(2 * i + 1, 9 - i % 10);
            cr_assert_eq(lapse_ring_push(&rig.ring, &a), 0);
            cr_assert_eq(lapse_ring_push(&rig.ring, &b), 0);
            expect(&rig, 2 * i, i % 10);
            expect(&rig, 2 * i + 1, 9 - i % 10);
        }
        close_rig(&rig);
    }
}

Test(ring, full_at_the_end_of_positions)
{
    struct rig rig;
    open_rig(&rig, 16, UINT64_MAX - 3);
    struct lapse_record record = sample(1, 2);
    cr_assert_eq(lapse_ring_push(&rig.ring, &record), 0);
    cr_assert_eq(lapse_ring_push(&rig.ring, &record), 0);
    cr_assert_eq(lapse_ring_push(&rig.ring, &record), -ENOBUFS);
    expect(&rig, 1, 2);
    expect(&rig, 1, 2);
    close_rig(&rig);
}

Test(ring, a_stalled_producer_delays_the_consumer_only)
{
    struct rig rig;
    struct lapse_record record, slow = sample(1, 1), quick = sample(2, 1);
    open_rig(&rig, 32, 0);
    uint64_t position;
    cr_assert(lapse_ring_reserve(&rig.ring, LAPSE_RECORD_FIXED + 1, &position));
    cr_assert_eq(position, 0);
    cr_assert_eq(lapse_ring_push(&rig.ring, &quick), 0);
    cr_assert_eq(pop(&rig, &record), 0);
    cr_assert_eq(lapse_ring_push(&rig.ring, &quick), 0);
    lapse_ring_commit(&rig.ring, position, &slow);
    expect(&rig, 1, 1);
    expect(&rig, 2, 1);
    expect(&rig, 2, 1);
    close_rig(&rig);
}

Test(ring, words_that_are_no_record_are_thrown_away)
{
    struct rig rig;
    struct lapse_record record, good = sample(1, 2);
    open_rig(&rig, 32, 0);
    uint64_t *words = (uint64_t *)((char *)rig.memory + LAPSE_RING_CONTROL_SIZE);
    const uint64_t hostile[] = {
        UINT64_MAX, 1, lapse_ring_header(0, 5, 1, 0),     /* shorter than a record */
        lapse_ring_header(0, 40, 1, 0),                   /* longer than what is there */
        lapse_ring_header(0, 0xffff, 1, 0), lapse_ring_header(8, 8, 1, 0), /* of another position */
    };
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        lapse_ring_init(&rig.ring, rig.memory, 32, 0);
        memset(words, 0, 32 * sizeof *words);
        cr_assert_eq(lapse_ring_push(&rig.ring, &good), 0);
        words[0] = hostile[i];
        cr_assert_eq(pop(&rig, &record), -EBADMSG, "case %zu", i);
        cr_assert_eq(lapse_ring_used(&rig.ring), 0);
        cr_assert(lapse_ring_is_valid(&rig.ring));
        cr_assert_eq(lapse_ring_push(&rig.ring, &good), 0);
        expect(&rig, 1, 2);
    }
    close_rig(&rig);
}

Test(ring, random_traffic_is_kept_in_order)
{
    struct rig rig;
    uint64_t seed = 12345, next_in = 1, next_out = 1, dropped = 0;
    open_rig(&rig, 64, UINT64_MAX - 1000);
    for (int i = 0; i < 20000; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        struct lapse_record record = sample(next_in, (uint32_t)(seed >> 60) % 10);
        if (seed >> 40 & 1) {
            if (lapse_ring_push(&rig.ring, &record) == 0)
                next_in++;
            else
                dropped++;
        } else if (pop(&rig, &record) == 1) {
            cr_assert_eq(record.time_ns, next_out++);
        }
    }
    cr_assert_gt(dropped, 0);
    cr_assert_gt(next_out, 1000);
    close_rig(&rig);
}
