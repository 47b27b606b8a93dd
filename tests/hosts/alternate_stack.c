/* SPDX-License-Identifier: MIT */
/* Fault handlers on small alternate stacks with nothing mapped below: hundreds of deliberate faults
 * in three threads, handled by siglongjmp or by repair, while ticks land in the handlers as well. */
#include "host.h"

#include <setjmp.h>
#include <sys/auxv.h>
#include <sys/mman.h>

static __thread sigjmp_buf out;
static __thread char *page;
static __thread volatile int repair, handled;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    if ((char *)info->si_addr < page || (char *)info->si_addr >= page + 4096) {
        host_fail("a fault of somebody else's");
        _exit(3);
    }
    host_burn_us(300);
    handled++;
    if (repair) {
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
        return;
    }
    siglongjmp(out, 1);
}

static void *fault_on(void *rounds)
{
    /* What the kernel needs for a frame, once for the fault and once for a tick within, and a little
     * for the handler itself. */
    size_t least = getauxval(AT_MINSIGSTKSZ);
    size_t size = (2 * (least ? least : 2048) + 4096 + 4095) & ~(size_t)4095;
    char *memory = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = { .ss_sp = memory + 4096, .ss_size = size }, now, off = { .ss_flags = SS_DISABLE };
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, 4096, PROT_NONE);
    HOST_CHECK(sigaltstack(&stack, NULL) == 0, "sigaltstack");
    for (int i = 0; i < (int)(intptr_t)rounds; i++) {
        repair = i & 1;
        mprotect(page, 4096, PROT_NONE);
        if (sigsetjmp(out, 1) == 0)
            *(volatile char *)(page + i % 4096) = 1;
    }
    HOST_CHECK(handled == (int)(intptr_t)rounds, "%d faults handled", handled);
    sigaltstack(NULL, &now);
    HOST_CHECK(now.ss_sp == stack.ss_sp && now.ss_size == size && !(now.ss_flags & SS_DISABLE),
               "the alternate stack is another one");
    sigaltstack(&off, NULL);
    munmap(memory, size + 4096);
    return NULL;
}

int main(void)
{
    struct sigaction action, now;
    pthread_t threads[2];
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, fault_on, (void *)300);
    fault_on((void *)300);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    sigaction(SIGSEGV, NULL, &now);
    HOST_CHECK(now.sa_sigaction == on_fault, "the fault handler was replaced");
    return host_end();
}
