/* SPDX-License-Identifier: MIT */
/* unwind/walk: shapes of stacks that end in a known way. Frame-by-frame truth is the business of
 * tests/integration/unwind_compare. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "rules.h"
#include "trail.h"

enum { MAX = 512 };

static uint64_t pcs[MAX];
static struct lapse_walk walked;
static uint64_t cut_return_address; /* below the CFA where the last walk was cut */
static struct lapse_stack_bounds bounds;

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

static void set_up(void)
{
    char error[128];
    cr_assert_eq(lapse_unwind_init(error, sizeof error), 0, "%s", error);
    cr_assert_eq(lapse_unwind_init(error, sizeof error), 0, "a second time is free");
    find_bounds();
}

TestSuite(walk, .init = set_up);

__attribute__((noinline)) static void walk_here(uint32_t max)
{
    ucontext_t context;
    getcontext(&context);
    sigaltstack(NULL, &context.uc_stack); /* the kernel fills it in, getcontext does not */
    walked = (struct lapse_walk){ .pcs = pcs, .max = max, .stack = bounds };
    lapse_walk(&walked, &context);
    if (walked.cut_cfa)
        memcpy(&cut_return_address, (void *)(walked.cut_cfa - 8), 8);
}

__attribute__((noinline)) static void recurse(int depth, uint32_t max)
{
    if (depth)
        recurse(depth - 1, max);
    else
        walk_here(max);
    __asm__ volatile(""); /* no tail call */
}

static int count_in(void *function)
{
    int covered, count = 0;
    uint64_t start = lapse_unwind_function((uintptr_t)function, &covered);
    cr_assert(covered);
    for (uint32_t i = 0; i < walked.depth; i++)
        count += lapse_unwind_function(pcs[i] - (i > 0), &covered) == start;
    return count;
}

Test(walk, reaches_the_root_with_every_frame)
{
    recurse(30, MAX);
    cr_assert_eq(walked.flags, 0, "flags %u", walked.flags);
    cr_assert_eq(walked.cut_cfa, 0);
    cr_assert_eq(count_in((void *)recurse), 31);
    cr_assert_eq(count_in((void *)walk_here), 1);
}

Test(walk, cut_at_max_keeps_the_cfa_of_the_outermost_frame)
{
    recurse(30, 10);
    cr_assert_eq(walked.depth, 10);
    cr_assert_eq(walked.flags, LAPSE_WALK_TRUNCATED);
    recurse(30, MAX);
    cr_assert_eq(walked.flags, 0);
    cr_assert_eq(cut_return_address, pcs[10], "the frame cut off is the one above that CFA");
}

Test(walk, no_room_for_a_frame)
{
    recurse(3, 0);
    cr_assert_eq(walked.depth, 0);
}

Test(walk, stack_bounds_that_are_too_tight_end_it)
{
    struct lapse_stack_bounds whole = bounds;
    char here;
    bounds = (struct lapse_stack_bounds){ whole.low, (uintptr_t)&here };
    recurse(30, MAX);
    cr_assert_eq(walked.flags, LAPSE_WALK_FAILED);
    cr_assert_leq(count_in((void *)recurse), 31);
    bounds = whole;
}

Test(walk, unknown_bounds_are_read_as_a_foreign_stack)
{
    recurse(30, MAX);
    uint32_t depth = walked.depth;
    bounds = (struct lapse_stack_bounds){ 0, 0 };
    recurse(30, MAX);
    cr_assert_eq(walked.flags, LAPSE_WALK_FOREIGN, "flags %u", walked.flags);
    cr_assert_eq(walked.depth, depth);
}

static void on_signal(int signal)
{
    (void)signal;
    walk_here(MAX);
    __asm__ volatile(""); /* no tail call */
}

Test(walk, passes_signal_frames_on_the_alternate_stack)
{
    static char alternate[65536];
    stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate };
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
    sigaltstack(&stack, NULL);
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    cr_assert_eq(walked.flags, 0, "flags %u", walked.flags);
    cr_assert_eq(count_in((void *)on_signal), 1);
    cr_assert_eq(count_in((void *)raise), 1);
}

static ucontext_t main_context, coroutine;

static void coroutine_main(void)
{
    recurse(5, MAX);
    swapcontext(&coroutine, &main_context);
}

