/* SPDX-License-Identifier: MIT */
/* What the drain thread does (drain.h): empty the ring, write the spool, look after threads, end. */
#include "drain.h"

#include <linux/close_range.h>
#include <string.h>
#include <sys/prctl.h>

#include "clocks.h"
#include "message.h"
#include "own_frames.h"
#include "ring_file.h"
#include "signal_keeper.h"
#include "store.h"
#include "sys.h"

#define MS UINT64_C(1000000)
#define INTERVAL_LEAST (10 * MS)
#define INTERVAL_FIRST (50 * MS)
#define INTERVAL_MOST (250 * MS) /* what a kill loses, at most */
#define SCAN_LEAST (500 * MS)
#define WARY_FOR (3000 * MS)

/* The drain thread's own. */
static uint64_t scratch[LAPSE_RECORD_WORDS_MAX];
static uint64_t interval_ns, next_scan_ns, turned_ns;

static void take_records(void)
{
    const struct lapse_own_code own = lapse_own_code_find();
    struct lapse_record record;
    uint64_t position = lapse_store.ring_position;
    int result;
    while ((result = lapse_ring_peek(&lapse_runtime.ring, &position, &record, scratch,
                                     LAPSE_RECORD_WORDS_MAX)) > 0) {
        record.depth = lapse_own_frames_strip(&own, scratch, record.depth); /* record.pcs is scratch */
        lapse_store_record(&lapse_store, &record);
        lapse_store.ring_position = position;
    }
    lapse_store.ring_position = position;
    if (result < 0)
        lapse_message(LAPSE_MESSAGE_RING, "the host wrote over lapse's memory; some samples are lost",
                      NULL, NULL, NULL);
}

/* For host threads, which must not look into the store. */
static void publish_errors(void)
{
    atomic_store_explicit(&lapse_drain.error, lapse_store.first_error, memory_order_relaxed);
    atomic_store_explicit(&lapse_drain.write_errors, lapse_store.write_errors, memory_order_relaxed);
}

/* Records leave the ring when they are in the spool (or when that takes none: then they are in the
 * store): who reads the ring of a killed process finds each sample in one of the two. */
static void write_records(void)
{
    lapse_store_write(&lapse_store);
    publish_errors();
    lapse_ring_hand_back(&lapse_runtime.ring, lapse_store.ring_position);
}

/* Shorter when the ring fills, longer when it stays empty. */
static void adapt_interval(uint64_t used)
{
    uint64_t size = lapse_runtime.ring.mask + 1;
    if (used > size / 8)
        interval_ns /= 2;
    else if (used < size / 64)
        interval_ns += interval_ns / 2;
    if (interval_ns < INTERVAL_LEAST)
        interval_ns = INTERVAL_LEAST;
    if (interval_ns > INTERVAL_MOST)
        interval_ns = INTERVAL_MOST;
}

/* Threads whose handlers eat more than their share tick half as often from now on. Weights stay
 * right: they are counted in periods, and the period is the slot's own. */
static void lower_rates(void)
{
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_slot *slot = lapse_slots_at(i);
        if (!slot || atomic_load_explicit(&slot->costly, memory_order_relaxed) < 4 ||
            atomic_load_explicit(&slot->state, memory_order_acquire) != LAPSE_SLOT_LIVE)
            continue;
        atomic_store_explicit(&slot->costly, 0, memory_order_relaxed);
        lapse_clock_lower_rate(slot);
        atomic_fetch_add_explicit(&lapse_runtime.rate_lowered, 1, memory_order_relaxed);
    }
}

static void look_after_threads(uint64_t now)
{
    if (now < next_scan_ns ||
        atomic_load_explicit(&lapse_runtime.state, memory_order_relaxed) != LAPSE_STATE_RUNNING)
        return;
    lower_rates();
    lapse_scan_threads();
    /* The look takes at most about 1 % of one processor, however many threads there are. */
    uint64_t cost = lapse_sys_clock(CLOCK_MONOTONIC) - now;
    next_scan_ns = now + (cost * 100 > SCAN_LEAST ? cost * 100 : SCAN_LEAST);
}

/* Late ticks of threads that live on: at the end of the session nothing will deliver them. */
static void take_late_ticks(void)
{
    uint32_t count = atomic_load_explicit(&lapse_slots.count, memory_order_acquire);
    uint64_t now = lapse_sys_clock(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_slot *slot = lapse_slots_at(i);
        if (!slot || atomic_load_explicit(&slot->state, memory_order_acquire) != LAPSE_SLOT_LIVE)
            continue;
        uint64_t late = lapse_clock_late(slot), unsampled = lapse_clock_unsampled(slot);
        uint64_t period = atomic_load_explicit(&slot->period_ns, memory_order_relaxed);
        const struct lapse_record record = {
            .kind = LAPSE_RECORD_NOT_SAMPLED, .flags = unsampled ? LAPSE_RECORD_UNSAMPLED : 0,
            .thread = slot->thread, .tid = (uint32_t)atomic_load_explicit(&slot->tid, memory_order_relaxed),
            .time_ns = now, .weight_ns = unsampled ? unsampled : late * period,
            .cut_cfa = unsampled ? unsampled / lapse_runtime.period_ns : late,
        };
        if (record.cut_cfa)
            lapse_store_record(&lapse_store, &record);
    }
}

