/* SPDX-License-Identifier: MIT */
/* Taking lapse's own frames out of captured stacks. */
#include <criterion/criterion.h>

#include "own_frames.h"
#include "walk.h"

static const struct lapse_own_code own = { 0x1000, 0x2000 };

static void check(const uint64_t *stack, uint32_t depth, const uint64_t *wanted, uint32_t wanted_depth)
{
    uint64_t pcs[8];
    for (uint32_t i = 0; i < depth; i++)
        pcs[i] = stack[i];
    cr_assert_eq(lapse_own_frames_strip(&own, pcs, depth), wanted_depth);
    for (uint32_t i = 0; i < wanted_depth; i++)
        cr_assert_eq(pcs[i], wanted[i], "frame %u: 0x%lx", i, (unsigned long)pcs[i]);
}

Test(own_frames, a_stack_without_them_stays)
{
    const uint64_t stack[] = { 0x2000, 0xfff, 0x3000 };
    check(stack, 3, stack, 3);
}

Test(own_frames, the_caller_of_our_leaf_is_the_leaf_at_its_call)
{
    const uint64_t stack[] = { 0x1000, 0x1fff, 0x5005, 0x6000 }, wanted[] = { 0x5004, 0x6000 };
    check(stack, 4, wanted, 2);
}

Test(own_frames, between_and_outermost)
{
    const uint64_t stack[] = { 0x9000, 0x1234, 0x5005, 0x1100, 0x6000, 0x1200 };
    const uint64_t wanted[] = { 0x9000, 0x5005, 0x6000 };
    check(stack, 6, wanted, 3);
}

Test(own_frames, guessed_ones_as_well)
{
    const uint64_t stack[] = { 0x1800 | LAPSE_PC_GUESSED, 0x5005 | LAPSE_PC_GUESSED };
    const uint64_t wanted[] = { 0x5004 | LAPSE_PC_GUESSED };
    check(stack, 2, wanted, 1);
}

Test(own_frames, nothing_else)
{
    const uint64_t stack[] = { 0x1800, 0x1900 };
    check(stack, 2, NULL, 0);
    check(stack, 0, NULL, 0);
}

Test(own_frames, a_program_that_lapse_is_linked_into_is_not_its_own_code)
{
    struct lapse_own_code found = lapse_own_code_find();
    cr_assert_eq(found.start, found.end);
}
