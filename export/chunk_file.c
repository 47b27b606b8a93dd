/* SPDX-License-Identifier: MIT */
/* Chunks of a file, past damage. See chunk_file.h. */
#include "chunk_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "wire.h"

#define WINDOW_BYTES (4u << 20) /* holds the largest chunk several times over */
#define PATIENCE_BYTES (64u << 20)

static int temporary_file(void)
{
    const char *folder = getenv("TMPDIR");
    char name[4096];
    if (!folder || !*folder)
        folder = "/tmp";
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    snprintf(name, sizeof name, "%s/lapse-XXXXXX", folder); /* file systems without O_TMPFILE */
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    unlink(name);
    return fd;
}

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size) {
        ssize_t done = write(fd, bytes, size);
        if (done < 0 && errno != EINTR)
            return -errno;
        if (done > 0) {
            bytes += done;
            size -= (size_t)done;
        }
    }
    return 0;
}

int lapse_copy_to_temporary(const void *head, size_t head_size, int from)
{
    char bytes[65536];
    int to = temporary_file();
    int error = to < 0 ? to : write_all(to, head, head_size);
    if (to < 0)
        return to;
    while (!error) {
        ssize_t got = read(from, bytes, sizeof bytes);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            error = -errno;
        if (got <= 0)
            break;
        error = write_all(to, bytes, (size_t)got);
    }
    if (!error && lseek(to, 0, SEEK_SET) < 0)
        error = -errno;
    if (error)
        close(to);
    return error ? error : to;
}

bool lapse_is_endless(int fd, const struct stat *status)
{
    char byte;
    bool is_device = S_ISBLK(status->st_mode) || (S_ISCHR(status->st_mode) && !isatty(fd));
    return is_device && read(fd, &byte, 1) > 0;
}

int lapse_open_seekable(const char *path)
{
    struct stat status;
    int fd = strcmp(path, "-") ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)
                               : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    int result = fstat(fd, &status) ? -errno : fd;
    if (result >= 0 && S_ISDIR(status.st_mode))
        result = -EISDIR;
    if (result >= 0 && lapse_is_endless(fd, &status))
        result = -ENOTSUP;
    /* Standard input that was redirected from a file may stand somewhere in the middle of it. */
    if (result >= 0 && (!S_ISREG(status.st_mode) || lseek(fd, 0, SEEK_CUR) > 0))
        result = lapse_copy_to_temporary(NULL, 0, fd);
    if (result != fd)
        close(fd);
    return result;
}

int lapse_chunk_file_open(struct lapse_chunk_file *file, int fd)
{
    struct stat status;
    *file = (struct lapse_chunk_file){ .fd = fd };
    if (fstat(fd, &status))
        return -errno;
    file->size = (uint64_t)status.st_size;
    lapse_chunk_file_rewind(file);
    return 0;
}

void lapse_chunk_file_idle(struct lapse_chunk_file *file)
{
    free(file->window);
    file->window = NULL;
    file->window_size = 0;
}

void lapse_chunk_file_close(struct lapse_chunk_file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    lapse_chunk_file_idle(file);
    *file = (struct lapse_chunk_file){ .fd = -1 };
}

void lapse_chunk_file_rewind(struct lapse_chunk_file *file)
{
    file->offset = 0;
    file->patience = PATIENCE_BYTES + 4 * file->size;
}

static int fill_window(struct lapse_chunk_file *file, uint64_t offset)
{
    uint64_t left = file->size - offset;
    size_t wanted = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
    if (!file->window) /* `size` never grows: what is enough now stays enough */
        file->window = malloc(file->size < WINDOW_BYTES ? (size_t)file->size : WINDOW_BYTES);
    if (!file->window)
        return -ENOMEM;
    file->window_offset = offset;
    file->window_size = 0;
    while (file->window_size < wanted) {
        ssize_t got = pread(file->fd, file->window + file->window_size, wanted - file->window_size,
                            (off_t)(offset + file->window_size));
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0) { /* the file became shorter */
            file->size = offset + file->window_size;
            break;
        }
        if (got > 0)
            file->window_size += (size_t)got;
    }
    return 0;
}

