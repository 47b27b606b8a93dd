/* SPDX-License-Identifier: MIT */
/* Threads in place of signals: what the runtime gets instead of its timers and its raw clone, so that
 * ThreadSanitizer can follow it. Ticks are calls that the test makes in the thread that would have been
 * interrupted; whether a timer is armed is a flag; the drain thread is a pthread. Everything else is the
 * runtime as it is. Linked in place of clocks.c and drain_entry.S, see control.cmake. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <ucontext.h>

#include "clocks.h"
#include "drain.h"
#include "interpose_state.h"
#include "interpose_thread.h"
#include "state.h"
#include "sys.h"

uintptr_t lapse_handler_enter(int signal, siginfo_t *info, void *context, uintptr_t return_address);
void lapse_handler_tick(int signal, siginfo_t *info, ucontext_t *context, uintptr_t stack);
void states_tick(void);
void states_thread_end(void);

/* Timers: by slot, armed or not. */
static _Atomic uint32_t armed[LAPSE_SLOTS_PER_BLOCK];
static _Atomic int32_t timers;

uint64_t lapse_clock_random(uint64_t bound)
{
    uint64_t random = 0;
    lapse_sys(SYS_getrandom, &random, sizeof random, 0);
    return (uint64_t)((unsigned __int128)random * bound >> 64);
}

void lapse_clock_arm(struct lapse_slot *slot, uint64_t from_ns)
{
    (void)from_ns;
    if (!atomic_load_explicit(&slot->excluded, memory_order_relaxed))
        atomic_store_explicit(&armed[slot->index % LAPSE_SLOTS_PER_BLOCK], 1, memory_order_relaxed);
}

void lapse_clock_disarm(struct lapse_slot *slot)
{
    atomic_store_explicit(&armed[slot->index % LAPSE_SLOTS_PER_BLOCK], 0, memory_order_relaxed);
}

void lapse_clock_lower_rate(struct lapse_slot *slot)
{
    uint64_t period = atomic_load_explicit(&slot->period_ns, memory_order_relaxed);
    atomic_store_explicit(&slot->period_ns, 2 * period, memory_order_relaxed);
}

uint64_t lapse_clock_late(const struct lapse_slot *slot)
{
    (void)slot;
    return 0; /* a call is never late */
}

uint64_t lapse_clock_unsampled(const struct lapse_slot *slot)
{
    (void)slot;
    return 0;
}

int lapse_clock_create(struct lapse_slot *slot, uint64_t from_ns, bool is_armed)
{
    atomic_store_explicit(&slot->period_ns, lapse_runtime.period_ns, memory_order_relaxed);
    atomic_store_explicit(&slot->timer, atomic_fetch_add_explicit(&timers, 1, memory_order_relaxed),
                          memory_order_release);
    if (is_armed)
        lapse_clock_arm(slot, from_ns);
    return 0;
}

void lapse_clock_delete(struct lapse_slot *slot)
{
    lapse_clock_disarm(slot);
    atomic_store_explicit(&slot->timer, -1, memory_order_seq_cst);
}

/* Between the look at the timer and the handler anything may happen, as with a signal on its way. */
void states_tick(void)
{
    struct lapse_slot *slot = lapse_thread_self();
    siginfo_t info;
    ucontext_t context;
    if (!slot || !atomic_load_explicit(&armed[slot->index % LAPSE_SLOTS_PER_BLOCK], memory_order_relaxed))
        return;
    memset(&info, 0, sizeof info);
    info.si_code = SI_TIMER;
    info.si_value.sival_ptr = (void *)((uintptr_t)lapse_slots.cookie << 32 | slot->index);
    /* acquire: the slot's tid is at least as new; a timer of the slot's next owner does not tick in us */
    info.si_timerid = atomic_load_explicit(&slot->timer, memory_order_acquire);
    if (info.si_timerid < 0 || lapse_thread_self() != slot || getcontext(&context))
        return;
    uintptr_t stack = lapse_handler_enter(lapse_runtime.signal, &info, &context, (uintptr_t)lapse_taken.restorer);
    if (stack)
        lapse_handler_tick(lapse_runtime.signal, &info, &context, stack);
}

void states_thread_end(void)
{
    lapse_session_thread_end();
}

static void *drain(void *alive)
{
    atomic_store_explicit((_Atomic uint32_t *)alive, (uint32_t)lapse_sys(SYS_gettid), memory_order_release);
    lapse_drain_main();
    /* What the kernel does for a thread that leaves. */
    atomic_store_explicit((_Atomic uint32_t *)alive, 0, memory_order_release);
    lapse_sys(SYS_futex, alive, FUTEX_WAKE, INT32_MAX);
    return NULL;
}

void lapse_drain_call(void (*function)(void), void *stack)
{
    (void)stack;
    function();
}

long lapse_drain_clone(uint64_t flags, void *stack, void *parent_tid, void *child_tid, void *tls)
{
    static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *address = dlsym(RTLD_NEXT, "pthread_create");
    pthread_t thread;
    (void)flags, (void)stack, (void)child_tid, (void)tls;
    memcpy(&create, &address, sizeof create);
    uint64_t mask = lapse_sys_block_signals(); /* all are in the drain thread */
    int result = create(&thread, NULL, drain, parent_tid);
    lapse_sys_restore_signals(mask);
    if (result)
        return -result;
    pthread_detach(thread);
    uint32_t tid;
    while (!(tid = atomic_load_explicit((_Atomic uint32_t *)parent_tid, memory_order_acquire)))
        lapse_sys(SYS_sched_yield);
    return (long)tid;
}
