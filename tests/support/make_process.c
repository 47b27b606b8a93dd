/* SPDX-License-Identifier: MIT */
/* Whole made-up recordings: random stacks over made-up functions; see make_recording.h. */
#include <stdio.h>
#include <stdlib.h>

#include "make_recording.h"

#define START_NS UINT64_C(1000000000)
#define MODULE_BYTES UINT64_C(0x10000000)
#define FUNCTION_BYTES 64u

enum { PSEUDO_TRUNCATED = 1, PSEUDO_NOT_SAMPLED = 3 };

struct process {
    struct lapse_test_recording numbers;
    struct lapse_test_spool *spool;
    uint64_t random;
    struct stack { uint32_t node, depth; uint64_t function; uint32_t parent; uint64_t site; } *stacks;
    uint32_t stack_count;
    /* For walks: stacks in depth-first order, and for each its place in it and how many extend it. */
    uint32_t *order, *place, *extent;
    uint32_t late_node;
};

/* splitmix64 */
static uint64_t next_random(struct process *process)
{
    uint64_t value = process->random += 0x9e3779b97f4a7c15u;
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
    value = (value ^ value >> 27) * 0x94d049bb133111ebu;
    return value ^ value >> 31;
}

static uint32_t below(struct process *process, uint32_t limit)
{
    return (uint32_t)(next_random(process) % limit);
}

static uint64_t module_start(uint32_t module)
{
    return UINT64_C(0x550000000000) + module * MODULE_BYTES;
}

static uint64_t function_address(const struct process *process, uint32_t function)
{
    uint32_t modules = process->numbers.modules;
    return module_start(function % modules) + 0x1000 + (uint64_t)(function / modules) * FUNCTION_BYTES;
}

static void put_modules(struct process *process)
{
    char path[64];
    for (uint32_t i = 0; i < process->numbers.modules; i++) {
        snprintf(path, sizeof path, i ? "/usr/lib/libmade%u.so" : "/usr/bin/made", i);
        lapse_test_spool_module(process->spool, i + 1, path, module_start(i),
                                module_start(i) + MODULE_BYTES, module_start(i), 0, 0);
    }
}

static void put_symbols(struct process *process)
{
    char name[64];
    for (uint32_t i = 0; i < process->numbers.functions; i++) {
        snprintf(name, sizeof name, i % 5 == 4 ? "made::type<int, %u>::call(char const*)" : "function_%u", i);
        lapse_test_spool_symbol(process->spool, function_address(process, i), FUNCTION_BYTES, name, 0, 0);
    }
}

static void add_stack(struct process *process, uint32_t parent, uint32_t parent_depth,
                      uint64_t parent_function)
{
    struct stack *stack = &process->stacks[process->stack_count++];
    uint64_t site = parent_function ? parent_function + 8 + 4 * below(process, 4) : 0;
    uint64_t function = function_address(process, below(process, process->numbers.functions));
    *stack = (struct stack){
        .node = lapse_test_spool_node(process->spool, parent, site, function, below(process, 50) == 0),
        .depth = parent_depth + 1, .function = function, .parent = parent, .site = site,
    };
}

/* Each stack is a random earlier one with one frame more, so that prefixes are shared as in life. */
static void put_stacks(struct process *process)
{
    uint32_t cut = 0;
    if (process->numbers.late)
        process->late_node = lapse_test_spool_node(process->spool, 0, 0, PSEUDO_NOT_SAMPLED, 0);
    if (process->numbers.cut)
        cut = lapse_test_spool_node(process->spool, 0, 0, PSEUDO_TRUNCATED, 0);
    while (process->stack_count < process->numbers.stacks) {
        uint32_t count = process->stack_count;
        /* Young stacks are extended more often: deep trees instead of bushes. */
        const struct stack *from = count ? &process->stacks[count - 1 - below(process, count / 4 + 1)] : NULL;
        if (!from || from->depth >= process->numbers.depth)
            add_stack(process, cut && count % 16 == 15 ? cut : 0, cut && count % 16 == 15, 0);
        else
            add_stack(process, from->node, from->depth, from->function);
    }
}

static void put_lines(struct process *process)
{
    for (uint32_t i = 0; i < process->stack_count; i += 3) {
        const struct lapse_test_frame frames[] = {
            { "outer", "/src/made.c", 10 + i % 90 }, { "made_inline", "/src/made.h", 5 },
        };
        lapse_test_spool_address(process->spool, process->stacks[i].function + 8, i % 2, frames, 2);
    }
}

static void put_raw(struct process *process, uint32_t thread, uint64_t time_ns)
{
    for (uint32_t i = 0; i < 3; i++) {
        uint64_t pcs[2] = { process->stacks[i].function + 4, function_address(process, i) + 8 };
        lapse_test_spool_raw(process->spool, thread, time_ns + i * process->numbers.period_ns,
                             process->numbers.period_ns, pcs, 2, 0);
    }
}

/* Number of the stack that a stack extends, plus one; 0: none, or a pseudo-frame. */
static uint32_t outer(const struct process *process, uint32_t stack)
{
    uint32_t first = process->stacks[0].node, parent = process->stacks[stack].parent;
    return parent < first ? 0 : parent - first + 1;
}

/* Depth-first order. Stacks that are extended come before those that extend them. */
static void order_stacks(struct process *process)
{
    uint32_t count = process->stack_count;
    uint32_t *next = calloc(count + 1, sizeof *next); /* free place below each stack, by number plus one */
    process->order = calloc(count + 1, sizeof *process->order);
    process->place = calloc(count + 1, sizeof *process->place);
    process->extent = calloc(count + 1, sizeof *process->extent);
    if (!next || !process->order || !process->place || !process->extent) {
        fputs("make_recording: no memory\n", stderr);
        exit(2);
    }
    for (uint32_t i = count; i-- > 0;) {
        process->extent[i]++;
        if (outer(process, i))
            process->extent[outer(process, i) - 1] += process->extent[i];
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t place = process->place[i] = next[outer(process, i)];
        next[outer(process, i)] += process->extent[i];
        next[i + 1] = place + 1;
        process->order[place] = i;
    }
    free(next);
}

