/* SPDX-License-Identifier: MIT */
/* The reader of perf maps inside the host, on any bytes: a name that it gives stands at a range that
 * holds the address. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { REQUESTS = 32 };

static void *resize(void *context, void *old, size_t old_size, size_t new_size)
{
    (void)context, (void)old_size;
    if (new_size)
        return realloc(old, new_size);
    free(old);
    return NULL;
}

static void check(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct lapse_allocator allocator = { resize, NULL };
    struct lapse_symbol_request requests[REQUESTS];
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    check(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
    for (uint32_t i = 0; i < REQUESTS; i++)
        requests[i] = (struct lapse_symbol_request){ .address = 0x1000 + i * 0x40 };
    lapse_symbols_find_perf_map((int)getpid(), requests, REQUESTS, &allocator);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        if (!requests[i].system_name)
            continue;
        check(requests[i].start <= requests[i].address);
        check(requests[i].address - requests[i].start < requests[i].size);
        free((char *)requests[i].system_name);
    }
    unlink(path);
    return 0;
}
