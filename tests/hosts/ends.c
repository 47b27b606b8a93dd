/* SPDX-License-Identifier: MIT */
/* Every way for a process to end, while two threads of it are sampled: the parent checks the exact
 * wait status, and that no end takes longer than four seconds. */
#include "host.h"

#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/syscall.h>

extern char **environ;
static int late_code = 26;

static void *burn_on(void *unused)
{
    (void)unused;
    for (;;)
        host_burn_us(2000);
    return NULL;
}

static void *allocate_on(void *unused)
{
    (void)unused;
    for (;;)
        free(malloc(3000));
    return NULL;
}

static void *deaf(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    return burn_on(unused);
}

static void *exit_here(void *unused)
{
    (void)unused;
    host_burn_us(10000);
    exit(13);
}

static void *linger(void *unused)
{
    (void)unused;
    host_burn_us(40000);
    return NULL;
}

static void start(void *(*function)(void *))
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, function, NULL) != 0)
        _exit(90);
}

static void exit_in_handler(int number) { exit(number == SIGTERM ? 16 : 90); }
static void end_in_handler(int number) { _exit(number == SIGUSR1 ? 17 : 90); }
static void burn_at_exit(void) { host_burn_us(30000); }
static void quick(void) { host_burn_us(5000); }

static void by_return(void) { }
static void by_exit(void) { exit(12); }
static void by_exit_elsewhere(void) { start(burn_on); start(exit_here); burn_on(NULL); }
static void by_last_thread(void) { start(linger); pthread_exit(NULL); }
static void by_end(void) { _exit(14); }
static void by_End(void) { _Exit(14); }
static void by_quick(void) { at_quick_exit(quick); quick_exit(15); }
static void by_system_call(void) { syscall(SYS_exit_group, 18); }
static void by_bare_system_call(void)
{
    __asm__ volatile("syscall" : : "a"(SYS_exit_group), "D"(18) : "rcx", "r11", "memory");
}
static void by_abort(void) { start(burn_on); abort(); }
static void by_term(void) { start(burn_on); kill(getpid(), SIGTERM); burn_on(NULL); }
static void by_int(void) { kill(getpid(), SIGINT); burn_on(NULL); }
static void by_hup(void) { kill(getpid(), SIGHUP); burn_on(NULL); }
static void by_term_handler(void) { signal(SIGTERM, exit_in_handler); raise(SIGTERM); }
static void by_usr1_handler(void)
{
    signal(SIGUSR1, end_in_handler);
    start(burn_on);
    kill(getpid(), SIGUSR1);
    burn_on(NULL);
}
static void by_kill(void) { kill(getpid(), SIGKILL); burn_on(NULL); }
static void by_fault(void)
{
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}
static void by_trap(void) { __asm__ volatile("ud2"); }
static void by_alarm(void) { ualarm(50000, 0); for (;;) pause(); }
static void by_exec(void)
{
    start(burn_on);
    char *arguments[] = { (char *)host_self(), "--nineteen", NULL };
    execve(arguments[0], arguments, environ);
}
static void by_burning_exit(void) { atexit(burn_at_exit); start(burn_on); exit(20); }
static void by_exit_over_malloc(void) { start(allocate_on); start(allocate_on); exit(21); }
static void by_exit_unheard(void)
{
    fclose(stdout);
    fclose(stderr);
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    exit(22);
}
static void by_exit_over_deaf(void) { start(deaf); host_burn_us(10000); exit(23); }
static void exit_now(void) { exit(24); }
static void by_nested_exit(void) { atexit(exit_now); exit(99); }
static void by_end_at_exit(void) { atexit(by_end); exit(98); }
static void caught(int number) { (void)number; _exit(25); }
static void by_caught_abort(void) { signal(SIGABRT, caught); abort(); }
static void by_code_at_exit(void) { exit(late_code); }

static const struct {
    const char *name;
    void (*end)(void);
    int code, signal;
} ends[] = {
    { "return", by_return, 11, 0 }, { "exit", by_exit, 12, 0 },
    { "exit in a thread", by_exit_elsewhere, 13, 0 }, { "last thread", by_last_thread, 0, 0 },
    { "_exit", by_end, 14, 0 }, { "_Exit", by_End, 14, 0 }, { "quick_exit", by_quick, 15, 0 },
    { "syscall(exit_group)", by_system_call, 18, 0 },
    { "exit_group", by_bare_system_call, 18, 0 }, { "abort", by_abort, 0, SIGABRT },
    { "SIGTERM", by_term, 0, SIGTERM }, { "SIGINT", by_int, 0, SIGINT },
    { "SIGHUP", by_hup, 0, SIGHUP }, { "SIGTERM handler", by_term_handler, 16, 0 },
    { "SIGUSR1 handler", by_usr1_handler, 17, 0 }, { "SIGKILL", by_kill, 0, SIGKILL },
    { "SIGSEGV", by_fault, 0, SIGSEGV }, { "SIGILL", by_trap, 0, SIGILL },
    { "SIGALRM", by_alarm, 0, SIGALRM }, { "exec", by_exec, 19, 0 },
    { "atexit that burns", by_burning_exit, 20, 0 },
    { "exit over malloc", by_exit_over_malloc, 21, 0 },
    { "exit, all closed", by_exit_unheard, 22, 0 },
    { "exit over a deaf thread", by_exit_over_deaf, 23, 0 },
    { "exit in atexit", by_nested_exit, 24, 0 }, { "_exit in atexit", by_end_at_exit, 14, 0 },
    { "abort, caught", by_caught_abort, 25, 0 }, { "exit again", by_code_at_exit, 26, 0 },
};
enum { ENDS = sizeof ends / sizeof ends[0] };

static int run(int which)
{
    struct rlimit none = { 0, 0 };
    pthread_t thread;
    setrlimit(RLIMIT_CORE, &none);
    pthread_create(&thread, NULL, host_burn_thread, (void *)15000);
    host_burn_us(15000);
    pthread_join(thread, NULL);
    ends[which].end();
    return 11;
}

static void check(int which, pid_t pid)
{
    int status = 0;
    int64_t limit = host_clock_us(CLOCK_MONOTONIC) + 4000000;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (host_clock_us(CLOCK_MONOTONIC) > limit) {
            host_fail("%s: does not end", ends[which].name);
            kill(pid, SIGKILL);
            host_wait(pid);
            return;
        }
        usleep(1000);
    }
    bool right = ends[which].signal
        ? WIFSIGNALED(status) && WTERMSIG(status) == ends[which].signal
        : WIFEXITED(status) && WEXITSTATUS(status) == ends[which].code;
    HOST_CHECK(right, "%s: wait status 0x%x", ends[which].name, (unsigned)status);
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "--nineteen") == 0) {
        host_burn_us(10000);
        return 19;
    }
    if (count == 3)
        return run(atoi(arguments[2]));
    for (int i = 0; i < ENDS; i += 2) {
        pid_t pids[2];
        for (int j = 0; j < 2 && i + j < ENDS; j++)
            if ((pids[j] = fork()) == 0) {
                char number[16];
                snprintf(number, sizeof number, "%d", i + j);
                execl(host_self(), host_self(), "--end", number, (char *)NULL);
                _exit(91);
            }
        for (int j = 0; j < 2 && i + j < ENDS; j++)
            check(i + j, pids[j]);
    }
    return host_end();
}
