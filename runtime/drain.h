/* SPDX-License-Identifier: MIT */
/* The drain thread: the one that empties the ring, interns stacks, writes the spool and, at the end,
 * all outputs.
 *
 * It is no pthread. The handler starts it at the first tick by a raw clone, on a stack and a
 * thread-local block of our own that were mapped when the session began. So a process that ends
 * before its first tick makes no thread and no file; the C library goes on believing that a
 * single-threaded host is one (its locks stay cheap); fork and setuid do not see the thread. In
 * return the thread may use raw system calls only: no function of the C library that locks, looks
 * at the locale or the thread descriptor, or allocates. All signals are blocked in it.
 *
 * Its table of descriptors is its own and starts empty (but under the perf clock, whose descriptors
 * belong to the threads): the host neither sees the spool among its descriptors nor can close it,
 * and what the thread opens and closes never takes a number that the host would have got. */
#ifndef LAPSE_RUNTIME_DRAIN_H
#define LAPSE_RUNTIME_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "state.h"

/* CPU time of the process for which a host that asks for sandboxes, and each of its children, is left without
 * a second thread. On a loaded machine time alone says nothing of how far a host has come. */
#define LAPSE_DRAIN_SINGLE UINT64_C(250000000)

enum lapse_drain_request {
    LAPSE_DRAIN_FLUSH = 1,  /* write what there is */
    LAPSE_DRAIN_FINISH = 2, /* write everything, end */
    LAPSE_DRAIN_LEAVE = 4,  /* write what there is, end the thread; the next tick starts another */
    LAPSE_DRAIN_IDS = 8,    /* take on lapse_drain.ids */
    LAPSE_DRAIN_SNAPSHOT = 16, /* write everything so far to lapse_drain.snapshot_path */
};

/* What the host has become. Owned by the asker until the request is answered. */
struct lapse_drain_ids {
    uint32_t users[3], groups[3]; /* real, effective, saved */
    const uint32_t *more;         /* supplementary groups */
    uint32_t more_count;
};

struct lapse_drain {
    /* Any thread to the drain thread. */
    _Atomic uint32_t bell;      /* futex: changes with every request */
    _Atomic uint32_t requests;  /* enum lapse_drain_request */
    _Atomic uint32_t has_news;  /* the ring points at what the spool does not hold (news.h) */
    /* The drain thread to any. */
    _Atomic uint32_t alive;     /* thread id; the kernel sets 0 and wakes when the thread is gone */
    _Atomic uint32_t flushes;   /* futex: flush requests answered */
    _Atomic uint32_t finished;  /* futex: 1 once a finish is done */
    _Atomic uint32_t ended;     /* finishes done in this process; never reset */
    _Atomic int32_t error;      /* first failure of the session */
    _Atomic uint64_t write_errors; /* so far */
    uint64_t before_ns;         /* CPU time of the thread that writes the outputs, from before it did */
    _Atomic uint64_t not_before_ns; /* no thread is started earlier; 0: any time */
    _Atomic uint64_t not_before_cpu_ns; /* nor before the process has used so much CPU time */
    _Atomic uint32_t private_files; /* its descriptors are not the host's */
    /* Set when the session starts. */
    bool wary;                  /* the host asked for sandboxes; inherited over fork */
    uint32_t reason, signal;    /* for the end mark; written before a finish request */
    uint32_t ending, ending_tid; /* so is this: the thread whose end is the process's, by both its numbers (0: */
    uint64_t ending_ns;         /* none), and its CPU time when its timer was stopped */
    uint64_t first_tick_ns;     /* what its first tick cost, where no second can have stood for that */
    const struct lapse_drain_ids *ids; /* written before an ids request */
    char snapshot_path[LAPSE_PATH_MAX]; /* written before a snapshot request; ours, it may time out */
    _Atomic uint32_t snapshots; /* futex: snapshot requests answered */
    _Atomic int32_t snapshot_result;
    char *memory;               /* stack, then thread-local block */
};
extern struct lapse_drain lapse_drain;

#define LAPSE_DRAIN_STACK (1u << 20)
#define LAPSE_DRAIN_TLS (64u << 10)
#define LAPSE_DRAIN_TCB (16u << 10)
#define LAPSE_DRAIN_MEMORY (LAPSE_DRAIN_STACK + LAPSE_DRAIN_TLS + LAPSE_DRAIN_TCB)

/* Start the thread unless it is there. Handler (cold: once a session), or any thread with all
 * signals blocked. Returns 0, or -errno of clone. */
LAPSE_SIGSAFE int lapse_drain_start(void);

static inline LAPSE_SIGSAFE void lapse_drain_start_if_needed(void)
{
    /* relaxed: lapse_drain_start decides by compare-and-swap */
    if (atomic_load_explicit(&lapse_runtime.drain, memory_order_relaxed) == LAPSE_DRAIN_NONE)
        lapse_drain_start();
}

/* lapse_runtime.drain from one state to another; false when it is not in the first. Any context. */
bool lapse_drain_becomes(uint32_t to, uint32_t from);

/* Ask and wait, at most timeout_ns. False when it took longer, or when nobody is there to answer. Any
 * thread outside the handler. */
bool lapse_drain_ask(enum lapse_drain_request request, uint64_t timeout_ns);
/* Does it run, or is about to, or not quite gone? */
static inline bool lapse_drain_is_there(void)
{
    return atomic_load_explicit(&lapse_runtime.drain, memory_order_acquire) == LAPSE_DRAIN_STARTING ||
           atomic_load_explicit(&lapse_runtime.drain, memory_order_acquire) == LAPSE_DRAIN_RUNNING ||
           atomic_load_explicit(&lapse_drain.alive, memory_order_acquire);
}
/* Wait until the kernel says that the thread which there is now is gone. */
bool lapse_drain_wait_gone(uint64_t timeout_ns);

/* What the thread runs; also called in place of it when no thread can be had (`finish` only). */
void lapse_drain_main(void);
void lapse_drain_finish(void);
/* CPU time that draining and writing have cost; by the thread that does it. */
uint64_t lapse_drain_cpu_ns(void);
/* Forget everything collected (start of a session, child of a fork). No drain thread runs. */
void lapse_drain_reset(void);

/* drain_entry.S. Call on the drain's stack, in the calling thread. */
void lapse_drain_call(void (*function)(void), void *stack);
/* clone; the child calls lapse_drain_main and exits. */
long lapse_drain_clone(uint64_t flags, void *stack, void *parent_tid, void *child_tid, void *tls);

/* scan.c: find threads that came without us, clean up after those that went. Drain thread, or the
 * thread that starts a session. */
void lapse_scan_threads(void);
/* Child of a fork: whoever was looking is not here. */
void lapse_scan_forget(void);

/* The thread's mask is `mask`: if ticks are due that did not come, is it for that? Counts it once. */
struct lapse_slot;
void lapse_scan_note_blocked(struct lapse_slot *slot, uint64_t mask);

/* clone() has made this thread: it ticks from now on. Any host thread. */
void lapse_scan_adopt(int32_t tid);

/* By a thread whose own slot has just become LIVE: take back what a scan made for it meanwhile. Every
 * signal is blocked. Returns at once while no thread lives that a scan found. */
void lapse_scan_disown(const struct lapse_slot *own, int32_t tid);

#endif
