/* SPDX-License-Identifier: MIT */
/* Run the command: same terminal, same process group, its own signals. What the terminal sends reaches
 * the command by itself, as it does not for a process group of its own; what is sent to us alone is
 * passed on. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record.h"
#include "record_jit.h"

static const int passed_on[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM };
enum { PASSED_ON = sizeof passed_on / sizeof *passed_on };

/* Set before any of the handlers below can run, constant after. */
static volatile pid_t child;

/* The mask before signals were held back: the command's, and ours while it runs. */
static sigset_t mask_outside;

void lapse_record_hold_signals(void)
{
    sigset_t held;
    struct sigaction action;
    sigemptyset(&held);
    for (size_t i = 0; i < PASSED_ON; i++)
        if (!sigaction(passed_on[i], NULL, &action) && action.sa_handler != SIG_IGN)
            sigaddset(&held, passed_on[i]); /* a blocked signal waits, though it is ignored */
    sigprocmask(SIG_BLOCK, &held, &mask_outside);
}

int lapse_record_held_signal(void)
{
    sigset_t pending;
    if (!sigpending(&pending))
        for (size_t i = 0; i < PASSED_ON; i++)
            if (sigismember(&pending, passed_on[i]) == 1 && !sigismember(&mask_outside, passed_on[i]))
                return passed_on[i];
    return 0;
}

void lapse_record_release_signals(void)
{
    sigprocmask(SIG_SETMASK, &mask_outside, NULL);
}

/* Context: handler, any time while the command runs. kill is async-signal-safe. */
static void pass_on(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    (void)context;
    if (info->si_code <= 0 && info->si_pid != child) /* from a process; the terminal's is SI_KERNEL */
        kill(child, signal);
    errno = saved;
}

static void block_all(sigset_t *before)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, before);
}

/* Signals that were ignored (nohup, shell background) stay ignored, in the command too. */
static void take_signals(struct sigaction before[PASSED_ON])
{
    struct sigaction action = { .sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART };
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < PASSED_ON; i++) {
        sigaction(passed_on[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN)
            sigaction(passed_on[i], &action, NULL);
    }
}

static void give_signals_back(const struct sigaction before[PASSED_ON])
{
    for (size_t i = 0; i < PASSED_ON; i++)
        sigaction(passed_on[i], &before[i], NULL);
}

/* Has the first line no NUL? A shell would take the words of a damaged program for commands. */
static bool is_text(const char *path)
{
    char start[128];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    ssize_t size = fd >= 0 ? read(fd, start, sizeof start) : 0;
    for (ssize_t i = 0; i < size && start[i] != '\n'; i++)
        if (!start[i])
            return false;
    return true;
}

__attribute__((noreturn))
static void become_command(const struct lapse_record_run *run, int report)
{
    execve(run->path, run->arguments, run->environment);
    int cause = errno;
    if (cause == ENOEXEC && is_text(run->path))
        execvpe(run->path, run->arguments, run->environment); /* a script without #! is given to sh */
    while (write(report, &cause, sizeof cause) < 0 && errno == EINTR)
        ;
    _exit(127);
}

/* What exec said: 0 when the pipe was closed by it. */
static int exec_result(int from)
{
    int cause = 0;
    ssize_t size;
    while ((size = read(from, &cause, sizeof cause)) < 0 && errno == EINTR)
        ;
    return size == sizeof cause ? -cause : 0;
}

/* CPU time of children so far is known as a sum only: that before this run is taken off. */
static void wait_for(pid_t pid, struct lapse_record_run *run)
{
    struct rusage before;
    int status = 0;
    getrusage(RUSAGE_CHILDREN, &before);
    while (wait4(pid, &status, 0, &run->usage) < 0 && errno == EINTR)
        ;
    run->signalled = WIFSIGNALED(status);
    run->signal = run->signalled ? WTERMSIG(status) : 0;
    run->status = run->signalled ? 128 + run->signal : WEXITSTATUS(status);
    getrusage(RUSAGE_CHILDREN, &run->usage);
    timersub(&run->usage.ru_utime, &before.ru_utime, &run->usage.ru_utime);
    timersub(&run->usage.ru_stime, &before.ru_stime, &run->usage.ru_stime);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

int lapse_record_run(struct lapse_record_run *run)
{
    struct sigaction before[PASSED_ON];
    struct lapse_record_jit *jit = NULL;
    sigset_t mask;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC))
        return -errno;
    double start = now();
    block_all(&mask);
    take_signals(before);
    pid_t pid = fork();
    if (!pid) {
        give_signals_back(before);
        sigprocmask(SIG_SETMASK, &mask_outside, NULL);
        become_command(run, ends[1]);
    }
    int error = pid < 0 ? -errno : 0;
    child = pid;
    close(ends[1]);
    if (!error) {
        sigprocmask(SIG_SETMASK, &mask_outside, NULL);
        error = exec_result(ends[0]);
        if (!error)
            jit = lapse_record_jit_start(run->place);
        wait_for(pid, run);
        block_all(NULL); /* nothing may be sent to a number that is free now */
        lapse_record_jit_stop(jit);
    }
    give_signals_back(before);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    close(ends[0]);
    run->seconds = now() - start;
    lapse_record_jit_write(jit);
    lapse_record_jit_free(jit);
    return error;
}
