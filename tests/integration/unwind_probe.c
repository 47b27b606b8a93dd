/* SPDX-License-Identifier: MIT */
/* Preloaded into a program: at random moments the stack is walked by lapse and by a plain unw_step
 * loop from the same ucontext, and the two are compared frame by frame. At exit one line goes to the
 * file that UNWIND_PROBE_OUT names:
 *
 *   samples N agree N differ N guessed N failed N root N passed_over N untrue_trails N
 *
 * agree: every pc is the same up to where unw_step stops, or to the first pc that is a guess (there
 * unw_step guesses too, and without checking). Passed over: the loader was running, whose lock
 * unw_step would wait for. Untrue trails: walks with the trail of the walks before them that gave
 * anything else than the same walk without one. */
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <errno.h>
#include <libunwind.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "trail.h"

enum { FRAMES_MAX = 1024, SHOWN_MAX = 8, INTERVAL_NS = 400000 };

static struct { uint64_t samples, agree, differ, guessed, failed, root, passed_over, untrue_trails; } counts;
static struct {
    uint32_t depth, flags, their_depth;
    uint64_t ours[FRAMES_MAX], theirs[FRAMES_MAX];
} shown[SHOWN_MAX];
static struct lapse_stack_bounds main_bounds;
static uint64_t ours[FRAMES_MAX], theirs[FRAMES_MAX], trailed[FRAMES_MAX];
static struct lapse_trail trail;
static timer_t timer;
static uint64_t random_state = 88172645463325252u;
static pid_t owner;

static void arm(void)
{
    random_state ^= random_state << 13, random_state ^= random_state >> 7,
        random_state ^= random_state << 17;
    struct itimerspec next = { .it_value.tv_nsec =
                                   (long)(INTERVAL_NS / 4 + random_state % INTERVAL_NS) };
    timer_settime(timer, 0, &next, NULL);
}

static int is_loader(uint64_t pc)
{
    struct dl_find_object object;
    return !_dl_find_object((void *)pc, &object) && object.dlfo_link_map->l_name &&
           strstr(object.dlfo_link_map->l_name, "ld-linux");
}

static uint32_t walk_by_libunwind(void *context)
{
    unw_cursor_t cursor;
    unw_word_t pc;
    uint32_t depth = 0;
    if (unw_init_local2(&cursor, context, UNW_INIT_SIGNAL_FRAME) < 0)
        return 0;
    do {
        unw_get_reg(&cursor, UNW_REG_IP, &pc);
        if (pc)
            theirs[depth++] = pc;
    } while (depth < FRAMES_MAX && pc && unw_step(&cursor) > 0);
    return depth;
}

static int agree(const struct lapse_walk *walk, uint32_t their_depth)
{
    for (uint32_t i = 0; i < walk->depth; i++) {
        if (ours[i] & LAPSE_PC_GUESSED)
            return 1;
        if (i == their_depth)
            return 1;
        if (ours[i] != theirs[i])
            return 0;
    }
    /* Ours is the shorter: it must have said that it was cut. */
    return walk->depth == their_depth || walk->flags;
}

static void compare(const struct lapse_walk *walk, void *context)
{
    for (uint32_t i = 0; i < walk->depth; i++)
        if (is_loader(ours[i] & ~LAPSE_PC_GUESSED)) {
            counts.passed_over++;
            return;
        }
    uint32_t their_depth = walk_by_libunwind(context);
    counts.samples++;
    counts.guessed += !!(walk->flags & LAPSE_WALK_GUESSED);
    counts.failed += !!(walk->flags & LAPSE_WALK_FAILED);
    counts.root += !(walk->flags & ~(uint32_t)(LAPSE_WALK_GUESSED | LAPSE_WALK_FOREIGN));
    if (agree(walk, their_depth)) {
        counts.agree++;
    }
    if (!agree(walk, their_depth) || (walk->flags & LAPSE_WALK_FAILED)) {
        if (counts.differ + counts.failed <= SHOWN_MAX) {
            unsigned i = (unsigned)(counts.differ + counts.failed - 1) % SHOWN_MAX;
            shown[i].depth = walk->depth;
            shown[i].flags = walk->flags;
            shown[i].their_depth = their_depth;
            memcpy(shown[i].ours, ours, walk->depth * sizeof *ours);
            memcpy(shown[i].theirs, theirs, their_depth * sizeof *theirs);
        }
    }
    counts.differ += !agree(walk, their_depth);
}

static void on_tick(int signal, siginfo_t *info, void *context)
{
    int error = errno;
    (void)signal, (void)info;
    if (gettid() == owner) { /* the counters have one writer */
        struct lapse_walk walk = { .pcs = ours, .max = FRAMES_MAX, .stack = main_bounds };
        lapse_walk(&walk, context);
        struct lapse_walk again = { .pcs = trailed, .max = FRAMES_MAX, .stack = main_bounds, .trail = &trail };
        lapse_walk(&again, context);
        counts.untrue_trails += again.depth != walk.depth || again.flags != walk.flags ||
                                again.cut_cfa != walk.cut_cfa ||
                                memcmp(ours, trailed, walk.depth * sizeof *ours) != 0;
        compare(&walk, context);
    }
    arm();
    errno = error;
}

__attribute__((constructor)) static void start(void)
{
    char error[128];
    pthread_attr_t attributes;
    void *low;
    size_t size;
    if (!getenv("UNWIND_PROBE_OUT") || lapse_unwind_init(error, sizeof error))
        return;
    owner = gettid();
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    main_bounds = (struct lapse_stack_bounds){ (uintptr_t)low, (uintptr_t)low + size };
    struct sigaction action = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
    sigfillset(&action.sa_mask);
    sigaction(SIGPROF, &action, NULL);
    struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGPROF };
    event._sigev_un._tid = owner;
    if (!timer_create(CLOCK_MONOTONIC, &event, &timer))
        arm();
}

static void show(FILE *file, const char *whose, const uint64_t *pcs, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++) {
        Dl_info info = { 0 };
        dladdr((void *)(pcs[i] & ~LAPSE_PC_GUESSED), &info);
        fprintf(file, "#  %s %#lx %s %s+%#lx\n", whose, pcs[i],
                info.dli_sname ? info.dli_sname : "?", info.dli_fname ? info.dli_fname : "?",
                (pcs[i] & ~LAPSE_PC_GUESSED) - (uintptr_t)info.dli_fbase);
    }
}

__attribute__((destructor)) static void stop(void)
{
    const char *path = getenv("UNWIND_PROBE_OUT");
    if (!path || getpid() != owner)
        return;
    timer_delete(timer);
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file,
            "samples %lu agree %lu differ %lu guessed %lu failed %lu root %lu passed_over %lu "
            "untrue_trails %lu\n",
            counts.samples, counts.agree, counts.differ, counts.guessed, counts.failed, counts.root,
            counts.passed_over, counts.untrue_trails);
    for (unsigned i = 0; i < SHOWN_MAX && shown[i].depth; i++) {
        fprintf(file, "# flags %u\n", shown[i].flags);
        show(file, "ours  ", shown[i].ours, shown[i].depth);
        show(file, "theirs", shown[i].theirs, shown[i].their_depth);
    }
    fclose(file);
}
