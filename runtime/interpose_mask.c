/* SPDX-License-Identifier: MIT */
/* Signal masks: many programs start threads with every signal blocked, and those threads are to be
 * sampled too. So the taken signal is left out of what the kernel gets, the thread remembers what
 * the host wished, and the host reads back what it set.
 *
 * In the comments W is the wish of a thread and K the kernel's own bit; the host's view is K or W. K
 * is set where it costs no sample that matters: inside handlers of the host whose sa_mask has the
 * signal, in waits for it, and after a signal of the host's own reached a thread with W set (then it
 * must stay pending, so the thread blocks it for real).
 *
 * W is not part of what siglongjmp, swapcontext and the return from a handler put back, and a raw
 * system call changes the mask behind our back (the Go runtime's threads begin with everything blocked
 * and let go of it so). Therefore W is kept with the other signals that were blocked at the time: where
 * the kernel has let one of them go meanwhile, the wish is over. Known limits: a mask that names no
 * signal but ours leaves nothing to tell it by. And with LAPSE_RESPECT_MASK=1 a tick may be pending where the signal is blocked: the kernel
 * then merges the host's next one with it. Called by the host in any context; lapse_mask_defers by the handler. */
#include "interpose.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "interpose_state.h"
#include "real.h"

/* W. Initial-exec: reading it can neither allocate nor lock. Atomic, since another thread looks at
 * the main thread's. */
static __thread __attribute__((tls_model("initial-exec"))) atomic_bool wished;
/* What else was blocked with it; the thread's own, its handlers only take bits away. */
static __thread __attribute__((tls_model("initial-exec"))) uint64_t wished_with;
/* The main thread's W, when a session was begun in it. */
static _Atomic(atomic_bool *) main_wished;

bool lapse_mask_wished(void)
{
    return atomic_load_explicit(&wished, memory_order_relaxed);
}

void lapse_mask_wish(bool blocked)
{
    atomic_store_explicit(&wished, blocked, memory_order_relaxed);
}

/* Set or clear K in the calling thread; the old K. */
static bool kernel_block(int number, bool block)
{
    uint64_t bit = lapse_signal_bit(number), before = 0;
    lapse_sys(SYS_rt_sigprocmask, block ? SIG_BLOCK : SIG_UNBLOCK, &bit, &before, sizeof bit);
    return (before & bit) != 0;
}

/* Signals that nobody but the host blocks: not ours, not those that the C library keeps to itself. */
static uint64_t telling(uint64_t mask)
{
    uint64_t others = lapse_signal_bit(SIGKILL) | lapse_signal_bit(SIGSTOP) | lapse_signal_bit(32) |
                      lapse_signal_bit(33) | lapse_signal_bit(lapse_taken_signal());
    return mask & ~others;
}

void lapse_mask_wish_with(uint64_t mask)
{
    wished_with = telling(mask);
    lapse_mask_wish(true);
}

/* The host has changed the mask to `kernel` without us: then W is over. */
static bool wish_is_over(uint64_t kernel)
{
    if (!(wished_with & ~kernel))
        return false;
    wished_with = 0;
    lapse_mask_wish(false);
    return true;
}

void lapse_mask_session_begin(void)
{
    if (lapse_sys(SYS_getpid) == lapse_sys(SYS_gettid))
        atomic_store_explicit(&main_wished, &wished, memory_order_relaxed);
    lapse_mask_thread_begin(lapse_mask_wished());
}

void lapse_mask_thread_begin(bool wish)
{
    int number = lapse_taken_signal();
    if (!number || lapse_taken.respect_mask)
        return;
    uint64_t bit = lapse_signal_bit(number), before = 0;
    lapse_sys(SYS_rt_sigprocmask, SIG_UNBLOCK, &bit, &before, sizeof bit);
    if (wish || (before & bit))
        lapse_mask_wish_with(before);
    else
        lapse_mask_wish(false);
}

bool lapse_mask_for_new_thread(const pthread_attr_t *attr)
{
    sigset_t set;
    int number = lapse_taken_signal();
    if (!number)
        return false;
    if (attr && pthread_attr_getsigmask_np(attr, &set) == 0)
        return sigismember(&set, number) == 1;
    return lapse_mask_wished();
}

/* Signals on their way from a thread that must not have them to the main thread: the kernel lets a
 * thread send only to itself with a siginfo as it came, so the original travels beside. */
enum { PARCELS = 16 };
static struct parcel {
    atomic_bool used;
    siginfo_t info;
} parcels[PARCELS];

/* The thread that waited for the signal last (sigwait and its family): the one that wants it where all block
 * it. Were it made pending in another, that one's ticks would stay behind it. */
static atomic_int waiter;

void lapse_mask_fork_child(void)
{
    atomic_store_explicit(&waiter, 0, memory_order_relaxed);
    atomic_store_explicit(&main_wished, &wished, memory_order_relaxed);
    for (int i = 0; i < PARCELS; i++)
        atomic_store_explicit(&parcels[i].used, false, memory_order_relaxed);
}

