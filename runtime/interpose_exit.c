/* SPDX-License-Identifier: MIT */
/* Ends that pass no destructor: _exit, _Exit, quick_exit (through at_quick_exit, registered in
 * lapse_interpose_begin, so that the host's own functions are sampled) and abort. The session is
 * finished first, within its budget; then the real function ends the process as it would have.
 *
 * A signal at its default action ends a process without any call: the spool holds everything but
 * the last drain interval, and no handler of ours is put in its way.
 *
 * Called by the host in any context, also in vfork children, where the session is not theirs. */
#include "interpose.h"

#include <stdlib.h>
#include <unistd.h>

#include "interpose_state.h"
#include "real.h"
#include "session.h"

LAPSE_INTERPOSE void _exit(int status)
{
    if (lapse_session_is_unfinished())
        lapse_session_finish(LAPSE_FINISH_EXIT, 0);
    LAPSE_REAL(_exit)(status);
    __builtin_unreachable();
}

LAPSE_INTERPOSE void _Exit(int status)
{
    _exit(status);
}

/* A host that handles SIGABRT may live on: its session does, too. */
LAPSE_INTERPOSE void abort(void)
{
    struct sigaction action;
    if (lapse_session_is_unfinished() && LAPSE_REAL(sigaction)(SIGABRT, NULL, &action) == 0 &&
        (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN))
        lapse_session_finish(LAPSE_FINISH_SIGNAL, SIGABRT);
    LAPSE_REAL(abort)();
    __builtin_unreachable();
}
