/* SPDX-License-Identifier: MIT */
/* Names of code made at run time, from the file that JIT compilers write for perf: lines of
 * "START SIZE name", hexadecimal. Later lines win, since addresses are used again. Called at exit
 * through symbols.h. /tmp is everybody's: only a plain file of this user or of root is believed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "symbols.h"
#include "system_call.h"

enum { BUFFER_BYTES = 65536 };
#define FILE_BYTES_MAX (UINT64_C(1) << 28)

struct perf_map {
    int fd;
    struct lapse_symbol_request *requests;
    uint32_t count;
    const struct lapse_allocator *allocator;
    uint8_t *ours; /* by request: named by this file, so that a later line may rename it */
    char *buffer;
    int result;
};

static int open_map(int pid)
{
    char path[40] = "/tmp/perf-", digits[12];
    unsigned length = 10, count = 0;
    struct stat status;
    for (unsigned value = (unsigned)pid; value || !count; value /= 10)
        digits[count++] = (char)('0' + value % 10);
    while (count)
        path[length++] = digits[--count];
    memcpy(path + length, ".map", 5);
    long fd = lapse_system_call3(SYS_open, (long)path,
                                 O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return (int)fd;
    long user = lapse_system_call3(SYS_geteuid, 0, 0, 0);
    if (lapse_system_call3(SYS_fstat, fd, (long)&status, 0) || !S_ISREG(status.st_mode) ||
        (status.st_uid != 0 && status.st_uid != (uid_t)user)) {
        lapse_system_call3(SYS_close, fd, 0, 0);
        return -EACCES;
    }
    return (int)fd;
}

static const char *take_hex(const char *at, uint64_t *value)
{
    if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X'))
        at += 2;
    for (*value = 0;; at++) {
        char c = (char)(*at | 0x20);
        if (*at >= '0' && *at <= '9')
            *value = *value << 4 | (uint64_t)(*at - '0');
        else if (c >= 'a' && c <= 'f')
            *value = *value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return at;
    }
}

static uint32_t first_request(const struct perf_map *map, uint64_t address)
{
    uint32_t low = 0, high = map->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (map->requests[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void set_name(struct perf_map *map, uint32_t i, uint64_t start, uint64_t size,
                     const char *name)
{
    const struct lapse_allocator *allocator = map->allocator;
    struct lapse_symbol_request *request = &map->requests[i];
    size_t length = strlen(name) + 1;
    if (request->system_name && !map->ours[i])
        return;
    char *copy = allocator->resize(allocator->context, NULL, 0, length);
    if (!copy) {
        map->result = -ENOMEM;
        return;
    }
    memcpy(copy, name, length);
    if (request->system_name)
        allocator->resize(allocator->context, (char *)request->system_name,
                          strlen(request->system_name) + 1, 0);
    map->ours[i] = 1;
    request->system_name = copy;
    request->start = start;
    request->size = size;
}

static void take_line(struct perf_map *map, const char *line)
{
    uint64_t start, size;
    const char *at = take_hex(line, &start);
    if (at == line || *at != ' ')
        return;
    const char *size_text = at + 1;
    at = take_hex(size_text, &size);
    if (at == size_text || *at != ' ' || !at[1])
        return;
    for (uint32_t i = first_request(map, start);
         i < map->count && map->requests[i].address - start < size; i++)
        set_name(map, i, start, size, at + 1);
}

/* Whole lines only: the last one may still be being written. A line longer than the buffer is
 * passed over. */
static void take_lines(struct perf_map *map)
{
    uint64_t total = 0;
    size_t held = 0;
    int skipping = 0;
    while (total < FILE_BYTES_MAX) {
        long got = lapse_system_call3(SYS_read, map->fd, (long)(map->buffer + held),
                                      (long)(BUFFER_BYTES - held));
        if (got == -EINTR)
            continue;
        if (got <= 0)
            return;
        total += (uint64_t)got;
        held += (size_t)got;
        char *line = map->buffer, *end;
        while ((end = memchr(line, '\n', held - (size_t)(line - map->buffer)))) {
            *end = 0;
            if (!skipping)
                take_line(map, line);
            skipping = 0;
            line = end + 1;
        }
        held -= (size_t)(line - map->buffer);
        memmove(map->buffer, line, held);
        if (held == BUFFER_BYTES) {
            skipping = 1;
            held = 0;
        }
    }
}

int lapse_symbols_find_perf_map(int pid, struct lapse_symbol_request *requests, uint32_t count,
                                const struct lapse_allocator *allocator)
{
    struct perf_map map = {
        .fd = open_map(pid), .requests = requests, .count = count, .allocator = allocator
    };
    if (map.fd < 0)
        return 0;
    size_t size = (size_t)BUFFER_BYTES + count;
    map.buffer = allocator->resize(allocator->context, NULL, 0, size);
    if (map.buffer) {
        map.ours = (uint8_t *)map.buffer + BUFFER_BYTES;
        memset(map.ours, 0, count);
        take_lines(&map);
        allocator->resize(allocator->context, map.buffer, size, 0);
    } else {
        map.result = -ENOMEM;
    }
    lapse_system_call3(SYS_close, map.fd, 0, 0);
    return map.result;
}