static void open_parcel(siginfo_t *info)
{
    uintptr_t at = (uintptr_t)info->si_value.sival_ptr - (uintptr_t)parcels;
    if (info->si_code != SI_QUEUE || at >= sizeof parcels || at % sizeof parcels[0] ||
        info->si_pid != (pid_t)lapse_sys(SYS_getpid))
        return;
    struct parcel *parcel = &parcels[at / sizeof parcels[0]];
    if (!atomic_load_explicit(&parcel->used, memory_order_acquire))
        return;
    *info = parcel->info;
    atomic_store_explicit(&parcel->used, false, memory_order_release);
}

static bool send_to_main(int number, const siginfo_t *info)
{
    long pid = lapse_sys(SYS_getpid);
    for (int i = 0; i < PARCELS; i++) {
        struct parcel *parcel = &parcels[i];
        if (atomic_exchange_explicit(&parcel->used, true, memory_order_acquire))
            continue;
        siginfo_t wrapper;
        memset(&wrapper, 0, sizeof wrapper);
        parcel->info = *info;
        wrapper.si_signo = number;
        wrapper.si_code = SI_QUEUE;
        wrapper.si_pid = (pid_t)pid;
        wrapper.si_uid = (uid_t)lapse_sys(SYS_getuid);
        wrapper.si_value.sival_ptr = parcel;
        if (lapse_sys(SYS_rt_tgsigqueueinfo, pid, pid, number, &wrapper) == 0)
            return true;
        atomic_store_explicit(&parcel->used, false, memory_order_release);
        return false;
    }
    return false;
}

void lapse_mask_waits(void)
{
    atomic_store_explicit(&waiter, (int)lapse_sys(SYS_gettid), memory_order_relaxed);
}

static bool send_to_waiter(int number, const siginfo_t *info, long pid, long tid)
{
    int to = atomic_load_explicit(&waiter, memory_order_relaxed);
    return to && to != tid &&
           (lapse_sys(SYS_rt_tgsigqueueinfo, pid, to, number, info) == 0 || /* only what a queue may hold */
            lapse_sys(SYS_tgkill, pid, to, number) == 0);
}

bool lapse_mask_defers(int number, siginfo_t *info, ucontext_t *context)
{
    open_parcel(info);
    if (!lapse_mask_wished() || wish_is_over(*(uint64_t *)(void *)&context->uc_sigmask))
        return false;
    bool to_thread = info->si_code == SI_TKILL;
    atomic_bool *of_main = atomic_load_explicit(&main_wished, memory_order_relaxed);
    if (!to_thread && of_main && of_main != &wished &&
        !atomic_load_explicit(of_main, memory_order_relaxed) && send_to_main(number, info))
        return true;
    long pid = lapse_sys(SYS_getpid), tid = lapse_sys(SYS_gettid);
    if (!to_thread && send_to_waiter(number, info, pid, tid))
        return true;
    /* Nobody who is known to want it: block for real, and let the kernel keep it pending. */
    *(uint64_t *)(void *)&context->uc_sigmask |= lapse_signal_bit(number);
    if (to_thread) {
        lapse_sys(SYS_rt_tgsigqueueinfo, pid, tid, number, info);
        return true;
    }
    if (lapse_sys(SYS_rt_sigqueueinfo, pid, number, info) != 0)
        lapse_sys(SYS_kill, pid, number);
    return true;
}

/* The host's mask changes by `how` and `set`, through `real` (0 is success). */
static int change_mask(int (*real)(int, const sigset_t *, sigset_t *), int how,
                       const sigset_t *set, sigset_t *old)
{
    int number = lapse_taken_signal();
    if (!number || lapse_taken.respect_mask)
        return real(how, set, old);
    bool names = set && sigismember(set, number) == 1;
    bool before = lapse_mask_wished();
    if (!names && !before)
        return real(how, set, old);
    if (!lapse_taken_is_mine()) {
        int result = real(how, set, old);
        if (result == 0 && old && before)
            sigaddset(old, number);
        return result;
    }
    sigset_t kernel, previous;
    if (set)
        kernel = *set;
    bool blocks = names && how != SIG_UNBLOCK;
    /* Letting go: W first, or a signal in between would be held back for good. */
    if (set && (how == SIG_UNBLOCK ? names : how == SIG_SETMASK && !names))
        lapse_mask_wish(false);
    if (blocks && how == SIG_BLOCK)
        sigdelset(&kernel, number);
    int result = real(how, set ? &kernel : NULL, &previous);
    if (result != 0) {
        lapse_mask_wish(before);
        return result;
    }
    uint64_t word = 0, old_word;
    memcpy(&old_word, &previous, sizeof old_word);
    if (before && wish_is_over(old_word))
        before = false;
    if (set)
        memcpy(&word, set, sizeof word);
    /* Where K was set it stays, and goes with whoever set it: not even for a moment may a tick come
     * into our own handler (where libunwind passes here) or into one that masks it. */
    if (blocks && sigismember(&previous, number) == 0) {
        lapse_mask_wish_with(how == SIG_BLOCK ? word | old_word : word);
        if (how == SIG_SETMASK)
            kernel_block(number, false);
    } else if (set && how != SIG_BLOCK) {
        /* Only ever less: it may be a handler that sets this mask, our own among them. */
        wished_with &= how == SIG_UNBLOCK ? ~word : word;
    }
    if (before)
        sigaddset(&previous, number);
    if (old)
        *old = previous;
    return 0;
}

