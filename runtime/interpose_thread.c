/* SPDX-License-Identifier: MIT */
/* See interpose_thread.h. Context: host threads, outside the handler.
 *
 * The parent takes a slot and leaves the host's function in it; the new thread arms its own timer.
 * The end is seen by the destructor of a thread-specific key that asks for another round until the
 * last one, so that the host's own destructors are still sampled; this covers return, pthread_exit
 * and cancellation without a cleanup frame on the stack. */
#include "interpose_thread.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>

#include "annotations.h"
#include "clocks.h"
#include "drain.h"
#include "interpose.h"
#include "real.h"
#include "session.h"
#include "signal_keeper.h"
#include "state.h"
#include "sys.h"

#define DEFAULT_ROUNDS 4 /* PTHREAD_DESTRUCTOR_ITERATIONS of the C library */
_Static_assert(DEFAULT_ROUNDS == PTHREAD_DESTRUCTOR_ITERATIONS, "rounds of key destructors");

typedef int create_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static create_function *_Atomic real_create;
static pthread_key_t key;
static _Atomic bool has_key; /* the first start may come while threads ask for their slot */
static uint64_t default_stack_size;

extern void *__libc_stack_end;

static create_function *find_create(void)
{
    /* relaxed: the same value, whoever finds it */
    create_function *found = atomic_load_explicit(&real_create, memory_order_relaxed);
    if (!found) {
        found = (create_function *)lapse_real_find("pthread_create", (void *)__real_pthread_create);
        atomic_store_explicit(&real_create, found, memory_order_relaxed);
    }
    return found;
}

static void at_thread_end(void *slot)
{
    struct lapse_slot *own = slot;
    pthread_setspecific(key, own); /* the C library has cleared it */
    if (!lapse_thread_self()) {    /* of a session that is over: another thread's by now, perhaps */
        lapse_thread_forget_self();
        return;
    }
    if (++own->rounds == DEFAULT_ROUNDS)
        lapse_session_thread_end();
}

int lapse_threads_init(void)
{
    struct rlimit limit = { 8u << 20, 8u << 20 };
    if (atomic_load_explicit(&has_key, memory_order_relaxed)) /* one start at a time */
        return 0;
    find_create();
    lapse_sys(SYS_prlimit64, 0, RLIMIT_STACK, 0, &limit);
    default_stack_size = limit.rlim_cur == RLIM_INFINITY ? 2u << 20 : limit.rlim_cur;
    if (pthread_key_create(&key, at_thread_end))
        return -EAGAIN;
    /* Values of the first 32 keys lie in the thread descriptor; later ones would be allocated. */
    if (key >= 32)
        pthread_key_delete(key);
    else /* release: the key; pairs with the acquire in own_key */
        atomic_store_explicit(&has_key, true, memory_order_release);
    return 0;
}

static bool own_key(void)
{
    return atomic_load_explicit(&has_key, memory_order_acquire);
}

struct lapse_slot *lapse_thread_self(void)
{
    struct lapse_slot *slot = own_key() ? pthread_getspecific(key) : NULL;
    /* A session that ended took the slots back; a later one may have given ours to another thread. */
    return slot && atomic_load_explicit(&slot->tid, memory_order_relaxed) == (int32_t)lapse_sys(SYS_gettid)
               ? slot : NULL;
}

void lapse_thread_forget_self(void)
{
    if (own_key())
        pthread_setspecific(key, NULL);
}

struct lapse_stack_bounds lapse_thread_main_bounds(void)
{
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
    lapse_sys(SYS_prlimit64, 0, RLIMIT_STACK, 0, &limit);
    uint64_t size = limit.rlim_cur > (UINT64_C(1) << 30) ? UINT64_C(1) << 30 : limit.rlim_cur;
    /* Above it lie the arguments and the environment, which no walk needs. */
    uintptr_t high = ((uintptr_t)__libc_stack_end + 4095) & ~(uintptr_t)4095;
    return (struct lapse_stack_bounds){ high - size, high };
}

/* The C library puts the thread descriptor at the top of the stack block, also of a user's. The
 * lowest page is left out: descriptor and thread-locals push the stack's end up, and what lies
 * there may be the guard. */
static struct lapse_stack_bounds bounds_of_self(uint64_t size)
{
    uintptr_t high = (uintptr_t)pthread_self();
    return (struct lapse_stack_bounds){ high - size + 4096, high };
}

