/* SPDX-License-Identifier: MIT */
/* What one sample costs: SIGPROF sent to oneself, with the stack at a given depth, under different
 * handlers. All handlers take turns within one run, in short blocks, so that what the machine does
 * besides hits all of them; medians of the blocks are compared.
 *
 * Prints TSV: handler, frames, ns, ratio to empty; then the first signal in a new thread, whose code
 * is known, as ns over the warm one. */
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <libunwind.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "lapse.h"
#include "trail.h"

enum { FRAMES_MAX = 512, BLOCK = 200, ROUNDS = 151, THREADS = 31 };
enum handler { EMPTY, WALKER, TRAIL, LAPSE, BACKTRACE, GPERFTOOLS, HANDLERS };

static const char *const names[HANDLERS] = { "empty", "lapse walker, no trail", "lapse walker", "lapse",
                                             "unw_backtrace", "gperftools" };
static struct sigaction actions[HANDLERS];
static int present[HANDLERS] = { [EMPTY] = 1, [WALKER] = 1, [TRAIL] = 1, [BACKTRACE] = 1 };
static siginfo_t sent; /* what comes with each signal: a tick of lapse's timer, once one was seen */

static int (*lapse_status_of)(struct lapse_status *);
static int (*lapse_stop_it)(void);

static __thread struct lapse_stack_bounds bounds;
static uint64_t pcs[FRAMES_MAX];
static void *addresses[FRAMES_MAX];
static volatile uint32_t frames, flags;

static void on_empty(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
}

static void walk_with(struct lapse_trail *trail, void *context)
{
    struct lapse_walk walk = { .pcs = pcs, .max = FRAMES_MAX, .stack = bounds, .trail = trail };
    lapse_walk(&walk, context);
    frames = walk.depth;
    flags = walk.flags;
}

static void on_walker(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    walk_with(NULL, context);
}

/* The stack is the same each time here: what a trail does for the frames that did not change. */
static void on_trail(int signal, siginfo_t *info, void *context)
{
    static __thread struct lapse_trail trail;
    (void)signal, (void)info;
    walk_with(&trail, context);
}

static void on_backtrace(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info, (void)context;
    frames = (uint32_t)unw_backtrace(addresses, FRAMES_MAX);
}

static void find_bounds(void)
{
    pthread_attr_t attributes;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    bounds = (struct lapse_stack_bounds){ (uintptr_t)low, (uintptr_t)low + size };
}

/* gperftools installs its handler when it starts; its own timer is turned off again. */
static void set_up_gperftools(const char *file)
{
    const struct itimerval off = { 0 };
    void *library = dlopen("libprofiler.so.0", RTLD_NOW | RTLD_GLOBAL);
    int (*start)(const char *) = NULL;
    if (library)
        *(void **)&start = dlsym(library, "ProfilerStart");
    if (!start || !start(file)) {
        fprintf(stderr, "# gperftools is not here (libgoogle-perftools-dev)\n");
        return;
    }
    setitimer(ITIMER_PROF, &off, NULL);
    sigaction(SIGPROF, NULL, &actions[GPERFTOOLS]);
    present[GPERFTOOLS] = 1;
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void send_signal(void)
{
    syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGPROF, &sent);
}

static void on_first_tick(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)context;
    if (info->si_code == SI_TIMER) {
        sent = *info;
        sent.si_overrun = 0;
    }
}

/* The whole of lapse: a session as an application starts it. Its handler knows its ticks by what
 * comes with them, so one is caught and sent again and again. */
static void set_up_lapse(const char *beside, const char *out)
{
    char path[512];
    int (*start)(const struct lapse_options *) = NULL;
    const char *end = strrchr(beside, '/');
    snprintf(path, sizeof path, "%.*s/../liblapse.so", end ? (int)(end - beside) : 1,
             end ? beside : ".");
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library)
        *(void **)&start = dlsym(library, "lapse_start");
    const struct lapse_options options = { .out = out, .exports = LAPSE_EXPORT_NONE };
    if (!start || start(&options)) {
        fprintf(stderr, "# liblapse.so does not start\n");
        return;
    }
    struct sigaction catch = { .sa_sigaction = on_first_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
    sigaction(SIGPROF, &catch, &actions[LAPSE]);
    uint64_t deadline = now() + 1000000000u;
    while (!sent.si_signo && now() < deadline)
        ;
    *(void **)&lapse_status_of = dlsym(library, "lapse_status");
    *(void **)&lapse_stop_it = dlsym(library, "lapse_stop");
    present[LAPSE] = sent.si_signo != 0;
}

