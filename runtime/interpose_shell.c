/* SPDX-License-Identifier: MIT */
/* system, popen and pclose under LAPSE_FOLLOW=0. The C library's own read the environment where no
 * interposed call stands, and the host's environment is never changed: so they are written out here,
 * on the interposed posix_spawn, which hands over an environment without us. Without that option, and
 * in a process without a session, the C library's run.
 *
 * Called by the host, as the C library's: system and pclose are cancellation points. */
#include "interpose.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "interpose_state.h"
#include "real.h"

extern char **environ;

static bool leaves_children_alone(void)
{
    return lapse_taken_signal() && lapse_taken.no_follow;
}

static int wait_for(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return status;
}

/* Who waits in system() does not want SIGINT and SIGQUIT; several threads may do so at once. */
static pthread_mutex_t quiet_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned quiet_users;
static struct sigaction before_int, before_quit;

static void quiet_begin(void)
{
    struct sigaction ignore;
    memset(&ignore, 0, sizeof ignore);
    ignore.sa_handler = SIG_IGN;
    pthread_mutex_lock(&quiet_lock);
    if (!quiet_users++) {
        sigaction(SIGINT, &ignore, &before_int);
        sigaction(SIGQUIT, &ignore, &before_quit);
    }
    pthread_mutex_unlock(&quiet_lock);
}

static void quiet_end(void)
{
    pthread_mutex_lock(&quiet_lock);
    if (!--quiet_users) {
        sigaction(SIGINT, &before_int, NULL);
        sigaction(SIGQUIT, &before_quit, NULL);
    }
    pthread_mutex_unlock(&quiet_lock);
}

static void on_cancel(void *pid)
{
    kill(*(pid_t *)pid, SIGKILL);
    wait_for(*(pid_t *)pid);
    quiet_end();
}

/* The shell starts with the mask and, where they were not ignored, the default actions of the host. */
static int start_shell(const char *command, const sigset_t *mask, pid_t *pid)
{
    posix_spawnattr_t attributes;
    sigset_t defaults;
    char *arguments[] = { (char *)"sh", (char *)"-c", (char *)"--", (char *)(uintptr_t)command, NULL };
    sigemptyset(&defaults);
    if (before_int.sa_handler != SIG_IGN)
        sigaddset(&defaults, SIGINT);
    if (before_quit.sa_handler != SIG_IGN)
        sigaddset(&defaults, SIGQUIT);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, mask);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    int result = posix_spawn(pid, "/bin/sh", NULL, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    return result;
}

LAPSE_INTERPOSE int system(const char *command)
{
    sigset_t child, mask;
    pid_t pid;
    int status = 127 << 8; /* no shell */
    if (!leaves_children_alone() || !command)
        return LAPSE_REAL(system)(command);
    quiet_begin();
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &child, &mask);
    if (start_shell(command, &mask, &pid) == 0) {
        pthread_cleanup_push(on_cancel, &pid);
        status = wait_for(pid);
        pthread_cleanup_pop(0);
    }
    int error = errno;
    quiet_end();
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    errno = error;
    return status;
}

/* Streams of ours and their shells. */
struct shell {
    struct shell *next;
    FILE *stream;
    int fd;
    pid_t pid;
};
static struct shell *shells;
static pthread_mutex_t shells_lock = PTHREAD_MUTEX_INITIALIZER;

/* Only the shell's end of the pipe goes into it: not ours, not those of earlier ones. */
static int start_piped(const char *command, int end, int standard, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    char *arguments[] = { (char *)"sh", (char *)"-c", (char *)"--", (char *)(uintptr_t)command, NULL };
    int result = posix_spawn_file_actions_init(&actions);
    if (result)
        return result;
    result = posix_spawn_file_actions_adddup2(&actions, end, standard);
    for (const struct shell *shell = shells; shell && !result; shell = shell->next)
        if (shell->fd != standard)
            result = posix_spawn_file_actions_addclose(&actions, shell->fd);
    if (!result)
        result = posix_spawn(pid, "/bin/sh", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    return result;
}

static int open_shell(struct shell *shell, const char *command, bool reads, bool keeps)
{
    int ends[2], own = reads ? 0 : 1;
    if (LAPSE_REAL(pipe2)(ends, O_CLOEXEC))
        return errno;
    shell->fd = ends[own];
    shell->stream = fdopen(ends[own], reads ? "r" : "w");
    int result = shell->stream ? 0 : errno;
    if (!result) {
        pthread_mutex_lock(&shells_lock);
        result = start_piped(command, ends[!own], reads ? 1 : 0, &shell->pid);
        if (!result) {
            shell->next = shells;
            shells = shell;
            if (!keeps) /* close-on-exec until the shell is there */
                fcntl(shell->fd, F_SETFD, 0);
        }
        pthread_mutex_unlock(&shells_lock);
    }
    close(ends[!own]);
    if (result && shell->stream)
        fclose(shell->stream);
    else if (result)
        close(ends[own]);
    return result;
}

LAPSE_INTERPOSE FILE *popen(const char *command, const char *mode)
{
    bool reads = false, writes = false, keeps = false, wrong = false;
    if (!leaves_children_alone())
        return LAPSE_REAL(popen)(command, mode);
    for (const char *at = mode; *at; at++) {
        reads |= *at == 'r';
        writes |= *at == 'w';
        keeps |= *at == 'e';
        wrong |= !strchr("rwe", *at);
    }
    struct shell *shell = reads != writes && !wrong ? malloc(sizeof *shell) : NULL;
    int error = reads != writes && !wrong ? ENOMEM : EINVAL;
    if (shell)
        error = open_shell(shell, command, reads, keeps);
    if (!error)
        return shell->stream;
    free(shell);
    errno = error;
    return NULL;
}

/* Out of the list; NULL when the stream is not ours. */
static struct shell *take_shell(const FILE *stream)
{
    pthread_mutex_lock(&shells_lock);
    struct shell **place = &shells, *shell;
    while (*place && (*place)->stream != stream)
        place = &(*place)->next;
    shell = *place;
    if (shell)
        *place = shell->next;
    pthread_mutex_unlock(&shells_lock);
    return shell;
}

LAPSE_INTERPOSE int pclose(FILE *stream)
{
    struct shell *shell = take_shell(stream);
    if (!shell)
        return LAPSE_REAL(pclose)(stream);
    pid_t pid = shell->pid;
    free(shell);
    int failed = fclose(stream);
    int status = wait_for(pid);
    return failed ? -1 : status;
}
