/* SPDX-License-Identifier: MIT */
/* Coroutines: swapcontext between small stacks, a hand-written switch that says nothing to unwinders,
 * stacks that are unmapped right after their last use, and one below memory whose page faults the program
 * itself would have to serve. */
#include "host.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

/* Assembly that says nothing to unwinders: who searches the stack for its caller comes past the end. */
void host_spin(unsigned long rounds);
__asm__(".text\n.globl host_spin\n.type host_spin, @function\n"
        "host_spin:\n    push $0\n1:  dec %rdi\n    jnz 1b\n    pop %rdi\n    ret\n"
        ".size host_spin, . - host_spin\n");

static void spin_on(int unused)
{
    (void)unused;
    int64_t end = host_clock_us(CLOCK_THREAD_CPUTIME_ID) + 100000;
    while (host_clock_us(CLOCK_THREAD_CPUTIME_ID) < end)
        host_spin(2000000);
}

/* Nobody serves the faults: one that is caused by somebody else stops the program for good. */
static void run_below_served(void)
{
    enum { TOUCHED = 65536, ALL = 8 * TOUCHED };
    struct uffdio_api api = { .api = UFFD_API };
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return; /* not permitted */
    char *memory = mmap(NULL, ALL, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register served = { .range = { (uintptr_t)memory, ALL }, .mode = UFFDIO_REGISTER_MODE_MISSING };
    memset(memory, 0, TOUCHED);
    if (ioctl(fd, UFFDIO_API, &api) == 0 && ioctl(fd, UFFDIO_REGISTER, &served) == 0) {
        struct pollfd faults = { fd, POLLIN, 0 };
        getcontext(&contexts[0]);
        contexts[0].uc_stack.ss_sp = memory;
        contexts[0].uc_stack.ss_size = TOUCHED;
        contexts[0].uc_link = &scheduler;
        makecontext(&contexts[0], (void (*)(void))(uintptr_t)spin_on, 1, 0);
        swapcontext(&scheduler, &contexts[0]);
        HOST_CHECK(poll(&faults, 1, 0) == 0, "somebody reads where the program does not");
    }
    close(fd);
    munmap(memory, ALL);
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
    run_below_served();
    HOST_CHECK(bare_steps > 100 && bare_steps % 100 == 0, "%ld bare steps", bare_steps);
    return host_end();
}
