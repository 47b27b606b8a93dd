/* SPDX-License-Identifier: MIT */
/* A host with a profiler of its own that sets its SIGPROF handler by a raw system call, as runtimes
 * without a C library do, after it has run for a while.
 *   raw_signal plain     handler, timer by setitimer()
 *   raw_signal bare      both raw
 *   raw_signal chain     the handler calls what it found, which stands for an earlier handler
 *   raw_signal fight     the handler installs itself again at each tick
 *   raw_signal thread    a thread that begins with every signal blocked, lets go of them by a raw system
 *                        call, and has a timer of its own: what the Go runtime does in programs with C
 * Ends with 0 when its own ticks stand for its CPU time as they do without a second profiler. */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

static struct kernel_action own, found;
static volatile sig_atomic_t own_ticks, earlier_ticks, thread_ticks;
static int chains, fights;

static long raw4(long number, long a, long b, long c, long d)
{
    register long r10 __asm__("r10") = d;
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
                     : "rcx", "r11", "memory");
    return result;
}

void restorer(void);
__asm__(".text\nrestorer:\n  movl $15, %eax\n  syscall\n");

static void install(void)
{
    raw4(SYS_rt_sigaction, SIGPROF, (long)&own, (long)&found, 8);
}

static void on_tick(int number, siginfo_t *info, void *context)
{
    if (info->si_code == SI_KERNEL)
        own_ticks++;
    else if (info->si_code == SI_TIMER && gettid() != getpid())
        thread_ticks++;
    if (chains && found.handler)
        found.handler(number, info, context);
    if (fights)
        raw4(SYS_rt_sigaction, SIGPROF, (long)&own, 0, 8);
}

static void on_earlier_tick(int number)
{
    (void)number;
    earlier_ticks++;
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

__attribute__((noinline)) static void burn(double seconds)
{
    volatile unsigned value = 1;
    for (double end = cpu_seconds() + seconds; cpu_seconds() < end;)
        for (int i = 0; i < 20000; i++)
            value = value * 1664525u + 1013904223u;
}

static void *in_thread(void *unused)
{
    uint64_t none = 0;
    struct sigevent event = { .sigev_signo = SIGPROF, .sigev_notify = SIGEV_THREAD_ID };
    struct itimerspec period = { { 0, 10000000 }, { 0, 10000000 } };
    timer_t timer;
    (void)unused;
    event._sigev_un._tid = gettid();
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, 8);
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) || timer_settime(timer, 0, &period, NULL))
        return NULL;
    burn(0.6);
    timer_delete(timer);
    return NULL;
}

static int run_thread(void)
{
    sigset_t all, before;
    pthread_t thread;
    struct sigaction action = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
    sigaction(SIGPROF, &action, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_join(thread, NULL);
    printf("%d own ticks in a thread of 0.6 s\n", (int)thread_ticks);
    return thread_ticks < 36 || own_ticks;
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "plain";
    struct itimerval timer = { { 0, 10000 }, { 0, 10000 } };
    chains = !strcmp(mode, "chain");
    fights = !strcmp(mode, "fight");
    burn(0.05);
    if (!strcmp(mode, "thread"))
        return run_thread();
    if (chains) {
        struct sigaction earlier = { .sa_handler = on_earlier_tick, .sa_flags = SA_RESTART };
        sigaction(SIGPROF, &earlier, NULL);
    }
    own = (struct kernel_action){ on_tick, SA_SIGINFO | SA_RESTART | 0x04000000, restorer, 0 };
    install();
    if (!strcmp(mode, "bare"))
        raw4(SYS_setitimer, ITIMER_PROF, (long)&timer, 0, 0);
    else
        setitimer(ITIMER_PROF, &timer, NULL);
    double start = cpu_seconds();
    burn(fights ? 1.0 : 0.5);
    double wanted = (cpu_seconds() - start) / 0.01;
    printf("%d own ticks of %.0f, %d of the earlier handler\n", (int)own_ticks, wanted, (int)earlier_ticks);
    /* The kernel looks at its own tick (4 ms) and keeps one signal of a kind. */
    if (own_ticks < 0.6 * wanted || own_ticks > 1.2 * wanted)
        return 1;
    return chains && earlier_ticks != own_ticks;
}
