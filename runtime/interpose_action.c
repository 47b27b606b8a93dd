/* SPDX-License-Identifier: MIT */
/* Signal actions: the host installs, ignores or resets the signal that lapse ticks with, reads back
 * what it set, and gets every signal of that number that is not a tick of ours. The kernel's action
 * for it stays our entry from the first session start to the end of the process.
 *
 * Called by the host at any time and from any context; lapse_interpose_foreign by the handler's
 * entry. interpose_mask.c holds the other half, the masks. */
#include "interpose.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "interpose_state.h"
#include "real.h"
#include "session.h"
#include "signal_keeper.h"
#include "state.h"

#define KERNEL_SA_RESTORER 0x04000000
#define KERNEL_SET_SIZE 8

struct lapse_taken lapse_taken;

/* The kernel's form of struct sigaction. */
struct kernel_action {
    void (*handler)(int, siginfo_t *, void *);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};

/* The host's action. A reader takes the version that `current` names and never waits; a writer
 * (under the lock, every signal blocked, so that no handler of its thread waits for it) fills the
 * next version and publishes it. A reader would have to sleep through VERSIONS - 1 changes within
 * one copy to see a torn one. */
enum { VERSIONS = 64 };
struct record {
    struct sigaction versions[VERSIONS];
    atomic_uint current;
};
static struct record host_action;
/* What the host had when it last took the signal past us: a handler that was installed by a raw system
 * call found our entry there, and may call it for what stood before. */
static struct record action_before;
static atomic_bool was_taken; /* action_before holds something */
static atomic_flag writing = ATOMIC_FLAG_INIT;
static atomic_bool interrupts; /* siginterrupt(signal, 1) was called */

static void read_action(struct record *record, struct sigaction *action)
{
    /* Acquire pairs with the release in store_action: else a half-written version is read. */
    *action = record->versions[atomic_load_explicit(&record->current, memory_order_acquire) % VERSIONS];
}

void lapse_host_action_read(struct sigaction *action)
{
    read_action(&host_action, action);
}

bool lapse_host_has_handler(void)
{
    struct sigaction action;
    lapse_host_action_read(&action);
    return action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN;
}

static uint64_t lock_actions(void)
{
    uint64_t mask = lapse_sys_block_signals();
    while (atomic_flag_test_and_set_explicit(&writing, memory_order_acquire))
        lapse_sys(SYS_sched_yield);
    return mask;
}

static void unlock_actions(uint64_t mask)
{
    atomic_flag_clear_explicit(&writing, memory_order_release);
    lapse_sys_restore_signals(mask);
}

static void store_action(struct record *record, const struct sigaction *action)
{
    unsigned next = atomic_load_explicit(&record->current, memory_order_relaxed) + 1;
    record->versions[next % VERSIONS] = *action;
    /* Release: the version before its number; pairs with the acquire in read_action. */
    atomic_store_explicit(&record->current, next, memory_order_release);
}

/* Our entry as the kernel has it. A host whose own handler wants system calls interrupted gets
 * that, unless our ticks come to sleepers as well. */
static void install_entry(int number)
{
    struct sigaction host;
    lapse_host_action_read(&host);
    bool wants_eintr = host.sa_handler != SIG_DFL && host.sa_handler != SIG_IGN &&
                       !(host.sa_flags & SA_RESTART) &&
                       !atomic_load_explicit(&lapse_taken.wakes_sleepers, memory_order_relaxed);
    struct kernel_action entry = {
        .handler = lapse_taken.entry,
        .flags = SA_SIGINFO | SA_ONSTACK | KERNEL_SA_RESTORER | (wants_eintr ? 0u : SA_RESTART),
        .restorer = lapse_taken.restorer,
        .mask = ~UINT64_C(0),
    };
    lapse_sys(SYS_rt_sigaction, number, &entry, 0, KERNEL_SET_SIZE);
}

void lapse_host_action_exchange(const struct sigaction *action, struct sigaction *previous)
{
    struct sigaction old, fresh;
    uint64_t mask = lock_actions();
    lapse_host_action_read(&old);
    if (action) {
        fresh = *action;
        fresh.sa_flags |= KERNEL_SA_RESTORER;
        fresh.sa_restorer = lapse_taken.restorer;
        sigdelset(&fresh.sa_mask, SIGKILL);
        sigdelset(&fresh.sa_mask, SIGSTOP);
        store_action(&host_action, &fresh);
        install_entry(lapse_taken_signal());
    }
    unlock_actions(mask);
    if (previous)
        *previous = old;
}

