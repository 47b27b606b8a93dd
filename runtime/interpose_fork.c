/* SPDX-License-Identifier: MIT */
/* New processes that are copies of this one: fork, _Fork, forkpty, daemon, clone without CLONE_VM.
 * Ticks are held back around the copy, and the child gets a session of its own.
 *
 * vfork is left alone. Its child runs in our memory but has no timer (POSIX timers are not
 * inherited) and no pending tick, the parent stands still and uses no CPU time, and nothing is
 * copied that could take longer than a period; a wrapper in C would return twice through one frame.
 * What that child calls of the other interposers finds by the pid that the session is not its own.
 *
 * Called by the host; fork and _Fork also from its signal handlers. */
#include "interpose.h"

#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "drain.h"
#include "interpose_state.h"
#include "real.h"
#include "session.h"
#include "walk.h"

/* What is kept still from before a copy is made until after it, in both processes. */
struct copying { bool init_held, session; };

static struct copying before_copy(void)
{
    struct copying copying = { lapse_unwind_init_hold(), lapse_session_was_mine() };
    if (copying.session)
        lapse_session_fork_prepare();
    return copying;
}

static void after_copy(struct copying copying, bool is_child)
{
    int error = errno;
    if (is_child && copying.session) {
        lapse_interpose_fork_child();
        lapse_session_fork_child();
    } else if (copying.session)
        lapse_session_fork_parent();
    if (copying.init_held)
        lapse_unwind_init_release();
    errno = error;
}

LAPSE_INTERPOSE pid_t fork(void)
{
    struct copying copying = before_copy();
    pid_t pid = LAPSE_REAL(fork)();
    after_copy(copying, pid == 0);
    return pid;
}

LAPSE_INTERPOSE pid_t _Fork(void)
{
    struct copying copying = before_copy();
    pid_t pid = LAPSE_REAL(_Fork)();
    after_copy(copying, pid == 0);
    return pid;
}

/* The C library's own would fork behind our back. */
LAPSE_INTERPOSE int forkpty(int *terminal, char *name, const struct termios *settings,
                            const struct winsize *size)
{
    struct copying copying = before_copy();
    pid_t pid = LAPSE_REAL(forkpty)(terminal, name, settings, size);
    after_copy(copying, pid == 0);
    return pid;
}

/* Standard descriptors of a daemon go to the null device, if it is one. */
static int silence_standard_descriptors(void)
{
    struct stat status;
    int fd = open("/dev/null", O_RDWR);
    if (fd < 0)
        return -1;
    if (fstat(fd, &status) != 0 || !S_ISCHR(status.st_mode) ||
        status.st_rdev != makedev(1, 3)) {
        close(fd);
        errno = ENODEV;
        return -1;
    }
    for (int standard = 0; standard <= 2; standard++)
        dup2(fd, standard);
    if (fd > 2)
        close(fd);
    return 0;
}

/* Written out, since inside the C library's the parent ends without a call that we see. */
LAPSE_INTERPOSE int daemon(int keep_directory, int keep_descriptors)
{
    pid_t pid = fork();
    if (pid < 0)
        return -1;
    if (pid > 0)
        _exit(0);
    if (setsid() == -1)
        return -1;
    if (!keep_directory && chdir("/") != 0)
        errno = 0;
    return keep_descriptors ? 0 : silence_standard_descriptors();
}

/* clone without CLONE_VM: the child finds these in its copy of the parent's frame. */
struct clone_start {
    int (*function)(void *);
    void *argument;
    struct copying copying;
};

static int start_copy(void *start)
{
    const struct clone_start *own = start;
    after_copy(own->copying, true);
    int status = own->function(own->argument);
    /* The C library ends this process by a raw system call. */
    if (lapse_session_is_mine())
        lapse_session_finish(LAPSE_FINISH_EXIT, 0);
    return status;
}

LAPSE_INTERPOSE int clone(int (*function)(void *), void *stack, int flags, void *argument, ...)
{
    va_list more;
    va_start(more, argument);
    pid_t *parent_tid = va_arg(more, pid_t *);
    void *tls = va_arg(more, void *);
    pid_t *child_tid = va_arg(more, pid_t *);
    va_end(more);
    if ((flags & CLONE_VM) || !function || !stack) {
        int made = LAPSE_REAL(clone)(function, stack, flags, argument, parent_tid, tls, child_tid);
        int error = errno;
        if (made > 0 && (flags & CLONE_THREAD))
            lapse_scan_adopt(made);
        errno = error;
        return made;
    }
    struct clone_start start = { function, argument, before_copy() };
    int pid = LAPSE_REAL(clone)(start_copy, stack, flags, &start, parent_tid, tls, child_tid);
    after_copy(start.copying, false);
    return pid;
}
