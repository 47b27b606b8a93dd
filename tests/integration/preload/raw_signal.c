/* SPDX-License-Identifier: MIT */
/* A host with a profiler of its own that sets its SIGPROF handler by a raw system call, as runtimes
 * without a C library do, after it has run for a while.
 *   raw_signal plain     handler, timer by setitimer()
 *   raw_signal bare      both raw
 *   raw_signal chain     the handler calls what it found, which stands for an earlier handler
 *   raw_signal fight     the handler installs itself again at each tick
 *   raw_signal thread    a thread that begins with every signal blocked, lets go of them by a raw system
 *                        call, and has a timer of its own: what the Go runtime does in programs with C
 *   raw_signal wait      no handler: all threads block the signal, and one waits for it
 *   raw_signal blocked   a thread blocks every signal by a raw system call
 *   raw_signal clone     a thread made by clone() works, and nobody else does anything
 * Ends with 0 when its own ticks stand for its CPU time as they do without a second profiler. */
#include <pthread.h>
#include <sched.h>
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

static void *in_blocked_thread(void *unused)
{
    uint64_t all = ~UINT64_C(0);
    (void)unused;
    burn(0.05);
    raw4(SYS_rt_sigprocmask, SIG_SETMASK, (long)&all, 0, 8);
    burn(0.5);
    return NULL;
}

static int run_blocked(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, in_blocked_thread, NULL);
    pthread_join(thread, NULL);
    return 0;
}

/* Without thread-locals of its own it may call nothing of the C library that uses them. */
static int in_clone(void *done)
{
    struct timespec now = { 0, 0 };
    volatile unsigned value = 1;
    while (now.tv_sec == 0 && now.tv_nsec < 400000000) {
        for (int i = 0; i < 20000; i++)
            value = value * 1664525u + 1013904223u;
        raw4(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&now, 0, 0);
    }
    __atomic_store_n((int *)done, 1, __ATOMIC_RELEASE);
    return 0;
}

static int run_clone(void)
{
    static char stack[256 * 1024] __attribute__((aligned(16)));
    int done = 0;
    int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    if (clone(in_clone, stack + sizeof stack, flags, &done) <= 0)
        return 1;
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE))
        usleep(50000);
    usleep(50000); /* it still returns on its stack */
    return 0;
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

static void *take_signals(void *set)
{
    siginfo_t info;
    for (;;)
        if (sigwaitinfo(set, &info) == SIGPROF)
            own_ticks++;
    return NULL;
}

static void start_waiter(void)
{
    static sigset_t prof;
    pthread_t thread;
    sigemptyset(&prof);
    sigaddset(&prof, SIGPROF);
    pthread_sigmask(SIG_BLOCK, &prof, NULL);
    pthread_create(&thread, NULL, take_signals, &prof);
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "plain";
    struct itimerval timer = { { 0, 10000 }, { 0, 10000 } };
    chains = !strcmp(mode, "chain");
    fights = !strcmp(mode, "fight");
    if (!strcmp(mode, "clone"))
        return run_clone();
    if (!strcmp(mode, "blocked"))
        return run_blocked();
    burn(0.05);
    if (!strcmp(mode, "thread"))
        return run_thread();
    if (chains) {
        struct sigaction earlier = { .sa_handler = on_earlier_tick, .sa_flags = SA_RESTART };
        sigaction(SIGPROF, &earlier, NULL);
    }
    own = (struct kernel_action){ on_tick, SA_SIGINFO | SA_RESTART | 0x04000000, restorer, 0 };
    if (!strcmp(mode, "wait"))
        start_waiter();
    else
        install();
    if (!strcmp(mode, "bare"))
        raw4(SYS_setitimer, ITIMER_PROF, (long)&timer, 0, 0);
    else
        setitimer(ITIMER_PROF, &timer, NULL);
    double start = cpu_seconds();
    burn(fights ? 1.0 : 0.5);
    double wanted = (cpu_seconds() - start) / 0.01;
    printf("%d own ticks of %.0f, %d of the earlier handler\n", (int)own_ticks, wanted, (int)earlier_ticks);
    /* The kernel counts whole ticks of its own (4 ms) for this timer, and keeps one signal of a kind. */
    if (own_ticks < 0.5 * wanted || own_ticks > 1.5 * wanted)
        return 1;
    return chains && earlier_ticks != own_ticks;
}
