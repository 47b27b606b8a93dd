/* SPDX-License-Identifier: MIT */
/* The rings of a run's processes: files in a folder of memory (or of the run, where there is none),
 * which outlive their processes. `rings` in the run's folder says where they are. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "index.h"
#include "leftover.h"
#include "record.h"

#define MEMORY "/dev/shm"
#define ROOM_LEAST (UINT64_C(64) << 20) /* of memory, for 60 processes living at once */
#define PATH_MOST 255                   /* what the runtime takes */
#define GRACE_MS 250                    /* for processes that end together with the command */

static bool has_room(const char *folder)
{
    struct statvfs status;
    return !statvfs(folder, &status) && (uint64_t)status.f_bavail * status.f_frsize >= ROOM_LEAST;
}

void lapse_record_rings_make(struct lapse_record_place *place)
{
    char link[PATH_MAX];
    snprintf(place->rings, PATH_MAX, MEMORY "/lapse-XXXXXX");
    if (!has_room(MEMORY) || !mkdtemp(place->rings)) {
        if (snprintf(place->rings, PATH_MAX, "%s/memory", place->spools) > PATH_MOST ||
            mkdir(place->rings, 0700)) {
            place->rings[0] = 0;
            return;
        }
    }
    if (!geteuid()) /* as for the spools */
        chmod(place->rings, 01733);
    if (snprintf(link, sizeof link, "%s/rings", place->spools) < PATH_MAX && symlink(place->rings, link))
        unlink(link); /* only lapse recover would miss it */
}

static bool same_session(int fd, const uint8_t session_id[16])
{
    struct lapse_spool_mark mark = lapse_record_spool_mark(fd);
    return !memcmp(mark.session_id, session_id, sizeof mark.session_id);
}

/* The spool of this session, or a new one. Returns a descriptor or a negative errno, -EEXIST when the session
 * is in a spool that many share: then it is all there. */
static int spool_of(const struct lapse_record_place *place, const struct lapse_leftover *leftover)
{
    char name[64];
    struct stat status;
    int fd = -1;
    DIR *folder = opendir(place->spools);
    if (!folder)
        return -errno;
    for (struct dirent *entry; fd < 0 && (entry = readdir(folder));) {
        size_t size = strlen(entry->d_name);
        if (size < 6 || strcmp(entry->d_name + size - 6, ".lapse"))
            continue;
        bool is_shared = lapse_record_is_shared(entry->d_name);
        fd = lapse_record_open_spool(dirfd(folder), entry->d_name, is_shared ? O_RDONLY : O_RDWR, &status);
        if (fd >= 0 && is_shared && lapse_record_shared_has(fd, leftover->session_id)) {
            close(fd);
            closedir(folder);
            return -EEXIST;
        }
        if (fd >= 0 && (is_shared || !same_session(fd, leftover->session_id))) {
            close(fd);
            fd = -1;
        }
    }
    for (int number = 0; fd < 0 && number < 1000; number++) {
        snprintf(name, sizeof name, "ring-%u.%d.lapse", leftover->pid, number);
        fd = openat(dirfd(folder), name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    int error = fd < 0 ? -errno : 0;
    closedir(folder);
    return fd < 0 ? error : fd;
}

static int note_living(struct lapse_record_place *place, const struct lapse_leftover *leftover)
{
    uint8_t(*grown)[16] = lapse_array_grow(place->living, place->living_count, sizeof *grown);
    if (!grown)
        return -ENOMEM;
    place->living = grown;
    memcpy(grown[place->living_count++], leftover->session_id, sizeof *grown);
    return 0;
}

/* What one look at the folder says of another one. */
struct outlook {
    bool is_pending; /* a process is about to have a ring */
    bool is_stale;   /* a ring has gone: its place may have been another one's, made too late for this look */
};

static int take(struct lapse_record_place *place, int folder, const char *name, struct outlook *outlook)
{
    struct lapse_leftover leftover;
    uint64_t samples = 0;
    int error = lapse_leftover_open(&leftover, folder, name);
    if (error == -EBADMSG || error == -ELOOP) { /* has not begun, was killed before it had, or is none of ours */
        outlook->is_pending |= leftover.is_alive;
        return 0;
    }
    if (error)
        return error;
    if (leftover.is_alive && leftover.is_retired)
        outlook->is_pending = true;
    else if (leftover.is_alive)
        return note_living(place, &leftover);
    else if (!leftover.is_retired && lapse_leftover_has_samples(&leftover)) {
        int spool = spool_of(place, &leftover);
        error = spool < 0 ? spool : lapse_leftover_append(&leftover, spool, &samples);
        if (spool == -EEXIST)
            error = 0;
        if (spool >= 0 && close(spool) && !error)
            error = -errno;
    }
    if (!error && !leftover.is_alive) {
        unlinkat(folder, name, 0);
        outlook->is_stale = true;
    }
    place->rescued += samples;
    lapse_leftover_close(&leftover);
    return error;
}

static int take_all(struct lapse_record_place *place, struct outlook *outlook)
{
    DIR *folder = opendir(place->rings);
    int error = folder ? 0 : -errno;
    place->living_count = 0;
    *outlook = (struct outlook){ false, false };
    for (struct dirent *entry; !error && (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            error = take(place, dirfd(folder), entry->d_name, outlook);
    if (folder)
        closedir(folder);
    return error;
}

int lapse_record_rings_take(struct lapse_record_place *place)
{
    const struct timespec step = { 0, 25000000 };
    struct outlook outlook;
    int error = 0, waited = 0;
    if (!*place->rings)
        return 0;
    while (!(error = take_all(place, &outlook)) && waited < GRACE_MS &&
           (place->living_count || outlook.is_pending || outlook.is_stale)) {
        if (!outlook.is_stale)
            nanosleep(&step, NULL);
        waited += outlook.is_stale ? 1 : 25;
    }
    return error == -ENOENT ? 0 : error;
}

void lapse_record_rings_remove(struct lapse_record_place *place)
{
    DIR *folder = *place->rings && !place->living_count ? opendir(place->rings) : NULL;
    if (!folder)
        return;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    rmdir(place->rings);
}
