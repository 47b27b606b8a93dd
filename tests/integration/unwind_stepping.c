/* SPDX-License-Identifier: MIT */
/* Walks at every single instruction, by the processor's trap flag, of what few samples meet: the loader
 * binding a function at its first call, an exception from its throw to its landing (unwind_throw.cc), both
 * ends of functions that have a frame pointer and no unwind information (unwind_remnant.c).
 *
 * usage: unwind_stepping [v]. Prints TSV: what, steps, how many reach the root, with all callers in between
 * that are known, by a guess; with v, on stderr, the stacks of those that do not. Exit status 1 when too few do. */
#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "unwind_remnant.h"
#include "walk.h"

void throw_and_catch(void (*begin)(void), void (*end)(void));

enum { MAX = 256 };
static uint64_t pcs[MAX];
static struct lapse_stack_bounds bounds;
static uint64_t root, beginner; /* starts of functions */
static int verbose, stepping;

static struct { long steps, roots, whole, guessed; } count;

static uint64_t function_of(const struct lapse_walk *walk, uint32_t i)
{
    int covered;
    return lapse_unwind_function((walk->pcs[i] & ~LAPSE_PC_GUESSED) - (i > 0), &covered);
}

static void show(const struct lapse_walk *walk)
{
    for (uint32_t i = 0; i < walk->depth; i++) {
        Dl_info info = { 0 };
        uintptr_t pc = walk->pcs[i] & ~LAPSE_PC_GUESSED;
        dladdr((void *)pc, &info);
        fprintf(stderr, "%s+%lx ", info.dli_fname ? info.dli_fname : "?", pc - (uintptr_t)info.dli_fbase);
    }
    fprintf(stderr, "flags %u\n", walk->flags);
}

/* The frames from the interrupted one on are those of the library, none left out. */
static int remnant_is_whole(const struct lapse_walk *walk)
{
    const uintptr_t starts[] = { (uintptr_t)remnant_leaf, (uintptr_t)remnant_middle, (uintptr_t)remnant_outer,
                                 (uintptr_t)remnant_run, (uintptr_t)remnant_end };
    enum { FUNCTIONS = sizeof starts / sizeof starts[0] - 1 };
    uint32_t seen[FUNCTIONS] = { 0 };
    int innermost = FUNCTIONS;
    for (uint32_t i = 0; i < walk->depth; i++)
        for (int k = 0; k < FUNCTIONS; k++)
            if ((pcs[i] & ~LAPSE_PC_GUESSED) >= starts[k] && (pcs[i] & ~LAPSE_PC_GUESSED) < starts[k + 1]) {
                innermost = i ? innermost : k;
                seen[k]++;
            }
    if (innermost == FUNCTIONS) /* before it, or behind */
        return 1;
    /* The leaf is called by the one in the middle and by the outer one. */
    return seen[3] == 1 && (innermost == 3 || seen[2] == 1) && (innermost != 1 || seen[1] == 1);
}

static void on_trap(int signal, siginfo_t *info, void *context)
{
    struct lapse_walk walk = { .pcs = pcs, .max = MAX, .stack = bounds };
    (void)signal, (void)info;
    lapse_walk(&walk, context);
    uint64_t outermost = function_of(&walk, walk.depth - 1);
    if (!root)
        root = outermost;
    if (!stepping) /* before the instruction that ends it takes effect */
        return;
    int whole = 0;
    for (uint32_t i = 0; i < walk.depth; i++)
        whole |= function_of(&walk, i) == beginner;
    whole = whole && remnant_is_whole(&walk);
    int reached = outermost == root && !(walk.flags & (LAPSE_WALK_FAILED | LAPSE_WALK_GATE_CLOSED));
    count.steps++;
    count.roots += reached;
    count.whole += whole;
    count.guessed += (walk.flags & LAPSE_WALK_GUESSED) != 0;
    if (verbose && !(reached && whole))
        show(&walk);
}

static void begin(void)
{
    stepping = 1;
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static void end(void)
{
    stepping = 0;
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}

__attribute__((noinline)) static void bind_lazily(void)
{
    begin();
    const char *version = gnu_get_libc_version();
    end();
    if (!*version)
        exit(2);
}

__attribute__((noinline)) static void land(void)
{
    throw_and_catch(begin, end);
    __asm__ volatile(""); /* no tail call */
}

__attribute__((noinline)) static void leave_tables(void)
{
    if (!remnant_run(begin, end))
        exit(2);
}

static int report(const char *what, void (*function)(void), double least)
{
    int covered;
    count.steps = count.roots = count.whole = count.guessed = 0;
    beginner = lapse_unwind_function((uintptr_t)function, &covered);
    function();
    double roots = 100.0 * (double)count.roots / (double)count.steps;
    double whole = 100.0 * (double)count.whole / (double)count.steps;
    printf("%s\t%ld steps\t%.3f %% reach the root\t%.3f %% whole\t%ld guessed\n", what, count.steps, roots,
           whole, count.guessed);
    return count.steps < 100 || roots < least || whole < least;
}

int main(int argc, char **argv)
{
    char error[128];
    pthread_attr_t attributes;
    void *low;
    size_t size;
    struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
    (void)argv;
    verbose = argc > 1;
    if (lapse_unwind_init(error, sizeof error)) {
        puts(error);
        return 77;
    }
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    bounds = (struct lapse_stack_bounds){ (uintptr_t)low, (uintptr_t)low + size };
    sigaction(SIGTRAP, &action, NULL);
    raise(SIGTRAP);
    int failed = report("lazy binding", bind_lazily, 100);
    failed |= report("first throw", land, 99.9);
    failed |= report("second throw", land, 99.9);
    failed |= report("without unwind information", leave_tables, 100);
    return failed;
}
