/* SPDX-License-Identifier: MIT */
/* Reads that cannot fault: memory.h says for whom. No libc beyond memcpy and _dl_find_object. */
#include "memory.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>

#include "system_call.h"

/* Set once the kernel refused process_vm_readv. Relaxed everywhere: a late reader only asks again. */
static _Atomic int refused;

static int segment_holds(const Elf64_Phdr *segment, uintptr_t bias, uintptr_t from, size_t size)
{
    uintptr_t start = bias + segment->p_vaddr;
    return segment->p_type == PT_LOAD && (segment->p_flags & PF_R) && from >= start &&
           segment->p_memsz >= size && from - start <= segment->p_memsz - size;
}

/* The loader maps a module's first segment readable and it starts with the ELF header; what is
 * inside a readable segment can be loaded unless the module is unmapped this very moment. */
static int is_in_readable_segment(uintptr_t from, size_t size)
{
    struct dl_find_object object;
    if (_dl_find_object((void *)from, &object))
        return 0;
    const Elf64_Ehdr *header = object.dlfo_map_start;
    uintptr_t length = (uintptr_t)object.dlfo_map_end - (uintptr_t)object.dlfo_map_start;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_phoff > 4096 ||
        header->e_phnum > 64 || header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr) > length)
        return 0;
    const Elf64_Phdr *segments = (const void *)((const char *)header + header->e_phoff);
    uintptr_t bias = (uintptr_t)object.dlfo_link_map->l_addr;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segment_holds(&segments[i], bias, from, size))
            return 1;
    return 0;
}

LAPSE_SIGSAFE size_t lapse_memory_read(void *to, uintptr_t from, size_t size)
{
    if (!atomic_load_explicit(&refused, memory_order_relaxed)) {
        struct iovec local = { to, size }, remote = { (void *)from, size };
        /* Asked anew each time: after a fork a remembered id would name the parent. The thread's: that of
         * the process is its first thread's, which may be gone and then has no memory. */
        long self = lapse_system_call3(SYS_gettid, 0, 0, 0);
        long got =
            lapse_system_call6(SYS_process_vm_readv, self, (long)&local, 1, (long)&remote, 1, 0);
        if (got >= 0)
            return (size_t)got;
        if (got != -EPERM && got != -ENOSYS)
            return 0;
        atomic_store_explicit(&refused, 1, memory_order_relaxed);
    }
    if (!is_in_readable_segment(from, size))
        return 0;
    memcpy(to, (const void *)from, size);
    return size;
}

LAPSE_SIGSAFE int lapse_memory_is_present(uintptr_t at)
{
    unsigned char present = 0;
    uintptr_t page = at & ~(uintptr_t)(LAPSE_PAGE_BYTES - 1);
    long result = lapse_system_call3(SYS_mincore, (long)page, LAPSE_PAGE_BYTES, (long)&present);
    return result == 0 ? present & 1 : result != -ENOMEM; /* refused: not known to be absent */
}

LAPSE_SIGSAFE void lapse_windows_reset(struct lapse_windows *windows)
{
    for (uint32_t i = 0; i < windows->count; i++)
        windows->slots[i].size = 0;
}

/* Read the window for [from, from + size). Refused reads or the end of a mapping may leave less than
 * a whole window; then the exact piece is what counts. */
static int fill(struct lapse_window *window, uintptr_t base, uintptr_t from, size_t size)
{
    size_t got = lapse_memory_read(window->bytes, base, LAPSE_WINDOW_BYTES);
    if (got < from + size - base) {
        base = from;
        got = lapse_memory_read(window->bytes, base, size);
    }
    window->base = base;
    window->size = got < size ? 0 : (uint32_t)got;
    return got < size ? -EFAULT : 0;
}

LAPSE_SIGSAFE int lapse_windows_read(struct lapse_windows *windows, void *to, uintptr_t from,
                                     size_t size)
{
    /* Windows start at every half of their length, so that a small read fits into the one that
     * starts before it; each start has one slot. */
    uintptr_t half = LAPSE_WINDOW_BYTES / 2, base = from & ~(half - 1);
    if (size > half || from + size < from)
        return -EFAULT;
    uint64_t hash = base / half * UINT64_C(0x9e3779b97f4a7c15);
    struct lapse_window *window = &windows->slots[hash >> 40 & (windows->count - 1)];
    if ((from < window->base || from - window->base + size > window->size) &&
        fill(window, base, from, size))
        return -EFAULT;
    memcpy(to, window->bytes + (from - window->base), size);
    return 0;
}
