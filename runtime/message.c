/* SPDX-License-Identifier: MIT */
/* See message.h. */
#include "message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "drain.h"
#include "sys.h"

static _Atomic uint32_t said; /* bit per cause */
static bool is_quiet, is_verbose;
/* The error output that the process began with. Written by the first session's start. */
static struct { bool known, open; uint64_t device, inode; } begun;

void lapse_text_bytes(struct lapse_text *text, const char *bytes, size_t size)
{
    if (!text->capacity)
        return;
    size_t room = text->capacity - 1 - text->size;
    if (size > room)
        size = room;
    memcpy(text->bytes + text->size, bytes, size);
    text->size += size;
    text->bytes[text->size] = 0;
}

void lapse_text_string(struct lapse_text *text, const char *string)
{
    if (string)
        lapse_text_bytes(text, string, strlen(string));
}

static void put_number(struct lapse_text *text, uint64_t number, unsigned base)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    lapse_text_bytes(text, digits + at, sizeof digits - at);
}

void lapse_text_number(struct lapse_text *text, uint64_t number)
{
    put_number(text, number, 10);
}

void lapse_text_hex(struct lapse_text *text, uint64_t number)
{
    lapse_text_string(text, "0x");
    put_number(text, number, 16);
}

static void look_at_stderr(void)
{
    struct stat status;
    if (begun.known)
        return;
    begun.open = lapse_sys(SYS_fstat, 2, &status) == 0;
    if (begun.open) {
        begun.device = status.st_dev;
        begun.inode = status.st_ino;
    }
    begun.known = true;
}

/* A host without an error output, or one that closed it, may have a file of its own at that number: words of
 * ours would be in its data. A log or a terminal put there later is one. */
static bool is_error_output(long fd)
{
    struct stat status;
    if (!begun.open || lapse_sys(SYS_fstat, fd, &status) != 0)
        return false;
    if (status.st_dev == begun.device && status.st_ino == begun.inode)
        return true;
    return S_ISCHR(status.st_mode) || S_ISFIFO(status.st_mode) ||
           (S_ISREG(status.st_mode) && (lapse_sys(SYS_fcntl, fd, F_GETFL) & O_APPEND));
}

void lapse_message_configure(bool quiet, bool verbose)
{
    look_at_stderr();
    is_quiet = quiet;
    is_verbose = verbose;
}

/* The drain thread has a descriptor table of its own, without stderr (holding it open there would keep
 * a pipe from ending when the host closes it): it borrows the host's for the moment of writing. */
static void write_line(const char *line, size_t size)
{
    /* relaxed: what the drain thread sees of itself */
    if (!atomic_load_explicit(&lapse_drain.private_files, memory_order_relaxed) ||
        atomic_load_explicit(&lapse_drain.alive, memory_order_relaxed) != (uint32_t)lapse_sys(SYS_gettid)) {
        if (is_error_output(2))
            lapse_sys(SYS_write, 2, line, size);
        return;
    }
    long process = lapse_sys(SYS_pidfd_open, lapse_sys(SYS_getpid), 0);
    long borrowed = process >= 0 && process != 2 ? lapse_sys(SYS_pidfd_getfd, process, 2, 0) : -1;
    if (borrowed >= 0) {
        if (is_error_output(borrowed))
            lapse_sys(SYS_write, borrowed, line, size);
        lapse_sys(SYS_close, borrowed);
    }
    if (process >= 0)
        lapse_sys(SYS_close, process);
}

void lapse_message(enum lapse_message cause, const char *a, const char *b, const char *c,
                   const char *d)
{
    char line[1024];
    struct lapse_text text = { line, 0, sizeof line - 1 };
    if (is_quiet || (cause == LAPSE_MESSAGE_INFO && !is_verbose))
        return;
    /* relaxed: only whether this cause was named before */
    uint32_t bit = UINT32_C(1) << cause;
    if (cause != LAPSE_MESSAGE_INFO &&
        (atomic_fetch_or_explicit(&said, bit, memory_order_relaxed) & bit))
        return;
    lapse_text_string(&text, "lapse: ");
    lapse_text_string(&text, a);
    lapse_text_string(&text, b);
    lapse_text_string(&text, c);
    lapse_text_string(&text, d);
    for (size_t i = 0; i < text.size; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = '?';
    line[text.size++] = '\n';
    write_line(line, text.size);
}

const char *lapse_error_text(int error)
{
    static char other[32]; /* two threads at once would mix digits, no more */
    struct lapse_text text = { other, 0, sizeof other };
    switch (error < 0 ? -error : error) {
    case EACCES: return "permission denied";
    case EPERM: return "not permitted";
    case ENOENT: return "no such folder";
    case ENOTDIR: return "not a folder";
    case ENOSPC: return "no space left";
    case EDQUOT: return "quota exceeded";
    case EROFS: return "read-only file system";
    case EFBIG: return "file size limit";
    case EMFILE: case ENFILE: return "too many open files";
    case ELOOP: return "is a symbolic link";
    case ENAMETOOLONG: return "name too long";
    case EEXIST: return "exists";
    case EIO: return "input/output error";
    case ENOMEM: return "no memory";
    case EAGAIN: return "resource limit";
    case ENOSYS: return "not supported by this kernel";
    default:
        lapse_text_string(&text, "error ");
        lapse_text_number(&text, (uint64_t)(error < 0 ? -(int64_t)error : error));
        return other;
    }
}