struct lapse_stack_bounds lapse_thread_own_bounds(void)
{
    if (lapse_sys(SYS_gettid) == lapse_sys(SYS_getpid))
        return lapse_thread_main_bounds();
    return bounds_of_self(default_stack_size);
}

/* Signals are blocked: the slot becomes LIVE as a whole. `enter` and `leave` around it. */
static void begin(struct lapse_slot *slot, struct lapse_stack_bounds stack, uint64_t from_ns, bool running)
{
    slot->stack = stack;
    slot->start_ns = lapse_sys_clock(CLOCK_MONOTONIC);
    atomic_store_explicit(&slot->tid, (int32_t)lapse_sys(SYS_gettid), memory_order_relaxed);
    if (own_key())
        pthread_setspecific(key, slot);
    if (lapse_clock_create(slot, from_ns, running))
        atomic_fetch_add_explicit(&lapse_runtime.unsampled_threads, 1, memory_order_relaxed);
    lapse_annotations_begin(slot);
    /* seq_cst: pairs with the state that a stop sets before it goes through the slots: either it sees
     * this one, or we see that the session is over (a stop waits for us, but not for ever) */
    atomic_store_explicit(&slot->state, LAPSE_SLOT_LIVE, memory_order_seq_cst);
    lapse_scan_disown(slot, atomic_load_explicit(&slot->tid, memory_order_relaxed));
    if (lapse_session_settle(slot, running) || !lapse_slots_claim(slot))
        return;
    lapse_thread_forget_self();
    lapse_clock_delete(slot);
    lapse_slots_give(slot);
}

/* Into the session that is open, which does not end (and no other begins) before `leave`. */
static bool enter(bool *running)
{
    /* seq_cst: pairs with the stop, which sets the state and then looks at `inside`; also acquires what
     * the start wrote */
    atomic_fetch_add_explicit(&lapse_annotations_inside, 1, memory_order_seq_cst);
    enum lapse_state state = (enum lapse_state)atomic_load_explicit(&lapse_runtime.state, memory_order_seq_cst);
    *running = state == LAPSE_STATE_RUNNING;
    return lapse_session_is_mine();
}

static void leave(void)
{
    /* release: pairs with the acquire of the stop */
    atomic_fetch_sub_explicit(&lapse_annotations_inside, 1, memory_order_release);
}

void lapse_thread_adopt_self(struct lapse_stack_bounds stack, uint64_t from_ns)
{
    if (lapse_thread_self())
        return;
    bool running;
    uint64_t mask = lapse_sys_block_signals();
    if (enter(&running)) {
        struct lapse_slot *slot = lapse_slots_take();
        if (slot)
            begin(slot, stack, from_ns, running);
        else
            atomic_fetch_add_explicit(&lapse_runtime.unsampled_threads, 1, memory_order_relaxed);
    }
    leave();
    lapse_sys_restore_signals(mask);
}

void *lapse_thread_start(void *argument)
{
    struct lapse_slot *slot = argument;
    void *(*start)(void *) = slot->start;
    void *start_argument = slot->argument;
    uint64_t size = slot->stack.high - slot->stack.low;
    lapse_mask_thread_begin(slot->mask_wish);
    uint64_t mask = lapse_sys_block_signals();
    bool running;
    if (enter(&running))
        begin(slot, bounds_of_self(size), 0, running);
    else
        lapse_slots_give(slot);
    leave();
    lapse_sys_restore_signals(mask);
    return start(start_argument);
}

static uint64_t stack_size_of(const pthread_attr_t *attr)
{
    size_t size = 0;
    if (!attr || pthread_attr_getstacksize(attr, &size) || !size)
        return default_stack_size;
    return size;
}

LAPSE_INTERPOSE int pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                                   void *(*start)(void *), void *argument)
{
    create_function *create = find_create();
    if (!create)
        return ENOSYS;
    if (!lapse_session_is_mine())
        return create(thread, attr, start, argument);
    struct lapse_slot *slot = lapse_slots_take();
    if (!slot) {
        atomic_fetch_add_explicit(&lapse_runtime.unsampled_threads, 1, memory_order_relaxed);
        return create(thread, attr, start, argument);
    }
    lapse_signal_keep();
    slot->start = start;
    slot->argument = argument;
    slot->stack = (struct lapse_stack_bounds){ 0, stack_size_of(attr) };
    slot->mask_wish = lapse_mask_for_new_thread(attr);
    int result = create(thread, attr, lapse_thread_start, slot);
    if (result)
        lapse_slots_give(slot);
    return result;
}
