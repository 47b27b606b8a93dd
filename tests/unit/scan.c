/* SPDX-License-Identifier: MIT */
/* A thread that a scan found while it was starting has two slots for a moment, and must not keep
 * them: its CPU time would count twice. */
#include <criterion/criterion.h>

#include "drain.h"
#include "slots.h"

static struct lapse_slot *living(int32_t tid, bool adopted)
{
    struct lapse_slot *slot = lapse_slots_take();
    atomic_store(&slot->tid, tid);
    atomic_store(&slot->adopted, adopted);
    if (adopted)
        atomic_fetch_add(&lapse_slots.adopted, 1);
    atomic_store(&slot->state, LAPSE_SLOT_LIVE);
    return slot;
}

static void fresh(void)
{
    lapse_slots_init(64, 99);
    lapse_slots_reset(99);
}

Test(scan, the_slot_made_for_a_starting_thread_goes)
{
    fresh();
    struct lapse_slot *other = living(6, true), *found = living(7, true), *own = living(7, false);
    lapse_scan_disown(own, 7);
    cr_assert_eq(found->state, LAPSE_SLOT_FREE);
    cr_assert_eq(own->state, LAPSE_SLOT_LIVE);
    cr_assert_eq(other->state, LAPSE_SLOT_LIVE);
    cr_assert_eq(lapse_slots.adopted, 1);
}

Test(scan, a_thread_with_one_slot_keeps_it)
{
    fresh();
    struct lapse_slot *other = living(6, true), *own = living(7, false);
    lapse_scan_disown(own, 7);
    cr_assert_eq(own->state, LAPSE_SLOT_LIVE);
    cr_assert_eq(other->state, LAPSE_SLOT_LIVE);
}

Test(scan, a_slot_that_is_taken_anew_is_not_adopted)
{
    fresh();
    struct lapse_slot *found = living(7, true);
    cr_assert(lapse_slots_claim(found));
    lapse_slots_give(found);
    cr_assert_eq(lapse_slots.adopted, 0);
    cr_assert_not(lapse_slots_take()->adopted);
    living(8, true);
    lapse_slots_reset(100);
    cr_assert_eq(lapse_slots.adopted, 0);
}
