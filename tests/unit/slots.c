/* SPDX-License-Identifier: MIT */
/* The slot table: numbers, reuse newest first, counters that outlive their thread, many threads. */
#include "slots.h"

#include <criterion/criterion.h>
#include <pthread.h>

static void fresh(void)
{
    lapse_slots_init(64, 99);
    lapse_slots_reset(99);
}

Test(slots, taken_slots_are_apart_and_found_by_number)
{
    fresh();
    struct lapse_slot *slots[200];
    for (uint32_t i = 0; i < 200; i++) {
        slots[i] = lapse_slots_take();
        cr_assert(slots[i]);
        cr_assert_eq(lapse_slots_at(slots[i]->index), slots[i]);
        cr_assert_eq(slots[i]->thread, i + 1);
        cr_assert_eq(slots[i]->state, LAPSE_SLOT_TAKEN);
        /* Everything that is the slot's can be written without touching another. */
        for (uint32_t k = 0; k < 64; k++)
            lapse_slot_pcs(slots[i])[k] = i;
        uint64_t *stack = (uint64_t *)lapse_slot_stack_top(slots[i]);
        for (int k = 1; k <= 16384 / 8; k++)
            stack[-k] = i;
    }
    for (uint32_t i = 0; i < 200; i++) {
        cr_assert_eq(slots[i]->thread, i + 1);
        for (uint32_t k = 0; k < 64; k++)
            cr_assert_eq(lapse_slot_pcs(slots[i])[k], i);
    }
    cr_assert_eq(lapse_slots.living, 200);
}

Test(slots, the_newest_free_slot_comes_first_with_a_new_thread_number)
{
    fresh();
    struct lapse_slot *a = lapse_slots_take(), *b = lapse_slots_take();
    lapse_slots_give(a);
    lapse_slots_give(b);
    struct lapse_slot *c = lapse_slots_take(), *d = lapse_slots_take();
    cr_assert_eq(c, b);
    cr_assert_eq(d, a);
    cr_assert_eq(c->thread, 3);
    cr_assert_eq(d->thread, 4);
}

Test(slots, no_slot_beyond_the_table)
{
    fresh();
    cr_assert_null(lapse_slots_at(LAPSE_SLOT_BLOCKS * LAPSE_SLOTS_PER_BLOCK));
    cr_assert_null(lapse_slots_at(UINT32_MAX));
    cr_assert_null(lapse_slots_at(LAPSE_SLOT_BLOCKS * LAPSE_SLOTS_PER_BLOCK - 1));
}

Test(slots, counters_outlive_their_thread)
{
    struct lapse_slot_totals totals;
    fresh();
    struct lapse_slot *slot = lapse_slots_take();
    slot->counts.ticks = 5;
    slot->counts.weight = 500;
    lapse_slots_totals(&totals);
    cr_assert_eq(totals.ticks, 5);
    lapse_slots_give(slot);
    slot = lapse_slots_take();
    cr_assert_eq(slot->counts.ticks, 0);
    slot->counts.ticks = 2;
    lapse_slots_totals(&totals);
    cr_assert_eq(totals.ticks, 7);
    cr_assert_eq(totals.weight, 500);
    lapse_slots_reset(99);
    lapse_slots_totals(&totals);
    cr_assert_eq(totals.ticks, 0);
}

Test(slots, exactly_one_claims)
{
    fresh();
    struct lapse_slot *slot = lapse_slots_take();
    cr_assert_not(lapse_slots_claim(slot));
    slot->state = LAPSE_SLOT_LIVE;
    cr_assert(lapse_slots_claim(slot));
    cr_assert_not(lapse_slots_claim(slot));
}

#define THREADS 4
#define ROUNDS 20000

/* Take some, own them, give them back: two owners of one slot would see each other. */
static void *churn(void *number)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct lapse_slot *held[3];
        for (int k = 0; k < 3; k++) {
            held[k] = lapse_slots_take();
            if (!held[k] || held[k]->argument)
                return (void *)1;
            held[k]->argument = number;
        }
        for (int k = 0; k < 3; k++) {
            if (held[k]->argument != number)
                return (void *)1;
            held[k]->argument = NULL;
            lapse_slots_give(held[k]);
        }
    }
    return NULL;
}

Test(slots, threads_never_share_one)
{
    pthread_t threads[THREADS];
    fresh();
    for (long i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        cr_assert_null(failed);
    }
    cr_assert_eq(lapse_slots.living, 0);
    cr_assert_leq(lapse_slots.count, 3 * THREADS + 200);
}
