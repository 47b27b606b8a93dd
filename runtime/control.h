/* SPDX-License-Identifier: MIT */
/* One control operation at a time (start, pause, resume, stop, snapshot). The owner is known by its
 * thread id, so that a signal handler of the host that interrupts one and asks for another is refused
 * instead of waiting for itself. Context: host threads outside our handler. */
#ifndef LAPSE_RUNTIME_CONTROL_H
#define LAPSE_RUNTIME_CONTROL_H

#include <stdbool.h>

/* Returns 0; -EDEADLK when the calling thread is inside one; -EBUSY when another's takes over 2 s. */
int lapse_control_begin(void);
void lapse_control_end(void);
/* Is the calling thread inside one? */
bool lapse_control_is_mine(void);
/* Child of a fork: whoever held it is not here. */
void lapse_control_forget(void);

#endif
