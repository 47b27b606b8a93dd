/* SPDX-License-Identifier: MIT */
/* Reads of this process's own memory that cannot fault, however wrong the address is or whatever
 * another thread unmaps meanwhile: the kernel copies (process_vm_readv) and reports what it could.
 * Where that call is refused (old container sandboxes), reads are plain loads inside the readable
 * segments of a loaded module and fail elsewhere.
 * Context: signal handler (cold paths only, each is a system call) and drain thread. */
#ifndef LAPSE_UNWIND_MEMORY_H
#define LAPSE_UNWIND_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "walk.h"

#define LAPSE_PAGE_BYTES 4096

/* Copy up to `size` bytes; returns how many could be read from `from` on. */
LAPSE_SIGSAFE size_t lapse_memory_read(void *to, uintptr_t from, size_t size);

/* May the page of `at` be read without waiting for it? One that is not in memory may never come: a host that
 * serves its own page faults (userfaultfd) would be waited for in its own thread. */
LAPSE_SIGSAFE int lapse_memory_is_present(uintptr_t at);

/* A few pieces of memory as they were when first read: one system call serves many small reads, and
 * the upper steps of a search are the same each time. Empty it before each question that must see
 * memory as it is now. The caller owns the slots; their number is a power of two. */
#define LAPSE_WINDOW_BYTES 512
struct lapse_window {
    uintptr_t base;
    uint32_t size; /* valid bytes; 0 is an unused window */
    uint8_t bytes[LAPSE_WINDOW_BYTES];
};
struct lapse_windows {
    struct lapse_window *slots;
    uint32_t count;
};

LAPSE_SIGSAFE void lapse_windows_reset(struct lapse_windows *windows);

/* All of `size` bytes (at most LAPSE_WINDOW_BYTES / 2) or nothing. Returns 0 or -EFAULT. */
LAPSE_SIGSAFE int lapse_windows_read(struct lapse_windows *windows, void *to, uintptr_t from,
                                     size_t size);

#endif