void lapse_host_action_fork_child(void)
{
    atomic_flag_clear_explicit(&writing, memory_order_relaxed); /* alone: the writer is gone */
}

bool lapse_interpose_recheck(void)
{
    int number = lapse_taken_signal();
    struct kernel_action now;
    if (!number || lapse_sys(SYS_rt_sigaction, number, 0, &now, KERNEL_SET_SIZE) != 0 ||
        now.handler == lapse_taken.entry)
        return false;
    struct sigaction host, before;
    memset(&host, 0, sizeof host);
    host.sa_sigaction = now.handler;
    host.sa_flags = (int)now.flags;
    host.sa_restorer = now.restorer;
    memcpy(&host.sa_mask, &now.mask, sizeof now.mask);
    uint64_t mask = lock_actions();
    lapse_host_action_read(&before);
    if (before.sa_sigaction != host.sa_sigaction) { /* else it has put its own back */
        store_action(&action_before, &before);
        atomic_store_explicit(&was_taken, true, memory_order_release);
    }
    store_action(&host_action, &host);
    install_entry(number);
    unlock_actions(mask);
    return true;
}

/* quick_exit's own functions run first: ours was registered before them. */
static void finish_quickly(void)
{
    if (lapse_session_is_unfinished())
        lapse_session_finish(LAPSE_FINISH_EXIT, 0);
}

int lapse_interpose_begin(const struct lapse_interpose_options *options)
{
    static atomic_flag registered = ATOMIC_FLAG_INIT;
    struct sigaction old, entry;
    if (LAPSE_REAL(sigaction)(options->signal, NULL, &old) != 0)
        return -errno;
    lapse_taken.entry = options->entry;
    lapse_taken.respect_mask = options->respect_mask;
    lapse_taken.no_follow = options->no_follow;
    atomic_store_explicit(&lapse_taken.wakes_sleepers, options->wakes_sleepers,
                          memory_order_relaxed);
    atomic_store_explicit(&lapse_taken.pid, (int)lapse_sys(SYS_getpid), memory_order_relaxed);
    if (old.sa_sigaction != options->entry)
        store_action(&host_action, &old);
    memset(&entry, 0, sizeof entry);
    entry.sa_sigaction = options->entry;
    entry.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    sigfillset(&entry.sa_mask);
    /* Installed by the C library once, since only it knows its restorer. */
    if (LAPSE_REAL(sigaction)(options->signal, &entry, NULL) != 0)
        return -errno;
    LAPSE_REAL(sigaction)(options->signal, NULL, &entry);
    if (lapse_taken.restorer != entry.sa_restorer) /* late ticks look at it when a session starts again */
        lapse_taken.restorer = entry.sa_restorer;
    /* Release: the fields above before the signal; pairs with lapse_taken_signal. */
    atomic_store_explicit(&lapse_taken.signal, options->signal, memory_order_release);
    install_entry(options->signal);
    lapse_mask_session_begin();
    if (!atomic_flag_test_and_set_explicit(&registered, memory_order_relaxed))
        at_quick_exit(finish_quickly);
    return 0;
}

void lapse_interpose_fork_child(void)
{
    if (!lapse_taken_signal())
        return;
    atomic_store_explicit(&lapse_taken.pid, (int)lapse_sys(SYS_getpid), memory_order_relaxed);
    lapse_host_action_fork_child();
    lapse_mask_fork_child();
    lapse_interpose_recheck();
}

/* The default action of most signals ends the process. Ours stands in its way, so it steps aside and
 * lets the signal come again, once this handler has returned. */
static void die_by_default(int number, siginfo_t *info, ucontext_t *context)
{
    if (lapse_session_is_unfinished())
        lapse_session_finish(LAPSE_FINISH_SIGNAL, number);
    struct kernel_action action = { .handler = NULL, .flags = KERNEL_SA_RESTORER,
                                    .restorer = lapse_taken.restorer };
    lapse_sys(SYS_rt_sigaction, number, &action, 0, KERNEL_SET_SIZE);
    long pid = lapse_sys(SYS_getpid), tid = lapse_sys(SYS_gettid);
    if (lapse_sys(SYS_rt_tgsigqueueinfo, pid, tid, number, info) != 0)
        lapse_sys(SYS_tgkill, pid, tid, number);
    *(uint64_t *)(void *)&context->uc_sigmask &= ~lapse_signal_bit(number);
}