static void finish_lapse(const char *out)
{
    char file[128];
    struct lapse_status status = { 0 };
    if (!present[LAPSE])
        return;
    lapse_status_of(&status);
    printf("# lapse: %lu ticks, %lu recorded, %lu dropped, %lu unwind failures\n",
           (unsigned long)status.ticks, (unsigned long)status.recorded,
           (unsigned long)status.dropped, (unsigned long)status.unwind_failures);
    lapse_stop_it();
    snprintf(file, sizeof file, "%s.lapse", out);
    unlink(file);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, unsigned count)
{
    qsort(values, count, sizeof *values, compare);
    return values[count / 2];
}

static double times[HANDLERS][ROUNDS];

static void measure(void)
{
    uint32_t depth = 0;
    for (int round = -1; round < ROUNDS; round++)
        for (int handler = 0; handler < HANDLERS; handler++) {
            if (!present[handler])
                continue;
            sigaction(SIGPROF, &actions[handler], NULL);
            send_signal();
            if (handler == WALKER)
                depth = frames;
            uint64_t begin = now();
            for (int i = 0; i < BLOCK; i++)
                send_signal();
            if (round >= 0) /* the one before warms up */
                times[handler][round] = (double)(now() - begin) / BLOCK;
        }
    double empty = median(times[EMPTY], ROUNDS);
    for (int handler = 0; handler < HANDLERS; handler++) {
        double ns = present[handler] ? median(times[handler], ROUNDS) : 0;
        if (present[handler])
            printf("%s\t%u\t%.0f\t%.2f\n", names[handler], depth, ns, ns / empty);
    }
    if (flags)
        printf("# walker's flags: %u\n", flags);
}

/* One call deeper until the walker sees as many frames as wanted, then measure. */
__attribute__((noinline)) static void descend(uint32_t wanted)
{
    volatile char room[64];
    room[0] = (char)wanted;
    sigaction(SIGPROF, &actions[WALKER], NULL);
    send_signal();
    if (frames < wanted)
        descend(wanted);
    else
        measure();
    room[1] = room[0];
}

struct first { enum handler handler; double ns; };

static void *run_thread(void *argument)
{
    struct first *first = argument;
    find_bounds();
    uint64_t begin = now();
    send_signal();
    uint64_t between = now();
    for (int i = 0; i < BLOCK; i++)
        send_signal();
    first->ns = (double)(between - begin) - (double)(now() - between) / BLOCK;
    return NULL;
}

static void measure_first(enum handler handler)
{
    double ns[THREADS];
    sigaction(SIGPROF, &actions[handler], NULL);
    for (int i = -1; i < THREADS; i++) {
        struct first first = { handler, 0 };
        pthread_t thread;
        if (pthread_create(&thread, NULL, run_thread, &first))
            continue;
        pthread_join(thread, NULL);
        if (i >= 0)
            ns[i] = first.ns;
    }
    printf("%s, first in a thread, over warm\t\t%.0f\t\n", names[handler], median(ns, THREADS));
}

int main(int argc, char **argv)
{
    char error[128], file[64], out[64];
    (void)argc;
    if (lapse_unwind_init(error, sizeof error)) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    find_bounds();
    snprintf(file, sizeof file, "/tmp/lapse-bench-%d", getpid());
    snprintf(out, sizeof out, "/tmp/lapse-bench-session-%d", getpid());
    sent.si_code = SI_QUEUE;
    set_up_gperftools(file);
    signal(SIGPROF, SIG_DFL); /* gperftools and lapse each want to be alone */
    set_up_lapse(argv[0], out);
    actions[EMPTY].sa_sigaction = on_empty;
    actions[WALKER].sa_sigaction = on_walker;
    actions[TRAIL].sa_sigaction = on_trail;
    actions[BACKTRACE].sa_sigaction = on_backtrace;
    for (int handler = 0; handler < GPERFTOOLS; handler++) {
        if (handler == LAPSE)
            continue;
        actions[handler].sa_flags = SA_SIGINFO | SA_RESTART;
        sigfillset(&actions[handler].sa_mask);
    }
    printf("handler\tframes\tns\tratio to empty\n");
    descend(27);
    descend(60);
    for (int handler = 0; handler < HANDLERS; handler++)
        if (present[handler] &&
            handler != LAPSE) /* the tick that was caught is the main thread's */
            measure_first((enum handler)handler);
    finish_lapse(out);
    unlink(file);
    return 0;
}
