/* SPDX-License-Identifier: MIT */
/* See ring_file.h. */
#include "ring_file.h"

#include <errno.h>
#include <string.h>

#include "drain.h"
#include "message.h"
#include "news.h"
#include "state.h"
#include "sys.h"

/* Empty when the ring is private. Written by the control side, read by whoever finishes. */
static char path[LAPSE_RINGS_MAX + 64];

static void remove_file(void)
{
    if (path[0])
        lapse_sys(SYS_unlink, path);
    path[0] = 0;
}

static int make_file(size_t size)
{
    struct lapse_text text = { path, 0, sizeof path };
    struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
    uint64_t number;
    memcpy(&number, lapse_runtime.session_id, sizeof number);
    lapse_text_string(&text, lapse_runtime.settings.rings);
    lapse_text_string(&text, "/");
    lapse_text_number(&text, lapse_runtime.pid);
    lapse_text_string(&text, "-");
    lapse_text_number(&text, number);
    lapse_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit);
    if (limit.rlim_cur < size) /* SIGXFSZ would be the host's */
        return -EFBIG;
    long fd = lapse_sys(SYS_open, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return (int)fd;
    long result = lapse_sys(SYS_ftruncate, fd, size);
    if (!result)
        return (int)fd;
    lapse_sys(SYS_unlink, path);
    lapse_sys(SYS_close, fd);
    return (int)result;
}

/* All at once where the kernel cannot reserve by address (before 5.14). */
static long reserve(void *at, size_t size, int fd, size_t *reserved)
{
    *reserved = LAPSE_RING_FIRST;
    long result = lapse_sys(SYS_madvise, at, LAPSE_RING_FIRST, MADV_POPULATE_WRITE);
    if (result != -EINVAL)
        return result;
    *reserved = size;
    return lapse_sys(SYS_fallocate, fd, 0, 0, size);
}

static int map_file(void *at, size_t size, size_t *reserved)
{
    int fd = make_file(size);
    if (fd < 0) {
        path[0] = 0;
        return fd;
    }
    long result = lapse_sys(SYS_mmap, at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (result > 0 || result < -4095)
        result = reserve(at, size, fd, reserved);
    lapse_sys(SYS_close, fd);
    if (result)
        remove_file();
    return (int)result;
}

static int map(void *at, size_t size, bool shared, size_t *reserved)
{
    remove_file();
    *reserved = size;
    if (shared && lapse_runtime.settings.rings[0]) {
        int result = map_file(at, size, reserved);
        if (!result)
            return 0;
        *reserved = size;
        lapse_message(LAPSE_MESSAGE_INFO, "the ring is in private memory: ", lapse_error_text(result),
                      NULL, NULL);
    }
    long result = lapse_sys(SYS_mmap, at, size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return result < 0 && result > -4096 ? (int)result : 0;
}

/* Who the ring belongs to, for a reader that finds it without its process. */
static void sign_ring(struct lapse_ring_control *control)
{
    const struct lapse_settings *settings = &lapse_runtime.settings;
    struct lapse_ring_owner *owner = &control->owner;
    memcpy(control->session_id, lapse_runtime.session_id, sizeof lapse_runtime.session_id);
    control->period_ns = lapse_runtime.period_ns;
    control->pid = lapse_runtime.pid;
    owner->start_ns = lapse_runtime.start_ns;
    owner->start_realtime_ns = lapse_runtime.start_realtime_ns;
    owner->gap_ns = settings->gap_ns;
    owner->clock = lapse_runtime.clock;
    owner->depth = lapse_runtime.depth;
    owner->min_samples = settings->min_samples;
    owner->close = settings->close;
    owner->has_run_id = settings->has_run_id;
    owner->run_index = settings->run_index;
    owner->run_variant = settings->run_variant;
    memcpy(owner->run_id, settings->run_id, sizeof settings->run_id);
    lapse_sys(SYS_readlink, "/proc/thread-self/exe", owner->program, sizeof owner->program - 1);
}

int lapse_ring_renew(bool shared)
{
    struct lapse_ring *ring = &lapse_runtime.ring;
    size_t reserved;
    int result = map(ring->control, LAPSE_RING_SIZE, shared, &reserved);
    if (result)
        return result;
    lapse_runtime.may_wait = path[0] && lapse_runtime.settings.shared[0] && !lapse_runtime.settings.exports &&
                             !lapse_runtime.settings.duration_ns;
    if (shared)
        sign_ring(ring->control);
    lapse_news_begin(path[0] != 0);
    result = lapse_ring_init(ring, ring->control, LAPSE_RING_WORDS, 0);
    /* relaxed: no handler and no drain thread yet */
    if (reserved < LAPSE_RING_SIZE)
        atomic_store_explicit(&ring->limit, (reserved - LAPSE_RING_CONTROL_SIZE) / sizeof(uint64_t),
                              memory_order_relaxed);
    return result;
}

void lapse_ring_file_retire(void)
{
    char *words = (char *)lapse_runtime.ring.control + LAPSE_RING_CONTROL_SIZE;
    if (!path[0])
        return;
    if (lapse_drain.reason != LAPSE_FINISH_EXEC && !lapse_runtime.has_forked) {
        remove_file();
        return;
    }
    lapse_sys(SYS_madvise, words, LAPSE_RING_SIZE - LAPSE_RING_CONTROL_SIZE, MADV_REMOVE);
    lapse_runtime.ring.control->owner.is_retired = 1;
}

bool lapse_ring_file_is_used(void)
{
    return path[0] != 0;
}

void lapse_ring_file_forget(void)
{
    path[0] = 0;
}
