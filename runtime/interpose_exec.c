/* SPDX-License-Identifier: MIT */
/* New images: the exec family and posix_spawn. Before an exec the session is written and its timers
 * are gone, since a tick that is pending in the new image would kill it; when the exec fails, the
 * session goes on. In a vfork child none of this happens: the session is its parent's.
 *
 * A new image inherits the host's wish for our signal (ignored, blocked), not what the kernel had.
 * Limit: a posix_spawn child of a host that ignores our signal finds it at its default.
 *
 * Called by the host, also from signal handlers and vfork children: no malloc. */
#include "interpose.h"

#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "interpose_state.h"
#include "real.h"
#include "session.h"

extern char **environ;

/* Copies of an environment up to this size live on the stack, larger ones in a mapping. */
#define STACK_ENVIRONMENT 16384u

struct exec_guard {
    bool session;
    struct lapse_inherit inherit;
};

/* `missing`: nothing to prepare for, the call is going to fail. */
static void guard_begin(struct exec_guard *guard, bool missing)
{
    int error = errno;
    guard->session = !missing && lapse_session_is_unfinished();
    if (guard->session)
        lapse_session_exec_prepare();
    lapse_inherit_begin(&guard->inherit);
    errno = error;
}

static void guard_end(const struct exec_guard *guard)
{
    int error = errno;
    lapse_inherit_end(&guard->inherit);
    if (guard->session)
        lapse_session_exec_failed();
    errno = error;
}

/* Shells try one folder of PATH after the other. */
static bool is_missing(const char *path)
{
    return lapse_sys(SYS_faccessat, AT_FDCWD, path, F_OK) == -ENOENT;
}

/* The environment for a child: the caller's, or a copy without us in memory of `size` bytes. */
static char *const *copy_environment(char *const *environment, char *memory, size_t count)
{
    char **copy = (char **)(void *)memory;
    lapse_environment_copy(environment, copy, memory + count * sizeof *copy);
    return copy;
}

/* Expands where the memory must live: in the frame of the caller. */
#define CHILD_ENVIRONMENT(environment) \
    size_t text_size = 0, mapped = 0; \
    char *memory = NULL; \
    if (lapse_taken_signal() && lapse_taken.no_follow && (environment)) { \
        size_t count = lapse_environment_size(environment, &text_size); \
        size_t size = count * sizeof(char *) + text_size; \
        if (size <= STACK_ENVIRONMENT) \
            memory = alloca(size); \
        else if ((memory = lapse_sys_map(size)) != NULL) \
            mapped = size; \
        if (memory) \
            (environment) = copy_environment(environment, memory, count); \
    }

#define CHILD_ENVIRONMENT_END() \
    do { \
        if (mapped) \
            lapse_sys(SYS_munmap, memory, mapped); \
    } while (0)

LAPSE_INTERPOSE int execve(const char *path, char *const *arguments, char *const *environment)
{
    struct exec_guard guard;
    if (!lapse_taken_signal())
        return LAPSE_REAL(execve)(path, arguments, environment);
    CHILD_ENVIRONMENT(environment)
    guard_begin(&guard, is_missing(path));
    int result = LAPSE_REAL(execve)(path, arguments, environment);
    guard_end(&guard);
    CHILD_ENVIRONMENT_END();
    return result;
}

LAPSE_INTERPOSE int execvpe(const char *file, char *const *arguments, char *const *environment)
{
    struct exec_guard guard;
    if (!lapse_taken_signal())
        return LAPSE_REAL(execvpe)(file, arguments, environment);
    CHILD_ENVIRONMENT(environment)
    guard_begin(&guard, strchr(file, '/') && is_missing(file));
    int result = LAPSE_REAL(execvpe)(file, arguments, environment);
    guard_end(&guard);
    CHILD_ENVIRONMENT_END();
    return result;
}

LAPSE_INTERPOSE int fexecve(int fd, char *const *arguments, char *const *environment)
{
    struct exec_guard guard;
    if (!lapse_taken_signal())
        return LAPSE_REAL(fexecve)(fd, arguments, environment);
    CHILD_ENVIRONMENT(environment)
    guard_begin(&guard, false);
    int result = LAPSE_REAL(fexecve)(fd, arguments, environment);
    guard_end(&guard);
    CHILD_ENVIRONMENT_END();
    return result;
}

LAPSE_INTERPOSE int execveat(int folder, const char *path, char *const *arguments,
                             char *const *environment, int flags)
{
    struct exec_guard guard;
    if (!lapse_taken_signal())
        return LAPSE_REAL(execveat)(folder, path, arguments, environment, flags);
    CHILD_ENVIRONMENT(environment)
    guard_begin(&guard, false);
    int result = LAPSE_REAL(execveat)(folder, path, arguments, environment, flags);
    guard_end(&guard);
    CHILD_ENVIRONMENT_END();
    return result;
}

LAPSE_INTERPOSE int execv(const char *path, char *const *arguments)
{
    return execve(path, arguments, environ);
}

LAPSE_INTERPOSE int execvp(const char *file, char *const *arguments)
{
    return execvpe(file, arguments, environ);
}

/* The list forms: the arguments become a vector in this frame. `last` is the final fixed argument. */
#define COLLECT_ARGUMENTS(last, more, vector) \
    va_start(more, last); \
    size_t argument_count = 1; \
    while (va_arg(more, char *)) \
        argument_count++; \
    va_end(more); \
    char **vector = alloca((argument_count + 1) * sizeof *vector); \
    vector[0] = (char *)(uintptr_t)last; \
    va_start(more, last); \
    for (size_t i = 1; i <= argument_count; i++) \
        vector[i] = va_arg(more, char *)

LAPSE_INTERPOSE int execl(const char *path, const char *argument, ...)
{
    va_list more;
    COLLECT_ARGUMENTS(argument, more, vector);
    va_end(more);
    return execve(path, vector, environ);
}

LAPSE_INTERPOSE int execlp(const char *file, const char *argument, ...)
{
    va_list more;
    COLLECT_ARGUMENTS(argument, more, vector);
    va_end(more);
    return execvpe(file, vector, environ);
}

LAPSE_INTERPOSE int execle(const char *path, const char *argument, ...)
{
    va_list more;
    COLLECT_ARGUMENTS(argument, more, vector);
    char *const *environment = va_arg(more, char *const *);
    va_end(more);
    return execve(path, vector, environment);
}

/* The child starts in the C library's own vfork; only what it inherits is seen to. */
#define SPAWN(name) \
    LAPSE_INTERPOSE int name(pid_t *restrict pid, const char *restrict path, \
                             const posix_spawn_file_actions_t *restrict actions, \
                             const posix_spawnattr_t *restrict attributes, \
                             char *const arguments[restrict], char *const environment[restrict]) \
    { \
        int number = lapse_taken_signal(); \
        if (!number || (!lapse_taken.no_follow && !lapse_mask_wished())) \
            return LAPSE_REAL(name)(pid, path, actions, attributes, arguments, environment); \
        char *const *variables = environment; \
        CHILD_ENVIRONMENT(variables) \
        uint64_t bit = lapse_mask_wished() ? lapse_signal_bit(number) : 0, before = 0; \
        lapse_sys(SYS_rt_sigprocmask, SIG_BLOCK, &bit, &before, sizeof bit); \
        int result = LAPSE_REAL(name)(pid, path, actions, attributes, arguments, variables); \
        bit &= ~before; \
        lapse_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, 0, sizeof bit); \
        CHILD_ENVIRONMENT_END(); \
        return result; \
    }

SPAWN(posix_spawn)
SPAWN(posix_spawnp)
