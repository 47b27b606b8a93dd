/* SPDX-License-Identifier: MIT */
/* Every STRIDE-th address of the text of some libraries, unwound one frame both ways from the same made-up
 * registers on a made-up stack: by lapse's rules and by unw_step. Prints the share that agrees.
 *
 * usage: unwind_sweep STRIDE LIBRARY...
 * Exit status 0 when at least 99.9 % agree of what unw_step can do from unwind information. */
#define UNW_LOCAL_ONLY
#include <dlfcn.h>
#include <libunwind.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "rules.h"
#include "walk.h"

enum { STACK_WORDS = 1 << 20, CRASHED = -1000 };

static uint64_t stride; /* between the addresses */

/* Each word holds a value that tells its place: an address inside the stack, so that a CFA or an RBP
 * that was read from it leads on, and no return address. */
static uint64_t stack[STACK_WORDS];

struct counts { uint64_t asked, by_libunwind, agree, no_info, outermost, failed, crashed; };

static void fill_stack(void)
{
    for (unsigned i = 0; i < STACK_WORDS; i++)
        stack[i] = (uintptr_t)&stack[STACK_WORDS / 2 + (i * 2654435761u >> 8) % (STACK_WORDS / 4)];
}

static void make_context(ucontext_t *context, uint64_t pc)
{
    memset(context, 0, sizeof *context);
    greg_t *gregs = context->uc_mcontext.gregs;
    for (int i = 0; i < REG_RIP; i++)
        gregs[i] = (greg_t)&stack[4096 + i * 64];
    gregs[REG_RIP] = (greg_t)pc;
    gregs[REG_RSP] = (greg_t)&stack[1024];
    gregs[REG_RBP] = (greg_t)&stack[STACK_WORDS / 4];
}

/* unw_step follows broken information (in libcrypto there is some) wherever it leads. */
static sigjmp_buf crashed;

static void on_crash(int signal)
{
    siglongjmp(crashed, signal);
}

struct step { int result; uint64_t pc, sp, bp; };

static struct step step_libunwind(ucontext_t *context)
{
    struct step step = { -1, 0, 0, 0 };
    if (sigsetjmp(crashed, 1))
        return (struct step){ CRASHED, 0, 0, 0 };
    unw_cursor_t cursor;
    unw_word_t value;
    if (unw_init_local2(&cursor, (unw_context_t *)context, UNW_INIT_SIGNAL_FRAME) < 0)
        return step;
    step.result = unw_step(&cursor);
    if (step.result > 0) {
        unw_get_reg(&cursor, UNW_REG_IP, &value), step.pc = value;
        unw_get_reg(&cursor, UNW_REG_SP, &value), step.sp = value;
        unw_get_reg(&cursor, UNW_X86_64_RBP, &value), step.bp = value;
    }
    return step;
}

/* The caller's stack pointer is not told by a walk of one frame, so a second walk is cut behind the
 * first frame: its cut_cfa is that. RBP shows in the rule. */
static struct step step_lapse(const ucontext_t *context, uint64_t rule)
{
    uint64_t pcs[2] = { 0, 0 };
    struct lapse_stack_bounds bounds = { (uintptr_t)stack, (uintptr_t)&stack[STACK_WORDS] };
    struct lapse_walk walk = { .pcs = pcs, .max = 1, .stack = bounds };
    lapse_walk(&walk, context);
    struct step step = { walk.flags & LAPSE_WALK_TRUNCATED ? 1
                         : walk.flags & LAPSE_WALK_FAILED  ? -1
                                                           : 0,
                         0, walk.cut_cfa, 0 };
    walk.max = 2;
    lapse_walk(&walk, context);
    step.pc = pcs[1];
    step.bp = (uint64_t)context->uc_mcontext.gregs[REG_RBP];
    uint64_t base = lapse_rule_base(rule) == LAPSE_REGISTER_RSP
                        ? (uint64_t)context->uc_mcontext.gregs[REG_RSP]
                        : step.bp;
    uint64_t at = lapse_rule_rbp(rule) == LAPSE_RBP_AT_CFA ? step.sp : base;
    if (lapse_rule_rbp(rule) == LAPSE_RBP_AT_CFA || lapse_rule_rbp(rule) == LAPSE_RBP_AT_BASE)
        memcpy(&step.bp, (void *)(at + (uint64_t)lapse_rule_rbp_offset(rule)), 8);
    return step;
}

