/* SPDX-License-Identifier: MIT */
/* See clocks.h. */
#include "clocks.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>

#include "message.h"
#include "state.h"
#include "sys.h"

#define NS_PER_S UINT64_C(1000000000)

/* What timer_create wants, as the kernel lays it out. */
struct kernel_sigevent {
    uint64_t value;
    int32_t signal, notify, tid, spare[11];
};
_Static_assert(sizeof(struct kernel_sigevent) == 64, "sigevent of the kernel");

uint64_t lapse_clock_random(uint64_t bound)
{
    uint64_t random = 0;
    if (lapse_sys(SYS_getrandom, &random, sizeof random, 1 /* GRND_NONBLOCK */) != sizeof random)
        random = lapse_sys_clock(CLOCK_MONOTONIC) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)((unsigned __int128)random * bound >> 64);
}

static long clock_number(const struct lapse_slot *slot)
{
    return lapse_runtime.clock == LAPSE_CLOCK_WALL
               ? CLOCK_MONOTONIC
               : lapse_clock_of_thread(atomic_load_explicit(&slot->tid, memory_order_relaxed));
}

static void set_timer(const struct lapse_slot *slot, uint64_t first_ns, uint64_t period_ns)
{
    struct itimerspec when = {
        .it_value = { (time_t)(first_ns / NS_PER_S), (long)(first_ns % NS_PER_S) },
        .it_interval = { (time_t)(period_ns / NS_PER_S), (long)(period_ns % NS_PER_S) },
    };
    int timer = atomic_load_explicit(&slot->timer, memory_order_relaxed);
    lapse_sys(SYS_timer_settime, timer, TIMER_ABSTIME, &when, 0);
}

/* Expiries due up to `now` on the slot's clock since it was armed. */
static uint64_t due(const struct lapse_slot *slot, uint64_t now)
{
    uint64_t period = atomic_load_explicit(&slot->period_ns, memory_order_relaxed);
    return slot->first_ns && now >= slot->first_ns ? (now - slot->first_ns) / period + 1 : 0;
}

uint64_t lapse_clock_late(const struct lapse_slot *slot)
{
    if (lapse_runtime.clock != LAPSE_CLOCK_CPU ||
        (lapse_runtime.settings.delay_ns && lapse_sys_clock(CLOCK_MONOTONIC) < lapse_runtime.begin_ns))
        return 0;
    uint64_t expected = slot->due_before + due(slot, lapse_sys_clock(clock_number(slot)));
    uint64_t delivered = atomic_load_explicit(&slot->delivered, memory_order_relaxed);
    return expected > delivered ? expected - delivered : 0;
}

uint64_t lapse_clock_unsampled(const struct lapse_slot *slot)
{
    if (atomic_load_explicit(&slot->timer, memory_order_relaxed) < 0 &&
        atomic_load_explicit(&slot->perf_fd, memory_order_relaxed) < 0)
        return lapse_sys_clock(lapse_clock_of_thread(atomic_load_explicit(&slot->tid, memory_order_relaxed)));
    return atomic_load_explicit(&slot->blocked, memory_order_relaxed)
               ? lapse_clock_late(slot) * atomic_load_explicit(&slot->period_ns, memory_order_relaxed) : 0;
}

/* Anywhere in the period, all equally likely. First ticks of the processes of a recording, or of a process's
 * threads, are spread over it evenly: from a random point on by the golden ratio times the thread's id. A
 * thousand children of two milliseconds add up with a tenth of the error that chance would leave. */
static uint64_t phase(const struct lapse_slot *slot, uint64_t period, uint64_t from_ns)
{
    const struct lapse_settings *settings = &lapse_runtime.settings;
    uint64_t start;
    if (from_ns)
        return lapse_clock_random(period);
    memcpy(&start, settings->has_run_id ? settings->run_id : lapse_runtime.session_id, sizeof start);
    start += (uint32_t)atomic_load_explicit(&slot->tid, memory_order_relaxed) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint64_t)((unsigned __int128)start * period >> 64);
}

/* The kernel first fires at the first expiry that lies ahead; those between from_ns and now are due
 * at once and count as late. */
void lapse_clock_arm(struct lapse_slot *slot, uint64_t from_ns)
{
    if (atomic_load_explicit(&slot->excluded, memory_order_relaxed))
        return;
    uint64_t period = atomic_load_explicit(&slot->period_ns, memory_order_relaxed);
    if (atomic_load_explicit(&slot->perf_fd, memory_order_relaxed) >= 0) {
        lapse_sys(SYS_ioctl, atomic_load_explicit(&slot->perf_fd, memory_order_relaxed),
                  PERF_EVENT_IOC_ENABLE, 0);
        return;
    }
    if (atomic_load_explicit(&slot->timer, memory_order_relaxed) < 0)
        return;
    uint64_t now = lapse_sys_clock(clock_number(slot));
    if (from_ns > now)
        from_ns = now;
    slot->first_ns = from_ns + 1 + phase(slot, period, from_ns);
    uint64_t next = slot->first_ns;
    if (next <= now)
        next += ((now - next) / period + 1) * period;
    set_timer(slot, next, period);
}