static bool ignored_by_default(int number)
{
    return number == SIGCHLD || number == SIGCONT || number == SIGURG || number == SIGWINCH;
}

/* Call the host's handler with the mask that the kernel would have set. The signal itself is really
 * blocked meanwhile, as without us: then a siglongjmp out of it leaves nothing behind. */
static void call_host(int number, const struct sigaction *action, siginfo_t *info,
                      ucontext_t *context)
{
    uint64_t *interrupted = (uint64_t *)(void *)&context->uc_sigmask;
    uint64_t mask;
    memcpy(&mask, &action->sa_mask, sizeof mask);
    mask |= *interrupted;
    if (!(action->sa_flags & SA_NODEFER))
        mask |= lapse_signal_bit(number);
    lapse_sys_restore_signals(mask);
    action->sa_sigaction(number, info, context);
    /* A handler may write the mask that holds after its return. */
    if ((*interrupted & lapse_signal_bit(number)) && !lapse_taken.respect_mask) {
        *interrupted &= ~lapse_signal_bit(number);
        lapse_mask_wish_with(*interrupted);
    }
}

/* A tick of the perf clock that can no longer be recognised: its descriptor is closed, or the kernel
 * had no memory for the siginfo (RLIMIT_SIGPENDING) and sent the bare number. Nobody is meant. */
static bool is_stray_tick(const siginfo_t *info)
{
    return lapse_runtime.clock == LAPSE_CLOCK_PERF &&
           ((info->si_code == SI_USER && info->si_pid == 0) ||
            (info->si_code >= POLL_IN && info->si_code <= POLL_HUP));
}

bool lapse_interpose_from_kernel(uintptr_t return_address)
{
    return return_address == (uintptr_t)lapse_taken.restorer;
}

/* The host's handler calls the entry as its predecessor: that is what the host had before. Two that
 * took the signal one after the other both found the entry, so the second such call for one signal
 * is the end of the line. Runs as a part of the host's handler. */
static __thread __attribute__((tls_model("initial-exec"))) void *in_call;

static void call_predecessor(int number, siginfo_t *info, void *context)
{
    struct sigaction action;
    read_action(&action_before, &action);
    if (in_call == context || action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)
        return;
    in_call = context;
    action.sa_sigaction(number, info, context);
    in_call = NULL;
}

void lapse_interpose_foreign(int number, siginfo_t *info, void *context, uintptr_t return_address)
{
    struct sigaction action;
    if (atomic_load_explicit(&was_taken, memory_order_acquire) &&
        !lapse_interpose_from_kernel(return_address)) {
        call_predecessor(number, info, context);
        return;
    }
    in_call = NULL; /* a handler may have left by siglongjmp */
    if (number != lapse_taken_signal() || is_stray_tick(info) ||
        lapse_mask_defers(number, info, context))
        return;
    lapse_host_action_read(&action);
    if (action.sa_handler == SIG_IGN)
        return;
    if (action.sa_handler == SIG_DFL) {
        if (!ignored_by_default(number))
            die_by_default(number, info, context);
        return;
    }
    if (action.sa_flags & SA_RESETHAND) {
        struct sigaction once;
        memset(&once, 0, sizeof once);
        once.sa_handler = SIG_DFL;
        lapse_host_action_exchange(&once, NULL);
    }
    call_host(number, &action, info, context);
}

/* The host's calls. */

LAPSE_INTERPOSE int sigaction(int number, const struct sigaction *action,
                              struct sigaction *previous)
{
    if (number != lapse_taken_signal() || !number)
        return LAPSE_REAL(sigaction)(number, action, previous);
    if (lapse_taken_is_mine()) {
        lapse_host_action_exchange(action, previous);
        return 0;
    }
    /* A child that shares our memory has actions of its own. */
    int result = LAPSE_REAL(sigaction)(number, action, previous);
    if (result == 0 && previous && previous->sa_sigaction == lapse_taken.entry)
        lapse_host_action_read(previous);
    return result;
}

