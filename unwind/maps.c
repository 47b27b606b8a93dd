/* SPDX-License-Identifier: MIT */
/* Reader of /proc/thread-self/maps; maps.h says for whom. Format: proc(5). */
#include "maps.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "system_call.h"

int lapse_maps_open(struct lapse_maps *maps)
{
    /* Not /proc/self: that is the first thread's, empty once it has ended. */
    long fd = lapse_system_call3(SYS_open, (long)"/proc/thread-self/maps", O_RDONLY | O_CLOEXEC, 0);
    maps->fd = (int)fd;
    maps->begin = maps->end = 0;
    return fd < 0 ? (int)fd : 0;
}

void lapse_maps_close(struct lapse_maps *maps)
{
    lapse_system_call3(SYS_close, maps->fd, 0, 0);
}

/* The next line, its newline replaced by zero. Returns 1, 0 at the end, or a negative errno. */
static int next_line(struct lapse_maps *maps, char **line)
{
    for (;;) {
        char *begin = maps->buffer + maps->begin;
        char *newline = memchr(begin, '\n', maps->end - maps->begin);
        if (newline) {
            *newline = 0;
            *line = begin;
            maps->begin = (uint32_t)(newline + 1 - maps->buffer);
            return 1;
        }
        memmove(maps->buffer, begin, maps->end - maps->begin);
        maps->end -= maps->begin;
        maps->begin = 0;
        if (maps->end == sizeof maps->buffer)
            return -E2BIG;
        long got = lapse_system_call3(SYS_read, maps->fd, (long)(maps->buffer + maps->end),
                                      (long)(sizeof maps->buffer - maps->end));
        if (got == -EINTR)
            continue;
        if (got <= 0)
            return (int)got;
        maps->end += (uint32_t)got;
    }
}

static uint64_t take_number(const char **at, unsigned radix)
{
    uint64_t value = 0;
    for (;; (*at)++) {
        char c = **at;
        unsigned digit = c >= '0' && c <= '9' ? (unsigned)(c - '0')
                       : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : radix;
        if (digit >= radix)
            return value;
        value = value * radix + digit;
    }
}

static void skip(const char **at, char c)
{
    while (**at == c)
        (*at)++;
}

/* The kernel's dev_t as stat shows it. */
static uint64_t device_number(uint64_t major, uint64_t minor)
{
    return (minor & 0xff) | (major & 0xfff) << 8 | (minor & ~UINT64_C(0xff)) << 12 |
           (major & ~UINT64_C(0xfff)) << 32;
}

/* Only a newline is escaped in paths, as \012. In place. */
static uint32_t unescape(char *path)
{
    char *to = path;
    for (const char *from = path; *from; to++) {
        if (strncmp(from, "\\012", 4) == 0) {
            *to = '\n';
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = 0;
    return (uint32_t)(to - path);
}

int lapse_maps_next(struct lapse_maps *maps, struct lapse_maps_line *line)
{
    static const char deleted[] = " (deleted)";
    char *text = NULL;
    int result = next_line(maps, &text);
    if (result <= 0)
        return result;
    const char *at = text;
    line->start = take_number(&at, 16);
    skip(&at, '-');
    line->end = take_number(&at, 16);
    skip(&at, ' ');
    line->readable = at[0] == 'r';
    line->executable = at[0] && at[1] && at[2] == 'x';
    while (*at && *at != ' ')
        at++;
    skip(&at, ' ');
    line->offset = take_number(&at, 16);
    skip(&at, ' ');
    uint64_t major = take_number(&at, 16);
    skip(&at, ':');
    line->device = device_number(major, take_number(&at, 16));
    skip(&at, ' ');
    line->inode = take_number(&at, 10);
    skip(&at, ' ');
    char *path = text + (at - text);
    line->path = path;
    line->path_size = unescape(path);
    uint32_t mark = sizeof deleted - 1;
    if (line->inode && line->path_size > mark && !strcmp(path + line->path_size - mark, deleted))
        path[line->path_size -= mark] = 0;
    return 1;
}
