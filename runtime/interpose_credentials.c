/* SPDX-License-Identifier: MIT */
/* Identity and name spaces. The C library tells its own threads to change ids too; our drain thread
 * is none of them, so it is told here and has followed before the host goes on (it keeps its open
 * spool, which the new user might not be allowed to open). unshare and setns refuse, or act on one
 * thread only, when the process has several; capabilities belong to the thread that drops them: for
 * these the drain stops before, and starts again with what the calling thread has become. chroot and
 * setrlimit need nothing: the spool stays open, and memory, files and
 * timers that are refused later are counted.
 *
 * Called by the host; only in a process whose session is its own. */
#include "interpose.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <unistd.h>

#include "real.h"
#include "session.h"

#define QUIETLY(name, parameters, arguments) \
    LAPSE_INTERPOSE int name parameters \
    { \
        if (!lapse_session_is_mine()) \
            return LAPSE_REAL(name) arguments; \
        lapse_session_quiesce(); \
        int result = LAPSE_REAL(name) arguments; \
        int error = errno; \
        lapse_session_unquiesce(); \
        errno = error; \
        return result; \
    }

QUIETLY(unshare, (int flags), (flags))
QUIETLY(setns, (int fd, int type), (fd, type))
int capset(void *header, const void *data);
QUIETLY(capset, (void *header, const void *data), (header, data))

#define WITH_DRAIN(name, parameters, arguments) \
    LAPSE_INTERPOSE int name parameters \
    { \
        if (!lapse_session_is_mine()) \
            return LAPSE_REAL(name) arguments; \
        bool held = lapse_session_ids_begin(); \
        int result = LAPSE_REAL(name) arguments; \
        int error = errno; \
        lapse_session_ids_end(held); \
        errno = error; \
        return result; \
    }

WITH_DRAIN(setuid, (uid_t id), (id))
WITH_DRAIN(setgid, (gid_t id), (id))
WITH_DRAIN(seteuid, (uid_t id), (id))
WITH_DRAIN(setegid, (gid_t id), (id))
WITH_DRAIN(setreuid, (uid_t real, uid_t effective), (real, effective))
WITH_DRAIN(setregid, (gid_t real, gid_t effective), (real, effective))
WITH_DRAIN(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
WITH_DRAIN(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))
WITH_DRAIN(setgroups, (size_t count, const gid_t *groups), (count, groups))
WITH_DRAIN(initgroups, (const char *user, gid_t group), (user, group))
