/* SPDX-License-Identifier: MIT */
/* Descriptors: the host may close every number that there is; ours are spared, and the host sees the
 * result that it would have seen had the number not been open. A dup2 onto one of ours is let
 * through: before every write the spool proves that its descriptor is still its own file, and is
 * opened again by path when it is not.
 *
 * Called by the host in any context; in a child that shares our memory but has descriptors of its
 * own (vfork), ours are spared just the same: they are close-on-exec. */
#include "interpose.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "interpose_state.h"
#include "real.h"
#include "session.h"

static bool is_ours(int fd)
{
    return fd > 2 && lapse_taken_signal() && lapse_session_owns_descriptor(fd);
}

static int not_open(void)
{
    errno = EBADF;
    return -1;
}

LAPSE_INTERPOSE int close(int fd)
{
    return is_ours(fd) ? not_open() : LAPSE_REAL(close)(fd);
}

LAPSE_INTERPOSE int dup(int fd)
{
    return is_ours(fd) ? not_open() : LAPSE_REAL(dup)(fd);
}

LAPSE_INTERPOSE int dup2(int from, int to)
{
    return is_ours(from) ? not_open() : LAPSE_REAL(dup2)(from, to);
}

LAPSE_INTERPOSE int dup3(int from, int to, int flags)
{
    return is_ours(from) ? not_open() : LAPSE_REAL(dup3)(from, to, flags);
}

/* libunwind opens a pipe for life when it is first used, to probe memory that we never let it probe.
 * Refused for that moment: the host would find two descriptors that it never opened. */
static __thread __attribute__((tls_model("initial-exec"))) bool pipes_refused;

void lapse_interpose_refuse_pipes(bool refuse)
{
    pipes_refused = refuse;
}

LAPSE_INTERPOSE int pipe2(int ends[2], int flags)
{
    if (!pipes_refused)
        return LAPSE_REAL(pipe2)(ends, flags);
    errno = EMFILE;
    return -1;
}

/* The range in pieces around ours. */
LAPSE_INTERPOSE int close_range(unsigned int first, unsigned int last, int flags)
{
    while (first <= last && first <= INT_MAX && lapse_taken_signal()) {
        int ours = lapse_session_next_descriptor((int)first);
        if (ours < 0 || (unsigned)ours > last)
            break;
        if ((unsigned)ours > first &&
            LAPSE_REAL(close_range)(first, (unsigned)ours - 1, flags) != 0)
            return -1;
        if ((unsigned)ours == last)
            return 0;
        first = (unsigned)ours + 1;
    }
    return LAPSE_REAL(close_range)(first, last, flags);
}

LAPSE_INTERPOSE void closefrom(int first)
{
    int error = errno;
    unsigned low = first > 0 ? (unsigned)first : 0;
    if (close_range(low, UINT_MAX, 0) != 0) {
        long limit = sysconf(_SC_OPEN_MAX); /* a kernel or a filter without close_range */
        for (long fd = low; fd < limit; fd++)
            close((int)fd);
    }
    errno = error;
}