static void compare(uint64_t pc, struct counts *counts)
{
    ucontext_t context;
    make_context(&context, pc);
    counts->asked++;
    uint64_t rule = lapse_rule_resolve(pc);
    if (lapse_rule_kind(rule) == LAPSE_RULE_NO_INFO) {
        counts->no_info++; /* both guess; libunwind by frame pointer without a check */
        return;
    }
    if (lapse_rule_kind(rule) == LAPSE_RULE_OUTERMOST)
        counts->outermost++;
    struct step theirs = step_libunwind(&context);
    counts->crashed += theirs.result == CRASHED;
    if (theirs.result < 0)
        return;
    counts->by_libunwind++;
    struct step ours = step_lapse(&context, rule);
    if (ours.result < 0)
        counts->failed++;
    int agree = theirs.result == 0 ? ours.result == 0
                                   : ours.result > 0 && ours.pc == theirs.pc &&
                                         ours.sp == theirs.sp && ours.bp == theirs.bp;
    counts->agree += (uint64_t)agree;
    if (!agree && getenv("UNWIND_SWEEP_SHOW"))
        printf("%#lx rule %#lx: libunwind %d pc %#lx sp %#lx bp %#lx, lapse %d pc %#lx sp %#lx bp "
               "%#lx\n",
               pc, rule, theirs.result, theirs.pc, theirs.sp, theirs.bp, ours.result, ours.pc,
               ours.sp, ours.bp);
}

struct wanted { const char *name; struct counts *total; int found; };

static int sweep_module(struct dl_phdr_info *info, size_t size, void *opaque)
{
    struct wanted *wanted = opaque;
    (void)size;
    if (!info->dlpi_name[0] || !strstr(info->dlpi_name, wanted->name))
        return 0;
    struct counts counts = { 0 };
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        uint64_t start = info->dlpi_addr + segment->p_vaddr;
        for (uint64_t pc = start; pc < start + segment->p_filesz; pc += stride) {
            if ((pc - start) / stride % 100000 == 99999)
                lapse_unwind_forget(); /* the cache holds fewer */
            compare(pc, &counts);
        }
    }
    printf("%-24s %8lu asked %8lu no information %6lu outermost %8lu by unw_step %8lu agree (%.4f "
           "%%) %6lu not by a rule, %lu crash unw_step\n",
           strrchr(info->dlpi_name, '/') + 1, counts.asked, counts.no_info, counts.outermost,
           counts.by_libunwind, counts.agree,
           100.0 * (double)counts.agree / (double)counts.by_libunwind, counts.failed,
           counts.crashed);
    wanted->total->by_libunwind += counts.by_libunwind;
    wanted->total->agree += counts.agree;
    wanted->found = 1;
    return 1;
}

int main(int argc, char **argv)
{
    char error[128];
    struct counts total = { 0 };
    stride = argc > 2 ? strtoul(argv[1], NULL, 10) : 0;
    if (!stride) {
        fputs("usage: unwind_sweep STRIDE LIBRARY...\n", stderr);
        return 2;
    }
    if (lapse_unwind_init(error, sizeof error)) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    fill_stack();
    struct sigaction action = { .sa_handler = on_crash };
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 2; i < argc; i++) {
        struct wanted wanted = { argv[i], &total, 0 };
        if (!dlopen(argv[i], RTLD_NOW | RTLD_LOCAL)) {
            printf("%-24s not here, passed over\n", argv[i]);
            continue;
        }
        dl_iterate_phdr(sweep_module, &wanted);
        if (!wanted.found)
            printf("%-24s not found in the list of modules\n", argv[i]);
    }
    if (!total.by_libunwind)
        return 77;
    double share = (double)total.agree / (double)total.by_libunwind;
    printf("all: %.4f %% agree\n", 100 * share);
    return share >= 0.999 ? 0 : 1;
}
