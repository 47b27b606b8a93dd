/* SPDX-License-Identifier: MIT */
/* Names inside the host, at exit: one pass over .symtab, else .dynsym, of each module's file, for the
 * functions that were seen only. Reads the file (never the mapping), bounds-checked; a file that
 * changed, vanished or is no regular file is skipped. Raw system calls, caller's memory only. */
#ifndef LAPSE_UNWIND_SYMBOLS_H
#define LAPSE_UNWIND_SYMBOLS_H

#include <stdint.h>

#include "modules.h"

/* One address to be named: in, the address as mapped; out, the symbol that covers it. */
struct lapse_symbol_request {
    uint64_t address;
    uint64_t start, size;  /* as mapped; size 0 when nothing was found */
    const char *system_name; /* in the allocator's memory; NULL when nothing was found */
};

/* Fill requests[0..count), sorted by address, all in `module`. Aliases: global before weak before
 * local, then shortest, then by bytes. Returns 0 or a negative errno; nothing found is not an error. */
int lapse_symbols_find(const struct lapse_mapped_module *module,
                       struct lapse_symbol_request *requests, uint32_t count,
                       const struct lapse_allocator *allocator);

/* The same with a clock that is looked at now and then: past `deadline_ns` (CLOCK_MONOTONIC) it gives up
 * with -ETIME, and names nothing of the module. -ESTALE: the file is another one now or gone. */
int lapse_symbols_find_until(const struct lapse_mapped_module *module,
                             struct lapse_symbol_request *requests, uint32_t count,
                             const struct lapse_allocator *allocator, uint64_t deadline_ns);

enum lapse_demangle { LAPSE_DEMANGLE_FULL, LAPSE_DEMANGLE_SIMPLE, LAPSE_DEMANGLE_NONE };

/* Demangled form of a C++, Rust or D name into `to` (cut at size, never inside a UTF-8 sequence);
 * other names are copied. Returns the length. Uses no heap, but for D names, whose demangler
 * mallocs (inside liblapse.so: from the arena). Needs 512 KiB of stack. */
uint32_t lapse_demangle(char *to, uint32_t size, const char *name, enum lapse_demangle style);

#endif