/* Beside two milliseconds of a short process the cost of writing its profile counts, and no tick can fall
 * into it. It is known, so it is weight without a stack. The random phase does not stand for it: only a
 * process that had a tick has something to write, and the next one is then far away. The same holds for what
 * the first tick cost (it finds the unwind rules) in a process that is shorter than a period. */
static void take_end_cost(void)
{
    bool in_place = atomic_load_explicit(&lapse_runtime.drain, memory_order_relaxed) == LAPSE_DRAIN_REPLACED;
    if (!lapse_drain.ending)
        return;
    const struct lapse_record record = {
        .kind = LAPSE_RECORD_NOT_SAMPLED, .thread = lapse_drain.ending, .tid = lapse_drain.ending_tid,
        .time_ns = lapse_sys_clock(CLOCK_MONOTONIC),
        .weight_ns = lapse_drain.first_tick_ns + (in_place ? 0 : lapse_drain_cpu_ns()) +
                     lapse_sys_clock(lapse_clock_of_thread((int32_t)lapse_drain.ending_tid)) - lapse_drain.ending_ns,
    };
    lapse_store_record(&lapse_store, &record);
    lapse_store_write(&lapse_store);
}

/* Names, other outputs, the last words. `whole`: the spool has had nothing from this session before. */
static void write_outputs(bool whole)
{
    uint64_t deadline = lapse_sys_clock(CLOCK_MONOTONIC) + lapse_runtime.budget_ns;
    bool folds = lapse_runtime.settings.exports; /* they say the same as the spool */
    if (!lapse_store.header_written && !lapse_store.samples)
        return;
    if (whole && folds)
        take_end_cost();
    lapse_outputs_write(&lapse_store, deadline);
    if (whole && !folds)
        take_end_cost();
    lapse_store_write_end(&lapse_store, lapse_drain.reason, lapse_drain.signal);
}

void lapse_drain_finish(void)
{
    if (!lapse_store_init(&lapse_store)) {
        bool whole = !lapse_store.header_written;
        lapse_store_hold(&lapse_store);
        take_records();
        take_late_ticks();
        lapse_store.names_read_ns = 0; /* once more */
        lapse_store_write(&lapse_store);
        write_outputs(whole);
        lapse_store_let_go(&lapse_store);
        lapse_ring_hand_back(&lapse_runtime.ring, lapse_store.ring_position);
    }
    publish_errors();
    lapse_spool_close(&lapse_store.spool);
    if (!lapse_store.unsent)
        lapse_ring_file_retire();
    /* release: everything is written; pairs with the acquire in lapse_drain_ask */
    atomic_store_explicit(&lapse_drain.finished, 1, memory_order_release);
    lapse_sys_wake(&lapse_drain.finished);
    /* release: as above, for who waits for a flush: what it asked for is written */
    atomic_fetch_add_explicit(&lapse_drain.ended, 1, memory_order_release);
    atomic_fetch_add_explicit(&lapse_drain.flushes, 1, memory_order_release);
    lapse_sys_wake(&lapse_drain.flushes);
}

uint64_t lapse_drain_cpu_ns(void)
{
    return lapse_sys_clock(CLOCK_THREAD_CPUTIME_ID) - lapse_drain.before_ns;
}

void lapse_drain_reset(void)
{
    char base[LAPSE_PATH_MAX];
    /* A number out of the drain's own table means nothing here. */
    if (!atomic_exchange_explicit(&lapse_drain.private_files, 0, memory_order_relaxed))
        lapse_spool_close(&lapse_store.spool);
    memcpy(base, lapse_store.spool.base, sizeof base);
    lapse_arena_reset(&lapse_store.arena); /* in place: a fork's child finds what is left of it */
    struct lapse_arena arena = lapse_store.arena;
    memset((void *)&lapse_store, 0, sizeof lapse_store);
    lapse_store.arena = arena;
    memcpy(lapse_store.spool.base, base, sizeof base);
    atomic_store_explicit(&lapse_store.spool.fd, -1, memory_order_relaxed);
    /* Children of a host that asked for sandboxes enter theirs early on, and look for threads first. */
    atomic_store_explicit(&lapse_drain.not_before_ns,
                          lapse_drain.wary ? lapse_sys_clock(CLOCK_MONOTONIC) + WARY_FOR : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&lapse_drain.not_before_cpu_ns, lapse_drain.wary ? LAPSE_DRAIN_SINGLE : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&lapse_drain.requests, 0, memory_order_relaxed);
    atomic_store_explicit(&lapse_drain.has_news, 0, memory_order_relaxed);
    atomic_store_explicit(&lapse_drain.finished, 0, memory_order_relaxed);
    atomic_store_explicit(&lapse_drain.error, 0, memory_order_relaxed);
    atomic_store_explicit(&lapse_drain.write_errors, 0, memory_order_relaxed);
    lapse_drain.before_ns = 0;
    interval_ns = INTERVAL_FIRST;
    next_scan_ns = 0;
}

