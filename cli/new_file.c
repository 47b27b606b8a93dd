/* SPDX-License-Identifier: MIT */
/* See new_file.h. */
#include "new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES = 100 };

/* Without a name, in the folder of `path`; else with one beside it. */
static int open_temporary(struct lapse_new_file *file)
{
    const char *slash = strrchr(file->path, '/');
    int size = snprintf(file->temporary, sizeof file->temporary, "%.*s", slash ? (int)(slash - file->path) + 1 : 1,
                        slash ? file->path : ".");
    if (size >= (int)sizeof file->temporary)
        return -ENAMETOOLONG;
    int fd = open(file->temporary, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (fd >= 0)
        return fd;
    size = snprintf(file->temporary, sizeof file->temporary, "%s.XXXXXX", file->path);
    if (size >= (int)sizeof file->temporary)
        return -ENAMETOOLONG;
    fd = mkostemp(file->temporary, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    mode_t mask = umask(0);
    umask(mask);
    fchmod(fd, 0666 & ~mask);
    file->named = true;
    return fd;
}

int lapse_new_file_create(struct lapse_new_file *file, const char *path)
{
    struct stat status;
    *file = (struct lapse_new_file){ 0 };
    if (!realpath(path, file->path) && /* where a link leads to is replaced, not the link */
        snprintf(file->path, sizeof file->path, "%s", path) >= (int)sizeof file->path)
        return -ENAMETOOLONG;
    file->direct = !stat(file->path, &status) && !S_ISREG(status.st_mode);
    int fd = file->direct ? open(file->path, O_WRONLY | O_CLOEXEC | O_NOCTTY) : open_temporary(file);
    if (fd < 0)
        return file->direct ? -errno : fd;
    file->file = fdopen(fd, "w");
    return file->file ? 0 : -errno;
}

/* A name that nobody has: rename needs one. Where nothing may be, the right one at once. */
static int give_name(struct lapse_new_file *file)
{
    char descriptor[32];
    snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", fileno(file->file));
    if (file->must_be_new)
        return linkat(AT_FDCWD, descriptor, AT_FDCWD, file->path, AT_SYMLINK_FOLLOW) ? -errno : 0;
    for (int try = 0; try < TRIES; try++) {
        int size = snprintf(file->temporary, sizeof file->temporary, "%s.%d-%d", file->path,
                            (int)getpid(), try);
        if (size >= (int)sizeof file->temporary)
            return -ENAMETOOLONG;
        if (!linkat(AT_FDCWD, descriptor, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW)) {
            file->named = true;
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    return -errno;
}

static int move(const struct lapse_new_file *file)
{
    unsigned flags = file->must_be_new ? RENAME_NOREPLACE : 0;
    return renameat2(AT_FDCWD, file->temporary, AT_FDCWD, file->path, flags) ? -errno : 0;
}

int lapse_new_file_close(struct lapse_new_file *file, bool keep)
{
    int error = fflush(file->file) || ferror(file->file) ? errno ? -errno : -EIO : 0;
    if (keep && !error && !file->direct && !file->named)
        error = give_name(file);
    if (fclose(file->file) && !error)
        error = -errno;
    if (keep && !error && file->named)
        error = move(file);
    if (file->named && (error || !keep))
        unlink(file->temporary);
    return error;
}