/* Bytes at an offset: at least `wanted` of them unless the file ends before. Returns their number. */
static int64_t look(struct lapse_chunk_file *file, uint64_t offset, size_t wanted,
                    const uint8_t **bytes)
{
    if (offset >= file->size)
        return 0;
    if (wanted > file->size - offset)
        wanted = (size_t)(file->size - offset);
    if (offset < file->window_offset || offset + wanted > file->window_offset + file->window_size) {
        int error = fill_window(file, offset);
        if (error)
            return error;
    }
    *bytes = file->window + (offset - file->window_offset);
    return (int64_t)(file->window_size - (offset - file->window_offset));
}

/* Offset of the next good head at or after `from`, or the file's size. */
static int64_t find_head(struct lapse_chunk_file *file, uint64_t from)
{
    static const uint8_t magic[4] = { 'L', 'A', 'P', 'C' };
    const uint8_t *bytes, *found;
    uint32_t size, crc;
    for (;;) {
        int64_t got = look(file, from, LAPSE_CHUNK_HEAD, &bytes);
        if (got < 0)
            return got;
        if (got < LAPSE_CHUNK_HEAD)
            return (int64_t)file->size;
        found = memmem(bytes, (size_t)got, magic, sizeof magic);
        if (!found) {
            from += (uint64_t)got - (sizeof magic - 1);
        } else if (found + LAPSE_CHUNK_HEAD > bytes + got) {
            from += (uint64_t)(found - bytes); /* look again with all of the head in the window */
            if (found == bytes)
                return (int64_t)file->size;
        } else if (!lapse_chunk_head_read(found, &size, &crc)) {
            return (int64_t)(from + (uint64_t)(found - bytes));
        } else {
            from += (uint64_t)(found - bytes) + 1;
        }
    }
}

/* Go on behind a place where no good chunk is, at the next good head from `from` on. `expected` is
 * where it would be if nothing was missing; what is stepped over is counted. */
static int step_over(struct lapse_chunk_file *file, uint64_t from, uint64_t expected,
                     uint64_t *counter)
{
    int64_t next = find_head(file, from);
    if (next < 0)
        return (int)next;
    *counter += (uint64_t)next - ((uint64_t)next < expected ? file->offset : expected);
    file->offset = (uint64_t)next;
    return 0;
}

/* The head was right and the contents are not: other chunks may begin inside of what it claims. */
static int step_over_body(struct lapse_chunk_file *file, uint32_t size, struct lapse_damage *damage)
{
    uint64_t end = file->offset + LAPSE_CHUNK_HEAD + size;
    damage->bad_chunks++;
    if (file->patience < size) { /* heads within heads, made up to waste our time */
        file->offset = end;
        return 0;
    }
    file->patience -= size;
    return step_over(file, file->offset + LAPSE_CHUNK_HEAD, end, &damage->skipped_bytes);
}

/* Returns 1 with a body, 0 when something was stepped over, or a negative errno. */
static int chunk_here(struct lapse_chunk_file *file, struct lapse_damage *damage,
                      const uint8_t **body, uint32_t *size)
{
    uint64_t at = file->offset;
    const uint8_t *bytes = NULL;
    uint32_t crc;
    int64_t got = look(file, at, LAPSE_CHUNK_HEAD, &bytes);
    *body = bytes;
    if (got < 0)
        return (int)got;
    if (got < LAPSE_CHUNK_HEAD) {
        damage->cut_bytes += (uint64_t)got;
        file->offset = file->size;
        return 0;
    }
    if (lapse_chunk_head_read(bytes, size, &crc))
        return step_over(file, at + 1, at, &damage->skipped_bytes);
    got = look(file, at + LAPSE_CHUNK_HEAD, *size, body);
    if (got < 0)
        return (int)got;
    if (got < *size)
        return step_over(file, at + LAPSE_CHUNK_HEAD, at, &damage->cut_bytes);
    if (lapse_crc32c(0, *body, *size) != crc)
        return step_over_body(file, *size, damage);
    file->offset = at + LAPSE_CHUNK_HEAD + *size;
    return 1;
}

int lapse_chunk_file_next(struct lapse_chunk_file *file, struct lapse_damage *damage,
                          const uint8_t **body, uint32_t *size, bool *gap)
{
    *gap = false;
    while (file->offset < file->size) {
        int result = chunk_here(file, damage, body, size);
        if (result)
            return result;
        *gap = true;
    }
    return 0;
}
