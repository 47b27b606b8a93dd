/* SPDX-License-Identifier: MIT */
/* Coroutines: swapcontext between small stacks, a hand-written switch that says nothing to unwinders,
 * and stacks that are unmapped right after their last use. */
#include "host.h"

#include <sys/mman.h>
#include <ucontext.h>

enum { SIZE = 32768, COROUTINES = 6 };
static ucontext_t scheduler, contexts[COROUTINES];
static long steps[COROUTINES];

static void *map_stack(void)
{
    char *memory = mmap(NULL, SIZE + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, 4096, PROT_NONE);
    return memory + 4096;
}

static void routine(int self)
{
    for (;;) {
        for (volatile int i = 0; i < 300; i++)
            ;
        steps[self]++;
        swapcontext(&contexts[self], &scheduler);
    }
}

/* void host_switch(void **save, void *stack): pushes the saved registers, changes rsp, pops. Bare of
 * unwind information and with rbp as data on the way. */
void host_switch(void **save, void *stack);
__asm__(".text\n.globl host_switch\n.type host_switch, @function\n"
        "host_switch:\n"
        "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
        "    mov $1, %ebp\n"
        "    mov %rsp, (%rdi)\n    mov %rsi, %rsp\n"
        "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
        "    ret\n"
        ".size host_switch, . - host_switch\n");

static void *main_stack, *other_stack;
static long bare_steps;

static void bare_routine(void)
{
    for (;;) {
        for (volatile int i = 0; i < 300; i++)
            ;
        bare_steps++;
        host_switch(&other_stack, main_stack);
    }
}

static void run_bare(int64_t us, long rounds_before_unmap)
{
    int64_t end = host_clock_us(CLOCK_THREAD_CPUTIME_ID) + us;
    while (host_clock_us(CLOCK_THREAD_CPUTIME_ID) < end) {
        char *memory = map_stack();
        void **top = (void **)(void *)(memory + SIZE) - 8;
        memset(top, 0, 64);
        top[6] = (void *)(uintptr_t)bare_routine;
        other_stack = top;
        for (long i = 0; i < rounds_before_unmap; i++)
            host_switch(&main_stack, other_stack);
        munmap(memory - 4096, SIZE + 4096);
    }
}

int main(void)
{
    volatile long rounds = 0;
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = map_stack();
        contexts[i].uc_stack.ss_size = SIZE;
        contexts[i].uc_link = &scheduler;
        makecontext(&contexts[i], (void (*)(void))(uintptr_t)routine, 1, i);
    }
    int64_t end = host_clock_us(CLOCK_THREAD_CPUTIME_ID) + 250000;
    for (; host_clock_us(CLOCK_THREAD_CPUTIME_ID) < end; rounds++)
        for (int i = 0; i < COROUTINES; i++)
            swapcontext(&scheduler, &contexts[i]);
    for (int i = 0; i < COROUTINES; i++)
        HOST_CHECK(steps[i] == rounds, "coroutine %d: %ld steps of %ld", i, steps[i], rounds);
    run_bare(250000, 100);
    HOST_CHECK(bare_steps > 100 && bare_steps % 100 == 0, "%ld bare steps", bare_steps);
    return host_end();
}
