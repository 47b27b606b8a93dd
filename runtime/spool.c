/* SPDX-License-Identifier: MIT */
/* See spool.h. Context: the drain thread, or the thread that finishes when there is none. */
#include "spool.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "sys.h"

#define NUMBERS 10000 /* files of one name that are tried */

static void name_with_number(char *path, const char *base, uint32_t number, const char *suffix)
{
    struct lapse_text text = { path, 0, LAPSE_PATH_MAX };
    lapse_text_string(&text, base);
    if (number) {
        lapse_text_string(&text, ".");
        lapse_text_number(&text, number);
    }
    lapse_text_string(&text, suffix);
}

static int create_numbered(char *path, const char *base, const char *suffix, uint32_t *number)
{
    long fd = -EEXIST;
    for (*number = 0; *number < NUMBERS; ++*number) {
        name_with_number(path, base, *number, suffix);
        fd = lapse_sys(SYS_open, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
        if (fd != -EEXIST && fd != -EINTR)
            break;
    }
    return (int)(fd < 0 ? fd : lapse_sys_move_high(fd));
}

int lapse_spool_create_output(const struct lapse_spool *spool, const char *suffix, char *path)
{
    uint32_t number;
    return create_numbered(path, spool->base, suffix, &number);
}

static bool is_ours(const struct lapse_spool *spool, int fd)
{
    struct stat status;
    return lapse_sys(SYS_fstat, fd, &status) == 0 && status.st_dev == spool->device &&
           status.st_ino == spool->inode;
}

static int create(struct lapse_spool *spool)
{
    uint32_t number;
    struct stat status;
    int fd = create_numbered(spool->path, spool->base, ".lapse", &number);
    if (fd < 0)
        return fd;
    lapse_sys(SYS_fstat, fd, &status);
    spool->device = status.st_dev;
    spool->inode = status.st_ino;
    spool->exists = true;
    spool->size = 0;
    atomic_store_explicit(&spool->fd, fd, memory_order_relaxed);
    if (number) {
        char base[LAPSE_PATH_MAX];
        name_with_number(base, spool->base, number, "");
        memcpy(spool->base, base, sizeof base);
    }
    return fd;
}

/* The descriptor, proved to be ours; made or opened again where needed. */
static int descriptor(struct lapse_spool *spool)
{
    if (!spool->exists)
        return create(spool);
    int fd = atomic_load_explicit(&spool->fd, memory_order_relaxed);
    if (fd >= 0 && is_ours(spool, fd))
        return fd;
    long opened = lapse_sys(SYS_open, spool->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY);
    if (opened < 0)
        return (int)opened;
    if (!is_ours(spool, (int)opened)) {
        lapse_sys(SYS_close, opened);
        return -ESTALE;
    }
    fd = (int)lapse_sys_move_high(opened);
    atomic_store_explicit(&spool->fd, fd, memory_order_relaxed);
    return fd;
}

static bool beyond_limit(uint64_t end)
{
    struct rlimit limit;
    return lapse_sys(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &limit) == 0 && end > limit.rlim_cur;
}

int lapse_spool_write_all(int fd, const void *bytes, size_t size, uint64_t offset)
{
    const char *at = bytes;
    if (beyond_limit(offset + size))
        return -EFBIG;
    while (size) {
        long written = lapse_sys(SYS_pwrite64, fd, at, size, offset);
        if (written == -EINTR)
            continue;
        if (written <= 0)
            return written ? (int)written : -EIO;
        at += written;
        offset += (uint64_t)written;
        size -= (size_t)written;
    }
    return 0;
}

/* Into the shared file, whoever else appends to it. *written: how much of it is there when that fails. */
static int share(const struct lapse_spool *spool, const char *shared, uint32_t *written)
{
    char path[LAPSE_PATH_MAX];
    struct stat status;
    struct lapse_text text = { path, 0, sizeof path };
    long user = lapse_sys(SYS_geteuid);
    lapse_text_string(&text, shared);
    lapse_text_string(&text, "-");
    lapse_text_number(&text, (uint64_t)user);
    lapse_text_string(&text, LAPSE_SPOOL_SHARED_SUFFIX);
    long fd = lapse_sys(SYS_open, path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                        0600);
    if (fd < 0)
        return (int)fd;
    long result = lapse_sys(SYS_fstat, fd, &status);
    if (!result && (!S_ISREG(status.st_mode) || status.st_nlink != 1 || (long)status.st_uid != user))
        result = -EACCES;
    if (!result && beyond_limit((uint64_t)status.st_size + spool->held_size))
        result = -EFBIG;
    while (result >= 0 && *written < spool->held_size) {
        result = lapse_sys(SYS_write, fd, spool->held + *written, spool->held_size - *written);
        if (result == -EINTR)
            result = 0;
        else if (result > 0)
            *written += (uint32_t)result;
    }
    lapse_sys(SYS_close, fd);
    return result < 0 ? (int)result : 0;
}

/* Into a file of its own. */
static int append_held(struct lapse_spool *spool)
{
    int fd = descriptor(spool);
    int result = fd < 0 ? fd : lapse_spool_write_all(fd, spool->held, spool->held_size, 0);
    if (!result)
        spool->size = spool->held_size;
    else if (fd >= 0) {
        lapse_sys(SYS_unlink, spool->path);
        lapse_spool_close(spool);
    }
    return result;
}

void lapse_spool_hold(struct lapse_spool *spool, void *memory)
{
    spool->held = spool->exists ? NULL : memory;
    spool->held_size = 0;
}

int lapse_spool_let_go(struct lapse_spool *spool, const char *shared)
{
    uint32_t written = 0;
    if (!spool->held || !spool->held_size)
        return 0;
    int result = *shared ? share(spool, shared, &written) : -ENOENT;
    if (result && !written)
        result = append_held(spool);
    if (!result || written)
        spool->held = NULL;
    return result;
}

static bool hold(struct lapse_spool *spool, const void *body, uint32_t size)
{
    if (!spool->held || spool->exists || size > LAPSE_SPOOL_HELD - LAPSE_CHUNK_HEAD - spool->held_size)
        return false;
    lapse_chunk_head((uint8_t *)spool->held + spool->held_size, body, size);
    memcpy(spool->held + spool->held_size + LAPSE_CHUNK_HEAD, body, size);
    spool->held_size += LAPSE_CHUNK_HEAD + size;
    return true;
}

int lapse_spool_append(struct lapse_spool *spool, const void *body, uint32_t size)
{
    uint8_t head[LAPSE_CHUNK_HEAD];
    if (hold(spool, body, size))
        return 0;
    int fd = spool->held ? lapse_spool_let_go(spool, "") : 0;
    if (!fd)
        fd = descriptor(spool);
    if (fd < 0)
        return fd;
    lapse_chunk_head(head, body, size);
    int result = beyond_limit(spool->size + sizeof head + size) ? -EFBIG : 0;
    if (!result)
        result = lapse_spool_write_all(fd, head, sizeof head, spool->size);
    if (!result)
        result = lapse_spool_write_all(fd, body, size, spool->size + sizeof head);
    if (result && !spool->size) {
        /* Nothing could be written at all: no empty file stays behind, and a later write tries anew. */
        lapse_sys(SYS_unlink, spool->path);
        lapse_spool_close(spool);
        return result;
    }
    if (result) {
        lapse_sys(SYS_ftruncate, fd, spool->size);
        return result;
    }
    spool->size += sizeof head + size;
    return 0;
}

long lapse_spool_read(struct lapse_spool *spool, void *to, size_t size, uint64_t offset)
{
    size_t done = 0;
    int fd = spool->exists ? descriptor(spool) : -ENOENT;
    if (fd < 0)
        return fd;
    while (done < size) {
        long got = lapse_sys(SYS_pread64, fd, (char *)to + done, size - done, offset + done);
        if (got == -EINTR)
            continue;
        if (got < 0)
            return got;
        if (!got)
            break;
        done += (size_t)got;
    }
    return (long)done;
}

void lapse_spool_close(struct lapse_spool *spool)
{
    int fd = atomic_exchange_explicit(&spool->fd, -1, memory_order_relaxed);
    if (fd >= 0 && spool->exists && is_ours(spool, fd))
        lapse_sys(SYS_close, fd);
    spool->exists = false;
}
