/* SPDX-License-Identifier: MIT */
/* Identity and name spaces. The C library tells its own threads to change ids too; our drain thread
 * is none of them and would keep the old ones. unshare and setns refuse, or act on one thread only,
 * when the process has several. So the drain stops before and starts again with what the calling
 * thread has become. chroot and setrlimit need nothing: the spool stays open, and memory, files and
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

QUIETLY(setuid, (uid_t id), (id))
QUIETLY(setgid, (gid_t id), (id))
QUIETLY(seteuid, (uid_t id), (id))
QUIETLY(setegid, (gid_t id), (id))
QUIETLY(setreuid, (uid_t real, uid_t effective), (real, effective))
QUIETLY(setregid, (gid_t real, gid_t effective), (real, effective))
QUIETLY(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
QUIETLY(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))
QUIETLY(setgroups, (size_t count, const gid_t *groups), (count, groups))
QUIETLY(initgroups, (const char *user, gid_t group), (user, group))
QUIETLY(unshare, (int flags), (flags))
QUIETLY(setns, (int fd, int type), (fd, type))
