/* SPDX-License-Identifier: MIT */
#include "object_file.h"

#include "cut_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool lapse_build_id_equal(const struct lapse_build_id *a, const struct lapse_build_id *b)
{
    return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

void lapse_build_id_text(const struct lapse_build_id *id, char text[65])
{
    text[0] = '\0';
    for (uint32_t i = 0; i < id->size && i < 32; i++)
        snprintf(text + 2 * i, 3, "%02x", id->bytes[i]);
}

static bool is_x86_64(const uint8_t *bytes, size_t size)
{
    const Elf64_Ehdr *header = (const void *)bytes;
    return size >= sizeof *header && !memcmp(bytes, ELFMAG, SELFMAG)
           && bytes[EI_CLASS] == ELFCLASS64 && bytes[EI_DATA] == ELFDATA2LSB
           && header->e_machine == EM_X86_64;
}

static void read_build_id(struct lapse_object_file *file)
{
    const void *id;
    ssize_t size = dwelf_elf_gnu_build_id(file->elf, &id);
    if (size <= 0 || size > (ssize_t)sizeof file->build_id.bytes)
        return;
    memcpy(file->build_id.bytes, id, (size_t)size);
    file->build_id.size = (uint32_t)size;
}

static int begin(struct lapse_object_file *file)
{
    if (!is_x86_64(file->bytes, file->size))
        return -ENOEXEC;
    elf_version(EV_CURRENT);
    file->elf = elf_memory((char *)file->bytes, file->size);
    if (!file->elf || elf_kind(file->elf) != ELF_K_ELF)
        return -ENOEXEC;
    read_build_id(file);
    return 0;
}

static int map(struct lapse_object_file *file, int fd)
{
    struct stat status;
    uint8_t head[sizeof(Elf64_Ehdr)];
    if (fstat(fd, &status))
        return -errno;
    if (!S_ISREG(status.st_mode))
        return -ENOTSUP;
    if (pread(fd, head, sizeof head, 0) != sizeof head || !is_x86_64(head, sizeof head))
        return -ENOEXEC;
    file->size = (size_t)status.st_size;
    file->device = status.st_dev;
    file->inode = status.st_ino;
    file->modified_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000u
                        + (uint64_t)status.st_mtim.tv_nsec;
    /* Writable and private: libelf marks decompressed sections in their headers. */
    void *bytes = mmap(NULL, file->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd,
                       0);
    if (bytes == MAP_FAILED)
        return -errno;
    file->bytes = bytes;
    file->mapped = true;
    lapse_cut_file_watch(file);
    return begin(file);
}

int lapse_object_file_open(struct lapse_object_file **result, const char *path)
{
    /* Without O_NONBLOCK the open of a FIFO would wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), error;
    *result = NULL;
    if (fd < 0)
        return -errno;
    struct lapse_object_file *file = calloc(1, sizeof *file);
    error = file && (file->path = strdup(path)) ? map(file, fd) : -ENOMEM;
    close(fd);
    if (error)
        lapse_object_file_close(file);
    else
        *result = file;
    return error;
}

int lapse_object_file_adopt(struct lapse_object_file **result, const char *path, uint8_t *bytes,
                            size_t size)
{
    struct lapse_object_file *file = calloc(1, sizeof *file);
    *result = NULL;
    if (!file) {
        free(bytes);
        return -ENOMEM;
    }
    file->bytes = bytes;
    file->size = size;
    int error = (file->path = strdup(path)) ? begin(file) : -ENOMEM;
    if (error)
        lapse_object_file_close(file);
    else
        *result = file;
    return error;
}

void lapse_object_file_close(struct lapse_object_file *file)
{
    if (!file)
        return;
    elf_end(file->elf);
    lapse_cut_file_forget(file);
    if (file->mapped)
        munmap(file->bytes, file->size);
    else
        free(file->bytes);
    free(file->path);
    free(file);
}

Elf_Scn *lapse_object_file_section(const struct lapse_object_file *file, const char *name,
                                   GElf_Shdr *header)
{
    size_t names;
    if (elf_getshdrstrndx(file->elf, &names))
        return NULL;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
        const char *at = gelf_getshdr(section, header)
                             ? elf_strptr(file->elf, names, header->sh_name)
                             : NULL;
        if (at && !strcmp(at, name))
            return section;
    }
    return NULL;
}

/* `.debug_x` may also be stored as `.zdebug_x`, the older way to compress. */
static Elf_Scn *find_compressed(const struct lapse_object_file *file, const char *name,
                                GElf_Shdr *header)
{
    char older[64];
    if (strncmp(name, ".debug_", 7))
        return NULL;
    snprintf(older, sizeof older, ".z%s", name + 1);
    Elf_Scn *section = lapse_object_file_section(file, older, header);
    Elf_Data *data = section ? elf_rawdata(section, NULL) : NULL;
    if (data && data->d_size >= 4 && !memcmp(data->d_buf, "ZLIB", 4)
        && elf_compress_gnu(section, 0, 0) < 0)
        return NULL;
    return section;
}

Elf_Data *lapse_object_file_data(const struct lapse_object_file *file, const char *name)
{
    GElf_Shdr header;
    Elf_Scn *section = lapse_object_file_section(file, name, &header);
    if (!section)
        section = find_compressed(file, name, &header);
    if (!section || header.sh_type == SHT_NOBITS)
        return NULL;
    if (header.sh_flags & SHF_COMPRESSED && elf_compress(section, 0, 0) < 0)
        return NULL;
    Elf_Data *data = elf_rawdata(section, NULL);
    return data && data->d_buf && data->d_size ? data : NULL;
}

bool lapse_object_file_is_packed(const struct lapse_object_file *file, const char *name)
{
    GElf_Shdr header;
    GElf_Chdr compression;
    Elf_Scn *section = lapse_object_file_section(file, name, &header);
    return section && header.sh_flags & SHF_COMPRESSED
           && (!gelf_getchdr(section, &compression) || compression.ch_type != ELFCOMPRESS_ZLIB)
           && elf_compress(section, 0, 0) < 0;
}

void lapse_object_file_forget(const struct lapse_object_file *file, const void *start, size_t size)
{
    uintptr_t page = 4096, from = ((uintptr_t)start + page - 1) & ~(page - 1);
    uintptr_t to = ((uintptr_t)start + size) & ~(page - 1);
    if (file->mapped && from >= (uintptr_t)file->bytes && to <= (uintptr_t)file->bytes + file->size
        && to > from)
        madvise((void *)from, to - from, MADV_DONTNEED);
}