void lapse_clock_disarm(struct lapse_slot *slot)
{
    int fd = atomic_load_explicit(&slot->perf_fd, memory_order_relaxed);
    if (fd >= 0)
        lapse_sys(SYS_ioctl, fd, PERF_EVENT_IOC_DISABLE, 0);
    if (atomic_load_explicit(&slot->timer, memory_order_relaxed) < 0)
        return;
    set_timer(slot, 0, 0);
    if (lapse_runtime.clock == LAPSE_CLOCK_CPU && slot->first_ns)
        slot->due_before += due(slot, lapse_sys_clock(clock_number(slot)));
    slot->first_ns = 0;
}

void lapse_clock_lower_rate(struct lapse_slot *slot)
{
    int fd = atomic_load_explicit(&slot->perf_fd, memory_order_relaxed);
    uint64_t period = 2 * atomic_load_explicit(&slot->period_ns, memory_order_relaxed);
    if (fd >= 0) {
        atomic_store_explicit(&slot->period_ns, period, memory_order_relaxed);
        lapse_sys(SYS_ioctl, fd, PERF_EVENT_IOC_PERIOD, &period);
        return;
    }
    lapse_clock_disarm(slot);
    /* What is due by now was due at the old period; half as many of the new one weigh the same. */
    uint64_t delivered = atomic_load_explicit(&slot->delivered, memory_order_relaxed);
    uint64_t late = slot->due_before > delivered ? slot->due_before - delivered : 0;
    slot->due_before = delivered + (late + 1) / 2;
    atomic_store_explicit(&slot->period_ns, period, memory_order_relaxed);
    lapse_clock_arm(slot, ~UINT64_C(0));
}

static int create_timer(struct lapse_slot *slot)
{
    struct kernel_sigevent event = {
        .value = (uint64_t)lapse_slots.cookie << 32 | slot->index,
        .signal = lapse_runtime.signal, .notify = SIGEV_THREAD_ID,
        .tid = atomic_load_explicit(&slot->tid, memory_order_relaxed),
    };
    int timer = -1;
    long result = lapse_sys(SYS_timer_create, clock_number(slot), &event, &timer);
    if (result < 0)
        return (int)result;
    atomic_store_explicit(&slot->timer, timer, memory_order_relaxed);
    return 0;
}

static int create_perf_event(struct lapse_slot *slot)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.size = sizeof attr;
    attr.type = PERF_TYPE_SOFTWARE;
    attr.config = PERF_COUNT_SW_TASK_CLOCK;
    attr.sample_period = atomic_load_explicit(&slot->period_ns, memory_order_relaxed);
    attr.disabled = 1;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    attr.wakeup_events = 1;
    int32_t tid = atomic_load_explicit(&slot->tid, memory_order_relaxed);
    long fd = lapse_sys(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (fd < 0)
        return (int)fd;
    fd = lapse_sys_move_high(fd);
    struct f_owner_ex owner = { F_OWNER_TID, tid };
    lapse_sys(SYS_fcntl, fd, F_SETSIG, lapse_runtime.signal);
    lapse_sys(SYS_fcntl, fd, F_SETOWN_EX, &owner);
    lapse_sys(SYS_fcntl, fd, F_SETFL, O_ASYNC | O_NONBLOCK);
    atomic_store_explicit(&lapse_clock_slot_by_fd[(uint32_t)fd % LAPSE_CLOCK_FDS], slot->index + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&slot->perf_fd, (int32_t)fd, memory_order_relaxed);
    return 0;
}

int lapse_clock_create(struct lapse_slot *slot, uint64_t from_ns, bool armed)
{
    int result = -ENOSYS;
    atomic_store_explicit(&slot->period_ns, lapse_runtime.period_ns, memory_order_relaxed);
    if (lapse_runtime.clock == LAPSE_CLOCK_PERF) {
        result = create_perf_event(slot);
        if (result == -EACCES || result == -EPERM || result == -ENOSYS || result == -ENOENT) {
            lapse_message(LAPSE_MESSAGE_CLOCK, "LAPSE_CLOCK=perf: ", lapse_error_text(result),
                          "; using the CPU clock", NULL);
            lapse_runtime.clock = LAPSE_CLOCK_CPU;
        }
    }
    if (lapse_runtime.clock != LAPSE_CLOCK_PERF)
        result = create_timer(slot);
    if (!result && armed)
        lapse_clock_arm(slot, from_ns);
    return result;
}

void lapse_clock_delete(struct lapse_slot *slot)
{
    /* seq_cst: see lapse_slots_give_when_left and the handler's look at the timer */
    int timer = atomic_exchange_explicit(&slot->timer, -1, memory_order_seq_cst);
    int fd = atomic_exchange_explicit(&slot->perf_fd, -1, memory_order_seq_cst);
    if (timer >= 0)
        lapse_sys(SYS_timer_delete, timer);
    if (fd >= 0)
        lapse_sys(SYS_close, fd);
}