LAPSE_INTERPOSE int sigprocmask(int how, const sigset_t *set, sigset_t *old)
{
    return change_mask(LAPSE_REAL(sigprocmask), how, set, old);
}

LAPSE_INTERPOSE int pthread_sigmask(int how, const sigset_t *set, sigset_t *old)
{
    return change_mask(LAPSE_REAL(pthread_sigmask), how, set, old);
}

static int change_one(int how, int number)
{
    sigset_t one;
    sigemptyset(&one);
    if (sigaddset(&one, number) != 0)
        return -1;
    return sigprocmask(how, &one, NULL);
}

LAPSE_INTERPOSE int sighold(int number)
{
    return change_one(SIG_BLOCK, number);
}

LAPSE_INTERPOSE int sigrelse(int number)
{
    return change_one(SIG_UNBLOCK, number);
}

/* BSD's masks are ints. */
static int change_bsd(int how, int mask)
{
    sigset_t set, old;
    uint64_t word = (unsigned)mask;
    sigemptyset(&set);
    memcpy(&set, &word, sizeof word);
    if (sigprocmask(how, &set, &old) != 0)
        return -1;
    memcpy(&word, &old, sizeof word);
    return (int)word;
}

LAPSE_INTERPOSE int sigblock(int mask)
{
    return change_bsd(SIG_BLOCK, mask);
}

LAPSE_INTERPOSE int sigsetmask(int mask)
{
    return change_bsd(SIG_SETMASK, mask);
}

LAPSE_INTERPOSE int siggetmask(void)
{
    return change_bsd(SIG_BLOCK, 0);
}

void lapse_inherit_begin(struct lapse_inherit *inherit)
{
    int number = lapse_taken_signal();
    *inherit = (struct lapse_inherit){ false, false };
    if (!number)
        return;
    struct sigaction host;
    lapse_host_action_read(&host);
    if (host.sa_handler == SIG_IGN) {
        inherit->ignored = true;
        LAPSE_REAL(sigaction)(number, &host, NULL);
    }
    if (lapse_mask_wished())
        inherit->blocked = !kernel_block(number, true);
}

void lapse_inherit_end(const struct lapse_inherit *inherit)
{
    int number = lapse_taken_signal(), error = errno;
    if (inherit->ignored)
        lapse_interpose_recheck();
    if (inherit->blocked)
        kernel_block(number, false);
    errno = error;
}

bool lapse_hush_begin(void)
{
    int number = lapse_taken_signal();
    /* A host with a handler of its own may wait for just this signal. */
    return number && !lapse_host_has_handler() && !kernel_block(number, true);
}

void lapse_hush_end(void)
{
    kernel_block(lapse_taken_signal(), false);
}

void lapse_block_begin(struct lapse_block *block)
{
    block->blocked = !kernel_block(lapse_taken_signal(), true);
}

/* With W set, K comes from a signal that had to be kept (lapse_mask_defers), and has done its duty:
 * another one that is still pending comes now and is kept in turn. Were K to stay, the ticks that
 * pile up behind it would swallow the host's next signal, since the kernel keeps one of a kind. */
void lapse_block_end(const struct lapse_block *block)
{
    if (block->blocked || lapse_mask_wished())
        kernel_block(lapse_taken_signal(), false);
}

void lapse_wait_mask_begin(struct lapse_wait_mask *wait, const sigset_t **mask)
{
    int number = lapse_taken_signal();
    wait->was_wished = false;
    if (!number || !*mask)
        return;
    bool names = sigismember(*mask, number) == 1;
    if (!names && lapse_mask_wished() && !lapse_taken.respect_mask && lapse_taken_is_mine()) {
        /* The wait lets the signal in. K first, so that one which comes before the wait begins is
         * pending and ends it, and is not handled too early. */
        kernel_block(number, true);
        wait->was_wished = true;
        lapse_mask_wish(false);
    }
    /* A clock that ticks in sleepers must not end the wait, unless the host waits for the signal. */
    if (!names && atomic_load_explicit(&lapse_taken.wakes_sleepers, memory_order_relaxed) &&
        !lapse_host_has_handler()) {
        wait->room = **mask;
        sigaddset(&wait->room, number);
        *mask = &wait->room;
    }
}

void lapse_wait_mask_end(const struct lapse_wait_mask *wait)
{
    if (!wait->was_wished)
        return;
    lapse_mask_wish(true);
    kernel_block(lapse_taken_signal(), false); /* as in lapse_block_end */
}
