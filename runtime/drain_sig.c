/* SPDX-License-Identifier: MIT */
/* Starting the drain thread (drain.h). Context: the handler at a session's first tick, or a host
 * thread with every signal blocked. */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "drain.h"
#include "sys.h"

struct lapse_drain lapse_drain;

/* A block that looks like a thread descriptor to what little of the C library the thread runs:
 * pointers to itself, the stack and pointer guards, zeroed thread-locals below (errno). */
static LAPSE_SIGSAFE void *make_thread_block(void)
{
    char *block = lapse_drain.memory + LAPSE_DRAIN_STACK + LAPSE_DRAIN_TLS;
    uint64_t guard, pointer_guard, self = (uint64_t)(uintptr_t)block;
    __asm__("movq %%fs:0x28, %0" : "=r"(guard));
    __asm__("movq %%fs:0x30, %0" : "=r"(pointer_guard));
    uint64_t *words = (uint64_t *)block;
    words[0] = self;         /* tcb */
    words[2] = self;         /* self */
    words[5] = guard;        /* 0x28 */
    words[6] = pointer_guard;
    return block;
}

static LAPSE_SIGSAFE bool is_too_early(void)
{
    /* relaxed: times, from which nothing else is inferred */
    uint64_t wall = atomic_load_explicit(&lapse_drain.not_before_ns, memory_order_relaxed);
    uint64_t cpu = atomic_load_explicit(&lapse_drain.not_before_cpu_ns, memory_order_relaxed);
    return (wall && lapse_sys_clock(CLOCK_MONOTONIC) < wall) ||
           (cpu && lapse_sys_clock(CLOCK_PROCESS_CPUTIME_ID) < cpu);
}

LAPSE_SIGSAFE int lapse_drain_start(void)
{
    uint32_t none = LAPSE_DRAIN_NONE;
    if (is_too_early())
        return -EAGAIN;
    /* acq_rel: who wins sees what the session's start wrote */
    if (!atomic_compare_exchange_strong_explicit(&lapse_runtime.drain, &none, LAPSE_DRAIN_STARTING,
                                                 memory_order_acq_rel, memory_order_relaxed))
        return 0;
    /* A thread that was told to leave may still be on the stack for some instructions. Once it is not, it
     * touches the word no more: what it made of our STARTING until then is seen here. */
    none = LAPSE_DRAIN_STARTING;
    if (atomic_load_explicit(&lapse_drain.alive, memory_order_acquire)) {
        atomic_compare_exchange_strong_explicit(&lapse_runtime.drain, &none, LAPSE_DRAIN_NONE,
                                                memory_order_release, memory_order_relaxed);
        return -EAGAIN;
    }
    if (atomic_load_explicit(&lapse_runtime.drain, memory_order_acquire) != LAPSE_DRAIN_STARTING)
        return -EAGAIN;
    uint64_t flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                     CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
    char *stack = lapse_drain.memory + LAPSE_DRAIN_STACK;
    long tid = lapse_drain_clone(flags, stack, &lapse_drain.alive, &lapse_drain.alive, make_thread_block());
    if (tid < 0) {
        atomic_store_explicit(&lapse_runtime.drain, LAPSE_DRAIN_NONE, memory_order_release);
        return (int)tid;
    }
    /* The thread itself says RUNNING: by now it may have come and gone, and another be STARTING. */
    return 0;
}