/* Follow the host: groups while there is still the right to, the user last. */
static void take_ids(const struct lapse_drain_ids *ids)
{
    lapse_sys(SYS_setgroups, ids->more_count, ids->more);
    lapse_sys(SYS_setresgid, ids->groups[0], ids->groups[1], ids->groups[2]);
    lapse_sys(SYS_setresuid, ids->users[0], ids->users[1], ids->users[2]);
}

/* Started by a handler that was held up until everything was written. */
static bool is_late(void)
{
    uint32_t state = atomic_load_explicit(&lapse_runtime.state, memory_order_acquire);
    return state == LAPSE_STATE_OFF || state == LAPSE_STATE_DISABLED ||
           atomic_load_explicit(&lapse_drain.finished, memory_order_relaxed);
}

/* One turn. False when the thread shall end. */
static bool turn(uint32_t requests)
{
    uint64_t used = lapse_ring_used(&lapse_runtime.ring);
    uint64_t now = lapse_sys_clock(CLOCK_MONOTONIC);
    if (requests & LAPSE_DRAIN_FINISH) {
        lapse_drain_finish();
        return false;
    }
    if (is_late())
        return false;
    if ((now >= lapse_runtime.end_ns || !lapse_signal_keep_on(now)) && lapse_session_expire())
        return false;
    if (!lapse_store_init(&lapse_store)) { /* without memory they stay in the ring */
        take_records();
        write_records();
    }
    if (requests & LAPSE_DRAIN_IDS)
        take_ids(lapse_drain.ids);
    if (requests & LAPSE_DRAIN_SNAPSHOT) {
        atomic_store_explicit(&lapse_drain.snapshot_result,
                              lapse_outputs_snapshot(&lapse_store, lapse_drain.snapshot_path),
                              memory_order_relaxed);
        atomic_fetch_add_explicit(&lapse_drain.snapshots, 1, memory_order_release);
        lapse_sys_wake(&lapse_drain.snapshots);
    }
    if (requests & (LAPSE_DRAIN_FLUSH | LAPSE_DRAIN_IDS)) {
        atomic_fetch_add_explicit(&lapse_drain.flushes, 1, memory_order_release);
        lapse_sys_wake(&lapse_drain.flushes);
    }
    if (requests & LAPSE_DRAIN_LEAVE)
        return false;
    look_after_threads(now);
    adapt_interval(used);
    return true;
}

bool lapse_drain_becomes(uint32_t to, uint32_t from)
{
    /* acq_rel: what the last thread did before it went, and what we do before the next one */
    return atomic_compare_exchange_strong_explicit(&lapse_runtime.drain, &from, to, memory_order_acq_rel,
                                                   memory_order_acquire);
}

/* News alone (news.h) waits until 10 ms after the last turn. */
static bool can_wait(uint64_t now)
{
    return atomic_load_explicit(&lapse_drain.has_news, memory_order_relaxed) &&
           now - turned_ns < INTERVAL_LEAST;
}