Test(walk, coroutine_stacks_are_foreign_and_complete)
{
    void *memory = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    getcontext(&coroutine);
    coroutine.uc_link = &main_context;
    coroutine.uc_stack = (stack_t){ .ss_sp = memory, .ss_size = 65536 };
    makecontext(&coroutine, coroutine_main, 0);
    swapcontext(&main_context, &coroutine);
    cr_assert_eq(walked.flags, LAPSE_WALK_FOREIGN, "flags %u", walked.flags);
    cr_assert_eq(count_in((void *)recurse), 6);
    cr_assert_eq(count_in((void *)coroutine_main), 1);
}

Test(walk, pc_and_sp_of_nonsense_do_no_harm)
{
    static const uint64_t values[] = {
        0, 1, 8, 0x1000, 0x7ffffffff000, 0x800000000000, UINT64_MAX, UINT64_MAX - 7
    };
    ucontext_t context;
    memset(&context, 0, sizeof context);
    getcontext(&context);
    for (unsigned pc = 0; pc < 9; pc++)
        for (unsigned sp = 0; sp < 9; sp++)
            for (unsigned bp = 0; bp < 9; bp++) {
                ucontext_t bent = context;
                if (pc < 8)
                    bent.uc_mcontext.gregs[REG_RIP] = (greg_t)values[pc];
                if (sp < 8)
                    bent.uc_mcontext.gregs[REG_RSP] = (greg_t)values[sp];
                if (bp < 8)
                    bent.uc_mcontext.gregs[REG_RBP] = (greg_t)values[bp];
                walked = (struct lapse_walk){ .pcs = pcs, .max = MAX, .stack = bounds };
                lapse_walk(&walked, &bent);
                cr_assert(walked.depth >= 1 && walked.depth <= MAX);
            }
}

Test(walk, forgotten_rules_are_asked_again)
{
    recurse(5, MAX);
    uint32_t depth = walked.depth;
    uint64_t key = pcs[1] - 1, epoch = lapse_rule_cache_epoch();
    uint64_t rule = lapse_rule_cache_find(epoch, key);
    cr_assert_neq(rule, 0);
    for (int i = 0; i < 200000; i++) { /* once round the epochs that fit into a key */
        lapse_unwind_forget();
        if (i % 20011 == 0)
            cr_assert_eq(lapse_rule_cache_find(lapse_rule_cache_epoch(), key), 0, "stale at %d", i);
    }
    recurse(5, MAX);
    cr_assert_eq(walked.depth, depth);
    cr_assert_eq(lapse_rule_cache_find(lapse_rule_cache_epoch(), key), rule);
}

Test(walk, closed_gate_cuts_and_says_so)
{
    recurse(1, MAX);
    lapse_unwind_forget();
    cr_assert_eq(lapse_unwind_hold(), 0);
    cr_assert_lt(lapse_unwind_hold(), 0);
    recurse(1, MAX);
    cr_assert_eq(walked.flags, LAPSE_WALK_GATE_CLOSED);
    cr_assert_eq(walked.depth, 1);
    lapse_unwind_release();
    recurse(1, MAX);
    cr_assert_eq(walked.flags, 0);
}

Test(walk, full_cache_is_counted)
{
    /* More keys than places, all in one stretch of a library without pause. */
    uint64_t before = lapse_unwind_cache_full();
    uint64_t keys = (uint64_t)LAPSE_CACHE_BUCKETS * LAPSE_CACHE_WAYS * 5 / 4;
    cr_assert_eq(lapse_unwind_hold(), 0);
    for (uint64_t key = 1; key <= keys; key++)
        lapse_rule_cache_store(lapse_rule_cache_epoch(), key * 16, LAPSE_RULE_OUTERMOST, 0);
    lapse_unwind_release();
    cr_assert_gt(lapse_unwind_cache_full(), before);
    lapse_unwind_forget();
    recurse(5, MAX);
    cr_assert_eq(walked.flags, 0);
}

static size_t touched_pages(void)
{
    static unsigned char resident[1024];
    size_t size = LAPSE_CACHE_BUCKETS * (sizeof(struct lapse_cache_bucket) + LAPSE_CACHE_WAYS * sizeof(uint64_t));
    size_t touched = 0;
    cr_assert_leq(size / 4096, sizeof resident);
    cr_assert_eq(mincore(lapse_rule_cache.buckets, size, resident), 0);
    for (size_t i = 0; i < size / 4096; i++)
        touched += resident[i] & 1;
    return touched;
}