/* A few calls return, then one of the stacks that extend what is left is taken; now and then something
 * else begins. */
static uint32_t walk(struct process *process, uint32_t stack)
{
    if (below(process, 12) == 0)
        return below(process, process->stack_count);
    for (uint32_t up = below(process, 6); up && outer(process, stack); up--)
        stack = outer(process, stack) - 1;
    return process->order[process->place[stack] + below(process, process->extent[stack])];
}

static void put_thread(struct process *process, uint32_t thread, uint32_t count)
{
    const struct lapse_test_recording *numbers = &process->numbers;
    struct lapse_test_sample *samples = calloc(count + 1, sizeof *samples);
    uint64_t time_ns = START_NS + process->spool->shift_ns + 1000 * thread;
    uint32_t stack = below(process, process->stack_count);
    if (!samples) {
        fputs("make_recording: no memory\n", stderr);
        exit(2);
    }
    for (uint32_t i = 0; i < count; i++) {
        /* Mostly a neighbour of the stack before; the squared draw makes some stacks hot. */
        if (numbers->walk) {
            stack = walk(process, stack);
        } else if (below(process, 3) == 0) {
            uint64_t draw = below(process, 1u << 16);
            stack = (uint32_t)(draw * draw * process->stack_count >> 32);
        }
        uint32_t ticks = below(process, 10) == 0 ? 2 : 1;
        bool late = numbers->late && below(process, 40) == 0;
        time_ns += ticks * numbers->period_ns;
        samples[i] = (struct lapse_test_sample){
            .time_ns = time_ns, .weight_ns = ticks * numbers->period_ns,
            .node = late ? process->late_node : process->stacks[stack].node,
            .leaf_pc = late ? 0 : process->stacks[stack].function + 8 + 4 * below(process, numbers->leaf_pcs),
            .labels = numbers->labels ? i % 3 : 0,
        };
    }
    if (count)
        lapse_test_spool_samples(process->spool, thread, samples, count);
    if (numbers->raw)
        put_raw(process, thread, time_ns + numbers->period_ns);
    if (numbers->spans)
        lapse_test_spool_span(process->spool, thread, START_NS + process->spool->shift_ns, time_ns,
                               "request");
    free(samples);
}

static void put_process(struct process *process, uint32_t index)
{
    const struct lapse_test_recording *numbers = &process->numbers;
    const uint64_t counters[][2] = { { 1, numbers->samples }, { 3, numbers->samples }, { 0, 0 } };
    char name[32];
    if (numbers->runs) {
        process->spool->run_index = index;
        process->spool->shift_ns = index * UINT64_C(100000000000);
    }
    lapse_test_spool_header(process->spool, 1000 + index, "/usr/bin/made", numbers->period_ns);
    put_modules(process);
    for (uint32_t i = 0; i < numbers->threads; i++) {
        snprintf(name, sizeof name, i ? "worker-%u" : "made", i);
        lapse_test_spool_thread(process->spool, i + 1, 1000 * (index + 1) + i, name);
    }
    if (numbers->labels) {
        lapse_test_spool_labels(process->spool, 1, "request", "alpha");
        lapse_test_spool_labels(process->spool, 2, "request", "beta");
    }
    put_stacks(process);
    if (numbers->walk)
        order_stacks(process);
    for (uint32_t i = 0; i < numbers->threads; i++)
        put_thread(process, i + 1, numbers->samples / numbers->threads +
                                       (i < numbers->samples % numbers->threads));
    if (!numbers->no_symbols)
        put_symbols(process);
    if (numbers->lines)
        put_lines(process);
    lapse_test_spool_counters(process->spool, counters);
    if (!numbers->no_end)
        lapse_test_spool_end(process->spool, 1, 0, START_NS + process->spool->shift_ns +
                                                    numbers->samples * numbers->period_ns * 2,
                             numbers->samples * numbers->period_ns, numbers->period_ns);
    lapse_test_spool_commit(process->spool);
}

static void set_default(uint32_t *number, uint32_t value)
{
    if (!*number)
        *number = value;
}

void lapse_test_make_recording(const char *path, const struct lapse_test_recording *recording)
{
    struct lapse_test_spool spool;
    struct lapse_test_recording numbers = *recording;
    set_default(&numbers.processes, 1);
    set_default(&numbers.threads, 2);
    set_default(&numbers.stacks, 100);
    set_default(&numbers.samples, 1000);
    set_default(&numbers.depth, 20);
    set_default(&numbers.functions, numbers.stacks / 2 + 1);
    set_default(&numbers.modules, 3);
    set_default(&numbers.leaf_pcs, 8);
    if (!numbers.period_ns)
        numbers.period_ns = 5000000;
    lapse_test_spool_open(&spool, path);
    spool.build = (uint8_t)(numbers.build * 16);
    for (uint32_t i = 0; i < numbers.processes; i++) {
        struct process process = { .numbers = numbers, .spool = &spool, .random = numbers.seed + i };
        process.stacks = calloc(numbers.stacks, sizeof *process.stacks);
        if (!process.stacks) {
            fputs("make_recording: no memory\n", stderr);
            exit(2);
        }
        put_process(&process, i);
        free(process.stacks);
        free(process.order);
        free(process.place);
        free(process.extent);
    }
    lapse_test_spool_close(&spool);
}