void lapse_drain_main(void)
{
    lapse_drain_becomes(LAPSE_DRAIN_RUNNING, LAPSE_DRAIN_STARTING);
    lapse_sys(SYS_prctl, PR_SET_NAME, "lapse-drain", 0, 0, 0);
    if (lapse_runtime.clock != LAPSE_CLOCK_PERF &&
        lapse_sys(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE) == 0)
        atomic_store_explicit(&lapse_drain.private_files, 1, memory_order_relaxed);
    if (!interval_ns)
        interval_ns = INTERVAL_FIRST;
    if (lapse_store_init(&lapse_store))
        lapse_message(LAPSE_MESSAGE_SETUP, "no memory for samples; they are lost", NULL, NULL, NULL);
    if (lapse_runtime.may_wait) { /* a file is dear, and the end may be near: as if news had just been written */
        turned_ns = lapse_sys_clock(CLOCK_MONOTONIC);
        atomic_store_explicit(&lapse_drain.has_news, 1, memory_order_relaxed);
    }
    for (;;) {
        /* acquire: a request comes after its bell; pairs with the release in ring_bell */
        uint32_t bell = atomic_load_explicit(&lapse_drain.bell, memory_order_acquire);
        uint32_t requests = atomic_exchange_explicit(&lapse_drain.requests, 0, memory_order_acq_rel);
        uint64_t wait = interval_ns, now = lapse_sys_clock(CLOCK_MONOTONIC);
        if (!requests && can_wait(now)) {
            lapse_sys_wait(&lapse_drain.bell, bell, INTERVAL_LEAST - (now - turned_ns));
            continue;
        }
        /* acquire: the records that were told of; pairs with the release in lapse_news_look */
        atomic_exchange_explicit(&lapse_drain.has_news, 0, memory_order_acquire);
        if (!turn(requests))
            break;
        turned_ns = now = lapse_sys_clock(CLOCK_MONOTONIC);
        if (lapse_runtime.end_ns > now && lapse_runtime.end_ns - now < wait)
            wait = lapse_runtime.end_ns - now;
        lapse_sys_wait(&lapse_drain.bell, bell, wait);
    }
    if (atomic_load_explicit(&lapse_drain.private_files, memory_order_relaxed))
        /* The table goes with the thread; the file is opened again by the next one. */
        atomic_store_explicit(&lapse_store.spool.fd, -1, memory_order_relaxed);
    /* HELD stays; STARTING is the next thread's. */
    lapse_drain_becomes(LAPSE_DRAIN_NONE, LAPSE_DRAIN_RUNNING);
}

static void ring_bell(enum lapse_drain_request request)
{
    atomic_fetch_or_explicit(&lapse_drain.requests, request, memory_order_acq_rel);
    atomic_fetch_add_explicit(&lapse_drain.bell, 1, memory_order_release);
    lapse_sys_wake(&lapse_drain.bell);
}

static bool wait_gone(uint32_t was, uint64_t timeout_ns)
{
    uint64_t deadline = lapse_sys_clock(CLOCK_MONOTONIC) + timeout_ns;
    while (was && atomic_load_explicit(&lapse_drain.alive, memory_order_acquire) == was) {
        struct timespec step = { 0, (long)(5 * MS) };
        if (lapse_sys_clock(CLOCK_MONOTONIC) >= deadline)
            return false;
        /* not private: the kernel's wake-up for a thread that is gone is not either */
        lapse_sys(SYS_futex, &lapse_drain.alive, FUTEX_WAIT, was, &step);
    }
    /* The word is cleared a moment before the thread leaves the process, and unshare counts threads. */
    while (was && lapse_sys(SYS_tgkill, lapse_sys(SYS_getpid), was, 0) == 0) {
        if (lapse_sys_clock(CLOCK_MONOTONIC) >= deadline)
            return false;
        lapse_sys(SYS_sched_yield);
    }
    return true;
}

bool lapse_drain_wait_gone(uint64_t timeout_ns)
{
    return wait_gone(atomic_load_explicit(&lapse_drain.alive, memory_order_acquire), timeout_ns);
}

/* Nobody will answer: no thread, and none about to be. In this order: one that starts is STARTING or
 * RUNNING once it is alive. */
static bool is_gone(void)
{
    if (atomic_load_explicit(&lapse_drain.alive, memory_order_seq_cst))
        return false;
    uint32_t state = atomic_load_explicit(&lapse_runtime.drain, memory_order_seq_cst);
    return state != LAPSE_DRAIN_STARTING && state != LAPSE_DRAIN_RUNNING;
}

bool lapse_drain_ask(enum lapse_drain_request request, uint64_t timeout_ns)
{
    uint64_t deadline = lapse_sys_clock(CLOCK_MONOTONIC) + timeout_ns;
    _Atomic uint32_t *answer = request == LAPSE_DRAIN_FINISH     ? &lapse_drain.finished
                               : request == LAPSE_DRAIN_SNAPSHOT ? &lapse_drain.snapshots
                                                                 : &lapse_drain.flushes;
    uint32_t before = atomic_load_explicit(answer, memory_order_acquire);
    uint32_t asked = atomic_load_explicit(&lapse_drain.alive, memory_order_acquire);
    ring_bell(request);
    if (request == LAPSE_DRAIN_LEAVE)
        return wait_gone(asked, timeout_ns);
    while (atomic_load_explicit(answer, memory_order_acquire) == before) {
        bool gone = is_gone(); /* it may have answered before it went */
        uint64_t now = lapse_sys_clock(CLOCK_MONOTONIC);
        if ((now >= deadline || gone) && atomic_load_explicit(answer, memory_order_acquire) == before)
            return false;
        /* In steps: the thread may have been ended with the process, and nobody would wake us. */
        lapse_sys_wait(answer, before, deadline - now < 50 * MS ? deadline - now : 50 * MS);
    }
    return true;
}
