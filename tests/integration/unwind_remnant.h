/* SPDX-License-Identifier: MIT */
/* Functions of unwind_remnant.c, inner ones first. */
#ifndef LAPSE_TESTS_UNWIND_REMNANT_H
#define LAPSE_TESTS_UNWIND_REMNANT_H

int remnant_leaf(int x);
int remnant_middle(int x);
int remnant_outer(int x);
int remnant_run(void (*begin)(void), void (*end)(void));
void remnant_end(void);

#endif
