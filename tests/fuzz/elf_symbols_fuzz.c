/* SPDX-License-Identifier: MIT */
/* The reader of symbol tables inside the host, on files that are none: an answer lies around the
 * address that was asked for, has a name, and nothing else happens. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { REQUESTS = 64 };

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
    char path[] = "/tmp/lapse-elf-fuzz-XXXXXX";
    struct lapse_symbol_request requests[REQUESTS];
    struct stat status;
    int fd = mkstemp(path);
    check(fd >= 0 && write(fd, bytes, size) == (ssize_t)size && !fstat(fd, &status));
    close(fd);
    struct lapse_mapped_module module = { .path = path, .start = 0x10000, .end = 0x40000000,
        .bias = 0x10000, .device = status.st_dev, .inode = status.st_ino };
    for (uint32_t i = 0; i < REQUESTS; i++)
        requests[i] = (struct lapse_symbol_request){ .address = 0x10000 + 0x1000 + i * 0x25 };
    lapse_symbols_find(&module, requests, REQUESTS, &allocator);
    for (uint32_t i = 0; i < REQUESTS; i++) {
        if (!requests[i].system_name)
            continue;
        check(requests[i].start <= requests[i].address);
        check(strlen(requests[i].system_name) > 0);
        free((char *)requests[i].system_name);
    }
    unlink(path);
    return 0;
}
