/* SPDX-License-Identifier: MIT */
/* For unwind_stepping.c: a library built without unwind information and with frame pointers, as large beside
 * the rows that the linker makes for it as a browser is. The functions stand in this order. */
#include "unwind_remnant.h"

#define APART __attribute__((noinline, noipa))

__asm__(".text\n.skip 0x100000, 0xcc\n");

APART int remnant_leaf(int x)
{
    volatile int kept = x; /* in a frame: without one gcc leaves the frame pointer out */
    return kept * 3 + 1;
}

APART int remnant_middle(int x)
{
    volatile int room[40];
    for (int i = 0; i < 3; i++)
        room[i] = remnant_leaf(x + i);
    return room[0] + room[2];
}

APART int remnant_outer(int x)
{
    return remnant_middle(x) + remnant_leaf(x);
}

APART int remnant_run(void (*begin)(void), void (*end)(void))
{
    begin();
    int sum = remnant_outer(2);
    end();
    return sum;
}

APART void remnant_end(void)
{
}
