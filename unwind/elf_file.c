/* SPDX-License-Identifier: MIT */
/* Opening and reading a module's ELF image; elf_file.h is the interface. */
#include "elf_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "build_id.h"
#include "memory.h"
#include "system_call.h"

enum { SECTIONS_MAX = 1 << 16, SEGMENTS_MAX = 64, NOTES_MAX = 1024 };

static size_t read_file(int fd, void *to, uint64_t offset, size_t size)
{
    size_t done = 0;
    while (done < size) {
        long got = lapse_system_call6(SYS_pread64, fd, (long)((char *)to + done),
                                      (long)(size - done), (long)(offset + done), 0, 0);
        if (got == -EINTR)
            continue;
        if (got <= 0)
            break;
        done += (size_t)got;
    }
    return done;
}

static uint32_t read_build_id(int fd, uint8_t *build_id)
{
    Elf64_Ehdr header;
    Elf64_Phdr segment;
    uint8_t notes[NOTES_MAX];
    uint32_t found = 0;
    if (read_file(fd, &header, 0, sizeof header) < sizeof header ||
        header.e_phentsize != sizeof segment)
        return 0;
    for (unsigned i = 0; i < header.e_phnum && i < SEGMENTS_MAX && !found; i++) {
        if (read_file(fd, &segment, header.e_phoff + i * sizeof segment, sizeof segment) <
            sizeof segment)
            return 0;
        if (segment.p_type == PT_NOTE) {
            size_t size = segment.p_filesz < sizeof notes ? segment.p_filesz : sizeof notes;
            found =
                lapse_build_id_parse(notes, read_file(fd, notes, segment.p_offset, size), build_id);
        }
    }
    return found;
}

/* The numbers that maps shows and those of stat differ on some file systems, and a file can be
 * rewritten in place: a build id decides where there is one. */
static int is_same_file(const struct lapse_mapped_module *module, int fd, const struct stat *status)
{
    uint8_t build_id[LAPSE_BUILD_ID_MAX];
    if (module->build_id_size)
        return read_build_id(fd, build_id) == module->build_id_size &&
               !memcmp(build_id, module->build_id, module->build_id_size);
    return status->st_dev == module->device && status->st_ino == module->inode;
}

int lapse_elf_open_module(const struct lapse_mapped_module *module, uint64_t *size)
{
    struct stat status;
    long result = lapse_system_call3(SYS_stat, (long)module->path, (long)&status, 0);
    if (result < 0)
        return (int)result;
    if (!S_ISREG(status.st_mode))
        return -ENOEXEC; /* opening a device can have effects */
    long fd = lapse_system_call3(SYS_open, (long)module->path,
                                 O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0)
        return (int)fd;
    result = lapse_system_call3(SYS_fstat, fd, (long)&status, 0);
    if (!result && !S_ISREG(status.st_mode))
        result = -ENOEXEC;
    if (!result && !is_same_file(module, (int)fd, &status))
        result = -ESTALE;
    if (result) {
        lapse_system_call3(SYS_close, fd, 0, 0);
        return (int)result;
    }
    *size = (uint64_t)status.st_size;
    return (int)fd;
}

size_t lapse_elf_file_read(const struct lapse_elf_file *file, void *to, uint64_t offset,
                           size_t size)
{
    if (offset >= file->size)
        return 0;
    if (size > file->size - offset)
        size = file->size - offset;
    return file->memory ? lapse_memory_read(to, file->memory + offset, size)
                        : read_file(file->fd, to, offset, size);
}

static int read_sections(struct lapse_elf_file *file)
{
    const Elf64_Ehdr *header = &file->header;
    Elf64_Shdr first;
    if (lapse_elf_file_read(file, &file->header, 0, sizeof file->header) < sizeof file->header ||
        memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_ident[EI_DATA] != ELFDATA2LSB || header->e_shentsize != sizeof first ||
        lapse_elf_file_read(file, &first, header->e_shoff, sizeof first) < sizeof first)
        return -ENOEXEC;
    uint64_t count =
        header->e_shnum ? header->e_shnum : first.sh_size; /* more than 65,279 sections */
    if (count > SECTIONS_MAX || count > (file->size - header->e_shoff) / sizeof first)
        return -ENOEXEC;
    file->section_count = (uint32_t)count;
    file->sections =
        file->allocator.resize(file->allocator.context, NULL, 0, count * sizeof first + 1);
    if (!file->sections)
        return -ENOMEM;
    size_t size = count * sizeof first;
    return lapse_elf_file_read(file, file->sections, header->e_shoff, size) < size ? -ENOEXEC : 0;
}

int lapse_elf_file_open(struct lapse_elf_file *file, const struct lapse_mapped_module *module,
                        const struct lapse_allocator *allocator)
{
    memset(file, 0, sizeof *file);
    file->allocator = *allocator;
    file->fd = -1;
    if (!strcmp(module->path, "[vdso]")) {
        file->memory = module->start;
        file->size = module->end - module->start;
    } else {
        file->fd = lapse_elf_open_module(module, &file->size);
        if (file->fd < 0)
            return file->fd;
    }
    int result = read_sections(file);
    if (result)
        lapse_elf_file_close(file);
    return result;
}

void lapse_elf_file_close(struct lapse_elf_file *file)
{
    if (file->sections)
        file->allocator.resize(file->allocator.context, file->sections,
                               file->section_count * sizeof *file->sections + 1, 0);
    if (file->fd >= 0)
        lapse_system_call3(SYS_close, file->fd, 0, 0);
    file->sections = NULL;
    file->fd = -1;
}
