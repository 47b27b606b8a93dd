/* SPDX-License-Identifier: MIT */
/* Sandboxes and raw system calls. Before a filter can forbid what the session needs, the session is
 * finished. Hosts install filters through prctl or through syscall(), and use syscall() for forks,
 * execs, ends and signal calls as well: those take the way of the named functions here.
 *
 * interpose_syscall.S lets every other number pass with one test, and also those that a C function
 * cannot stand between: vfork and clones that return on another stack. Called by the host. */
#include "interpose.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "interpose_state.h"
#include "real.h"
#include "session.h"

/* A filter without a program is a probe for what the kernel knows. Who asks will likely look next
 * whether it has one thread only (Chromium's helpers do, in /proc/self/task, and die otherwise). */
static void before_filter(bool installs)
{
    if (!lapse_session_is_mine())
        return;
    if (installs)
        lapse_session_sandbox();
    else
        lapse_session_stay_single();
}

LAPSE_INTERPOSE int prctl(int option, ...)
{
    va_list more;
    unsigned long a[4];
    va_start(more, option);
    for (int i = 0; i < 4; i++)
        a[i] = va_arg(more, unsigned long);
    va_end(more);
    if (option == PR_SET_SECCOMP)
        before_filter(a[0] == SECCOMP_MODE_STRICT || (a[0] == SECCOMP_MODE_FILTER && a[1]));
    return LAPSE_REAL(prctl)(option, a[0], a[1], a[2], a[3]);
}

static long raw(long number, const long a[6])
{
    long result = lapse_sys6(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

static long raw_fork(long number, const long a[6])
{
    if (!lapse_session_was_mine())
        return raw(number, a);
    lapse_session_fork_prepare();
    long pid = raw(number, a);
    int error = errno;
    if (pid == 0) {
        lapse_interpose_fork_child();
        lapse_session_fork_child();
    } else {
        lapse_session_fork_parent();
    }
    errno = error;
    return pid;
}

/* The kernel's masks are words of eight bytes. */
static long raw_mask(const long a[6])
{
    sigset_t set, old;
    if (a[3] != 8 || !lapse_taken_signal())
        return raw(SYS_rt_sigprocmask, a);
    sigemptyset(&set);
    sigemptyset(&old);
    if (a[1])
        memcpy(&set, (const void *)a[1], 8);
    if (sigprocmask((int)a[0], a[1] ? &set : NULL, &old) != 0)
        return -1;
    if (a[2])
        memcpy((void *)a[2], &old, 8);
    return 0;
}

/* Only for the taken signal: struct sigaction with a word for its mask. */
struct kernel_action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static long raw_action(const long a[6])
{
    if (!a[0] || a[0] != lapse_taken_signal() || a[3] != 8)
        return raw(SYS_rt_sigaction, a);
    const struct kernel_action *fresh = (const void *)a[1];
    struct kernel_action *old = (void *)a[2];
    struct sigaction action, previous;
    if (fresh) {
        memset(&action, 0, sizeof action);
        action.sa_handler = fresh->handler;
        action.sa_flags = (int)fresh->flags;
        memcpy(&action.sa_mask, &fresh->mask, 8);
    }
    if (sigaction((int)a[0], fresh ? &action : NULL, &previous) != 0)
        return -1;
    if (old) {
        *old = (struct kernel_action){ previous.sa_handler, (unsigned)previous.sa_flags,
                                       previous.sa_restorer, 0 };
        memcpy(&old->mask, &previous.sa_mask, 8);
    }
    return 0;
}

long lapse_syscall_watched(long number, long a0, long a1, long a2, long a3, long a4, long a5);

/* The numbers marked in interpose_syscall.S. */
long lapse_syscall_watched(long number, long a0, long a1, long a2, long a3, long a4, long a5)
{
    const long a[6] = { a0, a1, a2, a3, a4, a5 };
    switch (number) {
    case SYS_close:
        return close((int)a0);
    case SYS_dup2:
        return dup2((int)a0, (int)a1);
    case SYS_dup3:
        return dup3((int)a0, (int)a1, (int)a2);
    case SYS_close_range:
        return close_range((unsigned)a0, (unsigned)a1, (int)a2);
    case SYS_rt_sigaction:
        return raw_action(a);
    case SYS_rt_sigprocmask:
        return raw_mask(a);
    case SYS_fork:
    case SYS_clone:
    case SYS_clone3:
        return raw_fork(number, a);
    case SYS_execve:
        return execve((const char *)a0, (char *const *)a1, (char *const *)a2);
    case SYS_execveat:
        return execveat((int)a0, (const char *)a1, (char *const *)a2, (char *const *)a3, (int)a4);
    case SYS_unshare:
        return unshare((int)a0);
    case SYS_setns:
        return setns((int)a0, (int)a1);
    case SYS_prctl:
        return prctl((int)a0, a1, a2, a3, a4);
    case SYS_seccomp:
        if (a0 == SECCOMP_SET_MODE_STRICT || a0 == SECCOMP_SET_MODE_FILTER)
            before_filter(a0 == SECCOMP_SET_MODE_STRICT || a2);
        break;
    case SYS_exit_group:
        if (lapse_session_is_unfinished())
            lapse_session_finish(LAPSE_FINISH_EXIT, 0);
        break;
    default:
        break;
    }
    return raw(number, a);
}
