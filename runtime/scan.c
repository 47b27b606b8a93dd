/* SPDX-License-Identifier: MIT */
/* Threads that did not come through pthread_create, and those that went without a word: a look at
 * /proc/self/task. Context: the drain thread now and then, and the thread that starts a session in a
 * process with threads. Raw getdents64. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "clocks.h"
#include "drain.h"
#include "message.h"
#include "session.h"
#include "state.h"
#include "sys.h"

#define KNOWN_SIZE 16384u /* tids by hash; a fuller table only finds some threads one look later */
#define MISSES 2          /* looks without a thread before its slot is taken back */

struct directory_entry { uint64_t inode, offset; uint16_t size; uint8_t type; char name[]; };

/* The scan's own, one scan at a time. tid -> slot number + 1. */
static struct { int32_t tid; uint32_t slot; } known[KNOWN_SIZE];
static _Atomic int scanning;

static uint32_t place_of(int32_t tid)
{
    uint32_t at = (uint32_t)tid * 0x9e3779b9u % KNOWN_SIZE;
    for (uint32_t i = 0; i < KNOWN_SIZE && known[at].tid && known[at].tid != tid; i++)
        at = (at + 1) % KNOWN_SIZE;
    return at;
}

static void list_slots(void)
{
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_acquire), listed = 0;
    memset(known, 0, sizeof known);
    for (uint32_t i = 0; i < count && listed < KNOWN_SIZE - 1; i++) {
        struct lapse_slot *slot = lapse_slots_at(i);
        /* acquire: pairs with the release that made it LIVE, so that its tid is there */
        if (!slot || atomic_load_explicit(&slot->state, memory_order_acquire) != LAPSE_SLOT_LIVE)
            continue;
        int32_t tid = atomic_load_explicit(&slot->tid, memory_order_relaxed);
        uint32_t at = place_of(tid);
        known[at].tid = tid;
        known[at].slot = i + 1;
        slot->scan_missed++;
        listed++;
    }
}

/* The other slot of a thread whose slot `own` is LIVE, if it has two. */
static struct lapse_slot *second_slot(const struct lapse_slot *own, int32_t tid)
{
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_slot *slot = lapse_slots_at(i);
        if (slot && slot != own && atomic_load_explicit(&slot->tid, memory_order_relaxed) == tid &&
            atomic_load_explicit(&slot->state, memory_order_seq_cst) == LAPSE_SLOT_LIVE)
            return slot;
    }
    return NULL;
}

static void drop(struct lapse_slot *slot)
{
    if (!lapse_slots_claim(slot))
        return;
    lapse_clock_delete(slot);
    lapse_slots_give_when_left(slot);
}

void lapse_scan_disown(const struct lapse_slot *own, int32_t tid)
{
    if (!atomic_load_explicit(&lapse_slots.adopted, memory_order_seq_cst))
        return;
    struct lapse_slot *slot = second_slot(own, tid);
    if (slot && atomic_load_explicit(&slot->adopted, memory_order_relaxed))
        drop(slot);
}

/* A thread in the middle of its start is in the task list before its own slot is LIVE; sampled by
 * two timers it would weigh twice. Whichever of the two slots becomes LIVE second sees the other. */
static void adopt(int32_t tid)
{
    struct lapse_slot *slot = lapse_slots_take();
    if (!slot)
        return;
    atomic_store_explicit(&slot->tid, tid, memory_order_relaxed);
    slot->start_ns = lapse_sys_clock(CLOCK_MONOTONIC);
    bool running = atomic_load_explicit(&lapse_runtime.state, memory_order_relaxed) == LAPSE_STATE_RUNNING;
    int result = lapse_clock_create(slot, ~UINT64_C(0), running);
    if (result == -EINVAL || result == -ESRCH) { /* gone meanwhile */
        lapse_slots_give(slot);
        return;
    }
    if (result)
        atomic_fetch_add_explicit(&lapse_runtime.unsampled_threads, 1, memory_order_relaxed);
    atomic_store_explicit(&slot->adopted, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&lapse_slots.adopted, 1, memory_order_seq_cst);
    /* seq_cst: pairs with the thread's own slot becoming LIVE, see lapse_scan_disown */
    atomic_store_explicit(&slot->state, LAPSE_SLOT_LIVE, memory_order_seq_cst);
    if (!lapse_session_settle(slot, running) || second_slot(slot, tid))
        drop(slot);
}