static sighandler_t set_handler(int number, sighandler_t handler, int flags, bool masks_itself)
{
    struct sigaction action, previous;
    if (handler == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    if (masks_itself)
        sigaddset(&action.sa_mask, number);
    return sigaction(number, &action, &previous) == 0 ? previous.sa_handler : SIG_ERR;
}

LAPSE_INTERPOSE sighandler_t signal(int number, sighandler_t handler)
{
    if (number != lapse_taken_signal() || !number)
        return LAPSE_REAL(signal)(number, handler);
    bool eintr = atomic_load_explicit(&interrupts, memory_order_relaxed);
    return set_handler(number, handler, eintr ? 0 : SA_RESTART, true);
}

sighandler_t bsd_signal(int number, sighandler_t handler);
LAPSE_INTERPOSE sighandler_t bsd_signal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

LAPSE_INTERPOSE sighandler_t ssignal(int number, sighandler_t handler)
{
    return signal(number, handler);
}

LAPSE_INTERPOSE sighandler_t __sysv_signal(int number, sighandler_t handler)
{
    if (number != lapse_taken_signal() || !number)
        return LAPSE_REAL(__sysv_signal)(number, handler);
    return set_handler(number, handler, SA_RESETHAND | SA_NODEFER | SA_INTERRUPT, false);
}

LAPSE_INTERPOSE sighandler_t sysv_signal(int number, sighandler_t handler)
{
    return __sysv_signal(number, handler);
}

LAPSE_INTERPOSE int siginterrupt(int number, int flag)
{
    if (number != lapse_taken_signal() || !number)
        return LAPSE_REAL(siginterrupt)(number, flag);
    struct sigaction action;
    atomic_store_explicit(&interrupts, flag != 0, memory_order_relaxed);
    lapse_host_action_read(&action);
    if (flag)
        action.sa_flags &= ~SA_RESTART;
    else
        action.sa_flags |= SA_RESTART;
    return sigaction(number, &action, NULL);
}

/* System V's way: a handler that is set also unblocks, and SIG_HOLD blocks. */
LAPSE_INTERPOSE sighandler_t sigset(int number, sighandler_t disposition)
{
    if (number != lapse_taken_signal() || !number)
        return LAPSE_REAL(sigset)(number, disposition);
    sigset_t one, before;
    struct sigaction previous;
    bool hold = disposition == SIG_HOLD;
    if (disposition == SIG_ERR) {
        errno = EINVAL;
        return SIG_ERR;
    }
    sigemptyset(&one);
    sigaddset(&one, number);
    sigaction(number, NULL, &previous);
    if (!hold)
        set_handler(number, disposition, 0, false);
    if (pthread_sigmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &one, &before) != 0)
        return SIG_ERR;
    return sigismember(&before, number) == 1 ? SIG_HOLD : previous.sa_handler;
}

LAPSE_INTERPOSE int sigignore(int number)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = SIG_IGN;
    return sigaction(number, &action, NULL);
}

/* A host that sets its handler by a raw system call often starts its timer by this one. */
LAPSE_INTERPOSE int setitimer(__itimer_which_t which, const struct itimerval *fresh,
                              struct itimerval *old)
{
    lapse_signal_keep();
    return LAPSE_REAL(setitimer)(which, fresh, old);
}

/* gprof's sampling (-pg, profil) sets its handler inside the C library, past the calls above: put
 * the entry back and pass its ticks on as the host's. */
LAPSE_INTERPOSE int profil(unsigned short *buffer, size_t size, size_t offset, unsigned int scale)
{
    int result = LAPSE_REAL(profil)(buffer, size, offset, scale);
    lapse_interpose_recheck();
    return result;
}

void __monstartup(unsigned long low, unsigned long high);
LAPSE_INTERPOSE void __monstartup(unsigned long low, unsigned long high)
{
    LAPSE_REAL(__monstartup)(low, high);
    lapse_interpose_recheck();
}

void monstartup(unsigned long low, unsigned long high);
LAPSE_INTERPOSE void monstartup(unsigned long low, unsigned long high)
{
    __monstartup(low, high);
}

int moncontrol(int mode);
LAPSE_INTERPOSE int moncontrol(int mode)
{
    int result = LAPSE_REAL(moncontrol)(mode);
    lapse_interpose_recheck();
    return result;
}
