/* SPDX-License-Identifier: MIT */
/* The spool that the short processes of a run share (runtime/spool.h): each puts its whole profile behind
 * those of others, in one write. One such file for each user. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "record.h"
#include "wire.h"

#define SUFFIX ".many.lapse"
#define PATH_MOST 255 /* what the runtime takes */
#define WINDOW 4096u
#define TAKEN "taken" /* no run's names begin so */
#define NUMBERS 10000
#define WRITERS_MS 250

void lapse_record_shared_set(const struct lapse_record_place *place, const char *prefix)
{
    char path[PATH_MAX + 64];
    int size = snprintf(path, sizeof path, "%s/%sshort", place->spools, prefix);
    /* Without a ring that outlives its process, nothing may wait for the process's end. */
    if (*place->rings && size <= PATH_MOST)
        setenv("LAPSE_SHARED", path, 1);
    else
        unsetenv("LAPSE_SHARED"); /* of an outer lapse record */
}

bool lapse_record_is_shared(const char *name)
{
    size_t size = strlen(name);
    return size > strlen(SUFFIX) && !strcmp(name + size - strlen(SUFFIX), SUFFIX);
}

/* Until nobody has it open for writing (a lease on reading says so), at most for a while: that takes a process
 * some microseconds, and one may be stopped there. */
static void wait_for_writers(int folder, const char *name)
{
    const struct timespec step = { 0, 5000000 };
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    for (int waited = 0; fd >= 0 && waited < WRITERS_MS && fcntl(fd, F_SETLEASE, F_RDLCK) && errno == EAGAIN; waited += 5)
        nanosleep(&step, NULL);
    if (fd >= 0)
        close(fd); /* and the lease with it */
}

void lapse_record_shared_take(const struct lapse_record_place *place)
{
    DIR *folder = opendir(place->spools);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char name[NAME_MAX + 32];
        if (!lapse_record_is_shared(entry->d_name) || !strncmp(entry->d_name, TAKEN, strlen(TAKEN)))
            continue;
        for (unsigned number = 0; number < NUMBERS; number++) {
            snprintf(name, sizeof name, TAKEN "%u-%s", number, entry->d_name);
            if (!renameat2(dirfd(folder), entry->d_name, dirfd(folder), name, RENAME_NOREPLACE)) {
                wait_for_writers(dirfd(folder), name);
                break;
            }
            if (errno != EEXIST)
                break;
        }
    }
    if (folder)
        closedir(folder);
}

/* The first whole chunk from *at on, its head included; 0: there is none. One that was cut short (its process
 * was killed while it wrote) is followed by another process's. */
static size_t find_chunk(int fd, uint64_t *at, uint8_t bytes[LAPSE_CHUNK_HEAD + LAPSE_CHUNK_MAX])
{
    uint32_t size, crc;
    for (;; ++*at) {
        ssize_t got = pread(fd, bytes, WINDOW, (off_t)*at), skip = 0;
        while (got - skip >= (ssize_t)LAPSE_CHUNK_HEAD && lapse_chunk_head_read(bytes + skip, &size, &crc))
            skip++;
        if (got - skip < (ssize_t)LAPSE_CHUNK_HEAD) {
            if (got < (ssize_t)WINDOW)
                return 0;
            *at += (uint64_t)skip - 1; /* what is left of the window may begin a head */
            continue;
        }
        *at += (uint64_t)skip;
        size_t whole = LAPSE_CHUNK_HEAD + size;
        if ((skip || (size_t)got < whole) && pread(fd, bytes, whole, (off_t)*at) < (ssize_t)whole)
            continue;
        if (lapse_crc32c(0, bytes + LAPSE_CHUNK_HEAD, size) == crc)
            return whole;
    }
}

bool lapse_record_shared_next(int fd, uint64_t *at, struct lapse_shared_part *part)
{
    uint8_t *bytes = malloc(LAPSE_CHUNK_HEAD + LAPSE_CHUNK_MAX);
    bool found = false;
    for (size_t size; bytes && (size = find_chunk(fd, at, bytes)); *at += size) {
        struct lapse_spool_mark mark = lapse_record_mark_of(bytes, size);
        if (mark.start_ns && found)
            break;
        if (mark.start_ns)
            *part = (struct lapse_shared_part){ .mark = mark, .offset = *at };
        found |= mark.start_ns != 0;
        part->bytes = *at + size - part->offset;
    }
    free(bytes);
    return found;
}

bool lapse_record_shared_has(int fd, const uint8_t session_id[16])
{
    struct lapse_shared_part part = { 0 };
    for (uint64_t at = 0; lapse_record_shared_next(fd, &at, &part);)
        if (!memcmp(part.mark.session_id, session_id, sizeof part.mark.session_id))
            return true;
    return false;
}
