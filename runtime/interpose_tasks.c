/* SPDX-License-Identifier: MIT */
/* Hosts that count their own threads. Chromium's helpers take the status of /proc/self/task, whose links
 * are two and one a thread, and die when there is a second one before they lock themselves up. The drain
 * thread leaves before they get the answer.
 *
 * The real call goes first: afterwards the path is known to be readable, and only directories without a size,
 * as pseudo file systems have, are looked at further. Called by the host. */
#include "interpose.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

#include "interpose_state.h"
#include "real.h"
#include "session.h"

static bool ends_with(const char *path, size_t length, const char *end)
{
    size_t size = strlen(end);
    return length >= size && !memcmp(path + length - size, end, size);
}

/* Was that the host's own list of threads, and has the drain thread left it since? */
static bool has_to_ask_again(const char *path, mode_t mode, off_t size, nlink_t links)
{
    if (!S_ISDIR(mode) || size || links < 4 || !path || !lapse_taken_signal())
        return false;
    size_t length = strlen(path);
    while (length && path[length - 1] == '/')
        length--;
    if (!ends_with(path, length, "self/task") &&
        !(!strncmp(path, "/proc/", 6) && ends_with(path, length, "/task")))
        return false;
    int error = errno;
    lapse_session_stay_single();
    errno = error;
    return true;
}

LAPSE_INTERPOSE int stat(const char *path, struct stat *status)
{
    int result = LAPSE_REAL(stat)(path, status);
    if (!result && has_to_ask_again(path, status->st_mode, status->st_size, status->st_nlink))
        result = LAPSE_REAL(stat)(path, status);
    return result;
}

LAPSE_INTERPOSE int stat64(const char *path, struct stat64 *status)
{
    int result = LAPSE_REAL(stat64)(path, status);
    if (!result && has_to_ask_again(path, status->st_mode, status->st_size, status->st_nlink))
        result = LAPSE_REAL(stat64)(path, status);
    return result;
}

LAPSE_INTERPOSE int fstatat(int folder, const char *path, struct stat *status, int flags)
{
    int result = LAPSE_REAL(fstatat)(folder, path, status, flags);
    if (!result && has_to_ask_again(path, status->st_mode, status->st_size, status->st_nlink))
        result = LAPSE_REAL(fstatat)(folder, path, status, flags);
    return result;
}

LAPSE_INTERPOSE int fstatat64(int folder, const char *path, struct stat64 *status, int flags)
{
    int result = LAPSE_REAL(fstatat64)(folder, path, status, flags);
    if (!result && has_to_ask_again(path, status->st_mode, status->st_size, status->st_nlink))
        result = LAPSE_REAL(fstatat64)(folder, path, status, flags);
    return result;
}
