/* SPDX-License-Identifier: MIT */
/* unwind/guess, resolve, memory: frames of code made at run time, kernels that refuse to read for us,
 * and how much stack all this takes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "memory.h"
#include "modules.h"
#include "resolve.h"
#include "walk.h"

enum { MAX = 128 };

static uint64_t pcs[MAX];
static struct lapse_walk walked;
static struct lapse_stack_bounds bounds;

static void set_up(void)
{
    char error[128];
    pthread_attr_t attributes;
    void *low;
    size_t size;
    cr_assert_eq(lapse_unwind_init(error, sizeof error), 0, "%s", error);
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
    bounds = (struct lapse_stack_bounds){ (uintptr_t)low, (uintptr_t)low + size };
}

TestSuite(guess, .init = set_up);

__attribute__((noinline)) static void walk_here(void)
{
    ucontext_t context;
    getcontext(&context);
    sigaltstack(NULL, &context.uc_stack);
    walked = (struct lapse_walk){ .pcs = pcs, .max = MAX, .stack = bounds };
    lapse_walk(&walked, &context);
    __asm__ volatile("" ::: "memory");
}

/* Code that calls what RDI points at, at `to`; returns its length. */
static size_t emit(uint8_t *to, int with_frame_pointer)
{
    static const uint8_t framed[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
    static const uint8_t bare[] = {
        0x48, 0x83, 0xec, 0x28, 0xff, 0xd7, 0x48, 0x83, 0xc4, 0x28, 0xc3
    };
    size_t size = with_frame_pointer ? sizeof framed : sizeof bare;
    memcpy(to, with_frame_pointer ? framed : bare, size);
    return size;
}

typedef void call(void (*)(void));

__attribute__((noinline)) static void call_made_code(call *code)
{
    code(walk_here);
    __asm__ volatile("" ::: "memory");
}

static void expect_made_code(int with_frame_pointer)
{
    uint8_t *code =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int covered, found = 0;
    emit(code + 64, with_frame_pointer);
    call_made_code((call *)(code + 64));
    cr_assert_eq(walked.flags, LAPSE_WALK_GUESSED, "flags %u", walked.flags);
    for (uint32_t i = 0; i + 1 < walked.depth; i++)
        if (pcs[i] >= (uintptr_t)code && pcs[i] < (uintptr_t)code + 4096) {
            found = 1;
            cr_assert(pcs[i + 1] & LAPSE_PC_GUESSED);
            cr_assert_eq(lapse_unwind_function((pcs[i + 1] & ~LAPSE_PC_GUESSED) - 1, &covered),
                         lapse_unwind_function((uintptr_t)call_made_code, &covered));
        }
    cr_assert(found);
    cr_assert_eq(pcs[walked.depth - 1] & LAPSE_PC_GUESSED, 0,
                 "behind the guess the walk is certain again");
}

Test(guess, made_code_with_frame_pointer)
{
    expect_made_code(1);
}

/* The scan looks at words that the made code leaves as it found them. Under AddressSanitizer the
 * interceptors of the calls before have left return addresses of their own there. */
static void skip_where_stale_addresses_lie(void)
{
#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("frames of the sanitizer's interceptors lie where the scan looks");
#endif
}

Test(guess, made_code_without_frame_pointer)
{
    skip_where_stale_addresses_lie();
    expect_made_code(0);
}

/* Calls `code` on the stack that ends at `top` as a runtime does that makes its own: RBP zero, and a return
 * address that no call stands before. */
__attribute__((noinline)) static void call_on_stack(call *code, void *top)
{
    void (*callee)(void) = walk_here;
    __asm__ volatile("mov %%rsp, %%r12\n\tmov %%rbp, %%r13\n\tmov %%rsi, %%rsp\n\txor %%ebp, %%ebp\n\t"
                     "lea 1f(%%rip), %%rax\n\tpush %%rax\n\tjmp *%%rbx\n\tnop\n\tnop\n\tnop\n\tnop\n\t"
                     "nop\n\tnop\n\tnop\n"
                     "1:\tmov %%r12, %%rsp\n\tmov %%r13, %%rbp"
                     : "+S"(top), "+D"(callee)
                     : "b"(code)
                     : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "memory", "cc");
}

Test(guess, outermost_frame_of_a_stack_of_its_own)
{
    enum { WORDS = 8192, STALE = 1024 };
    uint8_t *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t *stack = mmap(NULL, WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    emit(code + 64, 1);
    walk_here();
    cr_assert_gt(walked.depth, 2);
    for (int i = 0; i < STALE; i++) /* what a scan would take for callers */
        stack[WORDS - STALE + i] = pcs[1 + i % 2];
    call_on_stack((call *)(code + 64), stack + WORDS - STALE);
    cr_assert_eq(walked.flags & LAPSE_WALK_FAILED, 0, "flags %u", walked.flags);
    uint64_t last = pcs[walked.depth - 1] & ~LAPSE_PC_GUESSED;
    cr_assert(last >= (uintptr_t)code && last < (uintptr_t)code + 4096, "ends in %#lx", last);
}

Test(guess, call_instructions)
{
    static const struct { uint8_t code[7]; int is_call;
    } cases[] = {
        { { 0x90, 0x90, 0xe8, 1, 2, 3, 4 }, 1 },
        { { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xd0 }, 1 },
        { { 0x90, 0x90, 0x90, 0x90, 0x41, 0xff, 0xd7 }, 1 },
        { { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0x10 }, 1 },
        { { 0x90, 0x90, 0x90, 0x90, 0xff, 0x50, 0x08 }, 1 },
        { { 0x90, 0x90, 0x90, 0x90, 0xff, 0x14, 0xc1 }, 1 },
        { { 0x90, 0x90, 0x90, 0xff, 0x54, 0x24, 0x08 }, 1 },
        { { 0x90, 0xff, 0x15, 1, 2, 3, 4 }, 1 },
        { { 0x90, 0xff, 0x90, 1, 2, 3, 4 }, 1 },
        { { 0xff, 0x94, 0x24, 1, 2, 3, 4 }, 1 },
        { { 0x90, 0x90, 0x90, 0x90, 0x90, 0xff, 0xe0 }, 0 },
        { { 0x90, 0x90, 0xe9, 1, 2, 3, 4 }, 0 },
        { { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 }, 0 },
        { { 0x90, 0xff, 0x25, 1, 2, 3, 4 }, 0 },
    };
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_eq(lapse_is_after_call(cases[i].code), cases[i].is_call, "case %u", i);
}

static sigjmp_buf after_crash;

static void on_crash(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    walked = (struct lapse_walk){ .pcs = pcs, .max = MAX, .stack = bounds };
    lapse_walk(&walked, context);
    siglongjmp(after_crash, 1);
}

__attribute__((noinline)) static void call_nothing(void (*volatile function)(void))
{
    function();
    __asm__ volatile("" ::: "memory");
}

Test(guess, call_of_null)
{
    skip_where_stale_addresses_lie();
    struct sigaction action = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO };
    int covered;
    sigaction(SIGSEGV, &action, NULL);
    if (!sigsetjmp(after_crash, 1))
        call_nothing(NULL);
    cr_assert_eq(pcs[0], 0);
    cr_assert_eq(walked.flags, LAPSE_WALK_GUESSED, "flags %u", walked.flags);
    cr_assert_eq(lapse_unwind_function((pcs[1] & ~LAPSE_PC_GUESSED) - 1, &covered),
                 lapse_unwind_function((uintptr_t)call_nothing, &covered));
}

static void refuse_reading(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof code / sizeof *code, code };
    cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    cr_assert_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void *resize(void *context, void *old, size_t old_size, size_t new_size)
{
    (void)context, (void)old_size;
    if (new_size)
        return realloc(old, new_size);
    free(old);
    return NULL;
}

Test(guess, kernel_refuses_to_read_for_us)
{
    walk_here();
    uint32_t depth = walked.depth;
    refuse_reading();
    lapse_unwind_forget();
    walk_here();
    cr_assert_eq(walked.flags, 0, "flags %u", walked.flags);
    cr_assert_eq(walked.depth, depth);
    uint64_t word;
    cr_assert_eq(lapse_memory_read(&word, 0x1000, sizeof word), 0, "no fault outside of modules");
    bounds = (struct lapse_stack_bounds){ 0, 0 };
    walk_here();
    cr_assert_eq(walked.flags, LAPSE_WALK_FOREIGN | LAPSE_WALK_FAILED,
                 "foreign stacks are out of reach");
    cr_assert_eq(walked.depth, 1);
    struct lapse_allocator allocator = { resize, NULL };
    struct lapse_modules modules;
    cr_assert_eq(lapse_modules_read(&modules, &allocator), 0);
    const struct lapse_mapped_module *libc = lapse_modules_find(&modules, (uintptr_t)qsort);
    cr_assert(libc && libc->build_id_size);
    lapse_modules_free(&modules);
}

/* The deepest byte written below the caller's frame by a walk whose rules are all unknown. */
enum { PAINTED = 65536 };
static ucontext_t back, painted;

static void walk_on_painted(void)
{
    walk_here();
    swapcontext(&painted, &back);
}

static size_t stack_used(int cold)
{
    static uint8_t memory[PAINTED] __attribute__((aligned(64)));
    memset(memory, 0xa5, sizeof memory);
    getcontext(&painted);
    painted.uc_stack = (stack_t){ .ss_sp = memory, .ss_size = sizeof memory };
    makecontext(&painted, walk_on_painted, 0);
    if (cold)
        lapse_unwind_forget();
    swapcontext(&back, &painted);
    size_t untouched = 0;
    while (untouched < sizeof memory && memory[untouched] == 0xa5)
        untouched++;
    return sizeof memory - untouched - sizeof(ucontext_t); /* walk_here keeps one */
}

Test(guess, stack_use_is_what_the_header_says)
{
    stack_used(1);
    size_t cold = stack_used(1), warm = stack_used(0);
    cr_log_info("cold %zu, warm %zu bytes of stack", cold, warm);
#ifdef __SANITIZE_ADDRESS__
    cr_skip_test("instrumented code takes more");
#endif
    cr_assert_lt(cold, 8192);
    cr_assert_lt(warm, 2048);
}

Test(guess, fork_while_another_thread_may_resolve)
{
    cr_assert_eq(lapse_unwind_hold(), 0);
    pid_t child = fork();
    lapse_unwind_release();
    if (!child) {
        lapse_unwind_forget();
        walk_here();
        _exit(walked.flags ? 1 : 0);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
}