Test(walk, cache_memory_follows_the_code)
{
    /* Sixteen pages of hot code, a fifth of whose addresses were seen: a page of rules each, and of
     * starts, and little else. Every one is found again. */
    enum { PAGES = 16, EACH = 200 };
    size_t before = touched_pages();
    uint64_t epoch = lapse_rule_cache_epoch(), start, rule;
    cr_assert_eq(lapse_unwind_hold(), 0);
    for (uint64_t i = 0; i < PAGES * EACH; i++)
        lapse_rule_cache_store(epoch, 0x55550000 + i / EACH * 0x3000 + i % EACH * 5, i + 1, i);
    lapse_unwind_release();
    for (uint64_t i = 0; i < PAGES * EACH; i++) {
        uint64_t key = 0x55550000 + i / EACH * 0x3000 + i % EACH * 5;
        cr_assert_eq(lapse_rule_cache_find(epoch, key), i + 1, "address %lu of %d", i, PAGES * EACH);
        cr_assert(lapse_rule_cache_start(key, &start, &rule) && start == i && rule == i + 1);
    }
    size_t touched = touched_pages() - before;
    cr_assert_leq(touched, PAGES * 4, "%zu pages for %d pages of code", touched, PAGES);
}

Test(walk, function_of_nothing)
{
    int covered = 1;
    cr_assert_eq(lapse_unwind_function(8, &covered), 0);
    cr_assert_eq(covered, 0);
}

/* The trail of the walks before must change nothing about a walk, whatever happened in between. */
static struct lapse_trail trail;
static uint64_t trailed[MAX];

__attribute__((noinline)) static void walk_both_ways(uint32_t max)
{
    ucontext_t context;
    getcontext(&context);
    sigaltstack(NULL, &context.uc_stack);
    walked = (struct lapse_walk){ .pcs = pcs, .max = max, .stack = bounds };
    lapse_walk(&walked, &context);
    struct lapse_walk again = { .pcs = trailed, .max = max, .stack = bounds, .trail = &trail };
    for (int i = 0; i < 2; i++) { /* the second time over its own trail */
        lapse_walk(&again, &context);
        cr_assert_eq(again.depth, walked.depth, "%u frames, %u without a trail", again.depth, walked.depth);
        cr_assert_eq(again.flags, walked.flags);
        cr_assert_eq(again.cut_cfa, walked.cut_cfa);
        cr_assert_arr_eq(trailed, pcs, walked.depth * sizeof *pcs);
    }
}

/* Two callers whose frames are alike, so that the same callee stands at the same place under either. */
static uint64_t dice = 88172645463325252u;
static void roll(int depth, uint32_t max);

__attribute__((noinline)) static void left(int depth, uint32_t max)
{
    roll(depth, max);
    __asm__ volatile("");
}

__attribute__((noinline)) static void right(int depth, uint32_t max)
{
    roll(depth, max);
    __asm__ volatile("");
}

__attribute__((noinline)) static void wide(int depth, uint32_t max)
{
    volatile char *room = __builtin_alloca(16 + dice % 7 * 16); /* a frame by RBP, of changing size */
    room[0] = 1;
    roll(depth, max);
    room[0] = 2;
}

__attribute__((noinline)) static void roll(int depth, uint32_t max)
{
    static void (*const callees[])(int, uint32_t) = { left, right, wide };
    dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
    if (depth)
        callees[dice % 3](depth - 1, max);
    else
        walk_both_ways(max);
    __asm__ volatile("");
}

Test(walk, a_trail_changes_nothing)
{
    for (int i = 0; i < 3000; i++) {
        dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
        left((int)(dice % 40), MAX);
        if (i % 100 == 0)
            lapse_unwind_forget();
    }
}

Test(walk, a_trail_changes_nothing_about_cut_stacks)
{
    for (int i = 0; i < 3000; i++) {
        dice ^= dice << 13, dice ^= dice >> 7, dice ^= dice << 17;
        left((int)(dice % 40), 8 + (uint32_t)(dice >> 20) % 60);
    }
}

/* More frames than a trail holds, then few, then many again. */
Test(walk, a_trail_changes_nothing_about_deep_stacks)
{
    static const int depths[] = { 3, 100, 126, 200, 5, 150, 40 };
    for (int i = 0; i < 200; i++)
        left(depths[i % 7], MAX);
    cr_assert_gt(walked.depth, 0);
}