static void take_entry(const struct directory_entry *entry)
{
    int32_t tid = 0;
    for (const char *at = entry->name; *at >= '0' && *at <= '9'; at++)
        tid = tid * 10 + (*at - '0');
    if (!tid || tid == (int32_t)atomic_load_explicit(&lapse_drain.alive, memory_order_relaxed))
        return;
    uint32_t at = place_of(tid);
    if (known[at].tid == tid)
        lapse_slots_at(known[at].slot - 1)->scan_missed = 0;
    else
        adopt(tid);
}

void lapse_scan_adopt(int32_t tid)
{
    if (lapse_session_is_mine())
        adopt(tid);
}

#define BLOCKED_LEAST 4 /* ticks; up to that, late ones are the kernel's own granularity */

void lapse_scan_note_blocked(struct lapse_slot *slot, uint64_t mask)
{
    if ((mask & (UINT64_C(1) << (lapse_runtime.signal - 1))) && lapse_clock_late(slot) >= BLOCKED_LEAST &&
        !atomic_exchange_explicit(&slot->blocked, true, memory_order_relaxed))
        atomic_fetch_add_explicit(&lapse_runtime.unsampled_threads, 1, memory_order_relaxed);
}

/* What another thread blocks, 0 when that cannot be read. */
static uint64_t blocked_by(int32_t tid)
{
    static char status[4096];
    char path[64];
    uint64_t mask = 0;
    struct lapse_text text = { path, 0, sizeof path };
    lapse_text_string(&text, "/proc/self/task/");
    lapse_text_number(&text, (uint64_t)tid);
    lapse_text_string(&text, "/status");
    long fd = lapse_sys(SYS_open, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    long size = lapse_sys(SYS_read, fd, status, sizeof status - 1);
    lapse_sys(SYS_close, fd);
    status[size > 0 ? size : 0] = 0;
    const char *at = strstr(status, "\nSigBlk:\t");
    for (at += at ? 9 : 0; at && ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f')); at++)
        mask = mask << 4 | (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
    return mask;
}

/* No tick came since the last look, though some were due. */
static void look_for_blocked(void)
{
    for (uint32_t i = 0; i < KNOWN_SIZE; i++) {
        struct lapse_slot *slot = known[i].tid ? lapse_slots_at(known[i].slot - 1) : NULL;
        if (!slot || slot->scan_missed)
            continue;
        uint64_t delivered = atomic_load_explicit(&slot->delivered, memory_order_relaxed);
        bool still = delivered == slot->scan_delivered;
        slot->scan_delivered = delivered;
        if (!still)
            atomic_store_explicit(&slot->blocked, false, memory_order_relaxed);
        if (still && !atomic_load_explicit(&slot->blocked, memory_order_relaxed) &&
            lapse_clock_late(slot) >= BLOCKED_LEAST)
            lapse_scan_note_blocked(slot, blocked_by(known[i].tid));
    }
}

static void clean_up(void)
{
    for (uint32_t i = 0; i < KNOWN_SIZE; i++) {
        struct lapse_slot *slot = known[i].tid ? lapse_slots_at(known[i].slot - 1) : NULL;
        if (slot && slot->scan_missed >= MISSES)
            drop(slot);
    }
}

void lapse_scan_threads(void)
{
    static char entries[16384];
    if (atomic_exchange_explicit(&scanning, 1, memory_order_acquire))
        return;
    long fd = lapse_sys(SYS_open, "/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        list_slots();
        for (long size; (size = lapse_sys(SYS_getdents64, fd, entries, sizeof entries)) > 0;)
            for (long at = 0; at < size;) {
                const struct directory_entry *entry = (const void *)(entries + at);
                take_entry(entry);
                at += entry->size;
            }
        lapse_sys(SYS_close, fd);
        look_for_blocked();
        clean_up();
    }
    atomic_store_explicit(&scanning, 0, memory_order_release);
}

void lapse_scan_forget(void)
{
    atomic_store_explicit(&scanning, 0, memory_order_relaxed); /* relaxed: this is the only thread */
}
