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
        /* The pid is asked anew each time: after a fork a remembered one would name the parent. */
        long self = lapse_system_call3(SYS_getpid, 0, 0, 0);
        long got = lapse_system_call6(SYS_process_vm_readv, self, (long)&local, 1, (long)&remote, 1, 0);
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

LAPSE_SIGSAFE void lapse_windows_reset(struct lapse_windows *windows)
{
    for (unsigned i = 0; i < LAPSE_WINDOW_COUNT; i++)
        windows->size[i] = 0;
    windows->next = 0;
}

/* Read a window that holds [from, from + size). Refused reads or the end of a mapping may leave
 * less than a whole window; then the exact piece is what counts. */
static int windows_fill(struct lapse_windows *windows, unsigned i, uintptr_t from, size_t size)
{
    uintptr_t base = from & ~(uintptr_t)(LAPSE_WINDOW_BYTES / 2 - 1);
    size_t got = lapse_memory_read(windows->bytes[i], base, LAPSE_WINDOW_BYTES);
    if (got < from + size - base) {
        base = from;
        got = lapse_memory_read(windows->bytes[i], base, size);
    }
    windows->base[i] = base;
    windows->size[i] = got < size ? 0 : (uint32_t)got;
    return got < size ? -EFAULT : 0;
}

LAPSE_SIGSAFE int lapse_windows_read(struct lapse_windows *windows, void *to, uintptr_t from,
                                     size_t size)
{
    unsigned i = 0;
    if (size > LAPSE_WINDOW_BYTES / 2 || from + size < from)
        return -EFAULT;
    while (i < LAPSE_WINDOW_COUNT &&
           !(from >= windows->base[i] && from - windows->base[i] + size <= windows->size[i]))
        i++;
    if (i == LAPSE_WINDOW_COUNT) {
        i = windows->next++ % LAPSE_WINDOW_COUNT;
        if (windows_fill(windows, i, from, size))
            return -EFAULT;
    }
    memcpy(to, windows->bytes[i] + (from - windows->base[i]), size);
    return 0;
}
