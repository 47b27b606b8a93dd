/* SPDX-License-Identifier: MIT */
/* A module's ELF image for reading symbols: its file, proven to be the one that is mapped, or the
 * vDSO in memory. Every read is checked against the size; nothing of the file is mapped, so a file
 * that shrinks does no harm. Raw system calls; drain thread and exit path. */
#ifndef LAPSE_UNWIND_ELF_FILE_H
#define LAPSE_UNWIND_ELF_FILE_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

#include "modules.h"

struct lapse_elf_file {
    int fd;
    uint64_t memory; /* instead of a descriptor: where the image is mapped */
    uint64_t size;
    Elf64_Ehdr header;
    Elf64_Shdr *sections;
    uint32_t section_count;
    struct lapse_allocator allocator;
};

/* Open the regular file at the module's path, read only and never waiting for what may be there
 * instead. The descriptor, or a negative errno: -ESTALE when it is another file than was mapped. */
int lapse_elf_open_module(const struct lapse_mapped_module *module, uint64_t *size);

/* Returns 0 or a negative errno (then nothing is to be closed). */
int lapse_elf_file_open(struct lapse_elf_file *file, const struct lapse_mapped_module *module,
                        const struct lapse_allocator *allocator);
void lapse_elf_file_close(struct lapse_elf_file *file);

/* Up to `size` bytes; returns how many, 0 on failure. */
size_t lapse_elf_file_read(const struct lapse_elf_file *file, void *to, uint64_t offset,
                           size_t size);

#endif
