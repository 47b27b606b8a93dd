/* SPDX-License-Identifier: MIT */
/* Signals of the program's own by the thousand, nested, on an alternate stack and by timer, while
 * ticks arrive: every one is counted, errno is what the code before left there. */
#include "host.h"

#include <sys/time.h>

static atomic_int usr1, usr2, alarms;
static void on_usr1(int number)
{
    (void)number;
    int error = errno;
    if (atomic_fetch_add(&usr1, 1) % 8 == 0)
        raise(SIGUSR2);
    errno = error;
}
static void on_usr2(int number) { (void)number; atomic_fetch_add(&usr2, 1); }
static void on_alarm(int number) { (void)number; atomic_fetch_add(&alarms, 1); }

static void install(int number, void (*handler)(int), int flags)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(number, &action, NULL);
}

static void *storm(void *unused)
{
    static const int codes[] = { EIO, ENOSPC, ERANGE, E2BIG };
    char *memory = malloc(65536);
    stack_t stack = { .ss_sp = memory, .ss_size = 65536 }, off = { .ss_flags = SS_DISABLE }, now;
    (void)unused;
    sigaltstack(&stack, NULL);
    for (int i = 0; i < 4000; i++) {
        errno = codes[i % 4];
        pthread_kill(pthread_self(), SIGUSR1);
        for (volatile int spin = 0; spin < 20000; spin++)
            ;
        HOST_CHECK(errno == codes[i % 4], "errno changed to %d", errno);
    }
    sigaltstack(NULL, &now);
    HOST_CHECK(now.ss_sp == memory && now.ss_size == 65536, "alternate stack changed");
    sigaltstack(&off, NULL);
    free(memory);
    return NULL;
}

int main(void)
{
    struct itimerval timer = { { 0, 3000 }, { 0, 3000 } };
    pthread_t thread;
    install(SIGUSR1, on_usr1, SA_ONSTACK | SA_RESTART);
    install(SIGUSR2, on_usr2, SA_ONSTACK | SA_RESTART);
    install(SIGALRM, on_alarm, SA_RESTART);
    setitimer(ITIMER_REAL, &timer, NULL);
    pthread_create(&thread, NULL, storm, NULL);
    storm(NULL);
    pthread_join(thread, NULL);
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    HOST_CHECK(usr1 == 8000 && usr2 == 1000, "handled %d and %d", usr1, usr2);
    HOST_CHECK(alarms > 5, "%d alarms", alarms);
    return host_end();
}
