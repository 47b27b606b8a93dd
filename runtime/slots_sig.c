/* SPDX-License-Identifier: MIT */
/* Finding a slot by its number (slots.h). Context: the handler, and everything else. */
#include "slots.h"

LAPSE_SIGSAFE struct lapse_slot *lapse_slots_at(uint32_t index)
{
    if (index >= LAPSE_SLOT_BLOCKS * LAPSE_SLOTS_PER_BLOCK)
        return NULL;
    /* acquire: pairs with the release in ensure_block */
    char *block = atomic_load_explicit(&lapse_slots.blocks[index / LAPSE_SLOTS_PER_BLOCK],
                                       memory_order_acquire);
    return block ? (struct lapse_slot *)(block + index % LAPSE_SLOTS_PER_BLOCK * lapse_slots.stride)
                 : NULL;
}

LAPSE_SIGSAFE uint64_t *lapse_slot_pcs(struct lapse_slot *slot)
{
    return (uint64_t *)((char *)slot + LAPSE_SLOT_PCS_OFFSET);
}

LAPSE_SIGSAFE struct lapse_trail *lapse_slot_trail(struct lapse_slot *slot)
{
    return (struct lapse_trail *)((char *)slot + LAPSE_SLOT_TRAIL_OFFSET(lapse_slots.depth));
}

LAPSE_SIGSAFE uintptr_t lapse_slot_stack_top(struct lapse_slot *slot)
{
    return (uintptr_t)slot + lapse_slots.stride; /* whole pages */
}

LAPSE_SIGSAFE struct lapse_slot *lapse_slot_of_stack(uintptr_t top)
{
    return (struct lapse_slot *)(top - lapse_slots.stride);
}
