/* SPDX-License-Identifier: MIT */
/* The list of modules, from the kernel's view of the address space. modules.h is the interface;
 * called by the drain thread, which may have no thread-local storage of its own: raw system calls
 * only, and mapped headers are read so that nothing faults when a module goes away meanwhile. */
#include "modules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "build_id.h"
#include "elf_file.h"
#include "maps.h"
#include "memory.h"
#include "system_call.h"

enum { SEGMENTS_MAX = 64, NOTES_MAX = 1024 };

/* A run of mappings of one file, offsets ascending: one module as the loader mapped it. */
struct run {
    uint64_t device, inode, start, offset;
    uint64_t header; /* where the file's first byte is mapped readable; 0: nowhere */
    int64_t module;  /* its index once it has text, else -1 */
};

static int add_module(struct lapse_modules *modules, const char *path, uint32_t path_size)
{
    struct lapse_allocator *allocator = &modules->allocator;
    if (modules->count == modules->capacity) {
        uint32_t capacity = modules->capacity ? modules->capacity * 2 : 32;
        void *grown = allocator->resize(allocator->context, modules->modules,
                                        modules->capacity * sizeof *modules->modules,
                                        capacity * sizeof *modules->modules);
        if (!grown)
            return -ENOMEM;
        modules->modules = grown;
        modules->capacity = capacity;
    }
    char *copy = allocator->resize(allocator->context, NULL, 0, path_size + 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, path, path_size);
    copy[path_size] = 0;
    struct lapse_mapped_module *module = &modules->modules[modules->count++];
    memset(module, 0, sizeof *module);
    module->path = copy;
    return 0;
}

/* Where the module's ELF image can be read: mapped, else from the file. */
struct image { uint64_t mapped; int fd; };

static size_t image_read(const struct image *image, void *to, uint64_t offset, size_t size)
{
    if (image->mapped)
        return lapse_memory_read(to, image->mapped + offset, size);
    long got = lapse_system_call6(SYS_pread64, image->fd, (long)to, (long)size, (long)offset, 0, 0);
    return got < 0 ? 0 : (size_t)got;
}

/* Load bias, from the segment that the first text range was mapped from. */
static int find_bias(struct lapse_mapped_module *module, const Elf64_Phdr *segments, unsigned count)
{
    uint64_t start = module->text[0].start, offset = module->text[0].file_offset;
    for (unsigned i = 0; i < count; i++) {
        const Elf64_Phdr *segment = &segments[i];
        uint64_t first = segment->p_offset & ~UINT64_C(4095);
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) && offset >= first &&
            offset - first < segment->p_filesz + 4096) {
            module->bias = start - offset + segment->p_offset - segment->p_vaddr;
            return 0;
        }
    }
    return -ENOEXEC;
}

static void read_notes(struct lapse_mapped_module *module, const struct image *image,
                       const Elf64_Phdr *segment)
{
    uint8_t notes[NOTES_MAX];
    size_t size = segment->p_filesz < sizeof notes ? segment->p_filesz : sizeof notes;
    size_t got = image->mapped ? lapse_memory_read(notes, module->bias + segment->p_vaddr, size)
                               : image_read(image, notes, segment->p_offset, size);
    if (!module->build_id_size)
        module->build_id_size = lapse_build_id_parse(notes, got, module->build_id);
}

/* Bias and build id. What is no ELF file (code that a JIT compiler keeps in a file) gets a bias that
 * makes file offsets of its addresses. */
static void read_headers(struct lapse_mapped_module *module, const struct image *image)
{
    Elf64_Ehdr header;
    Elf64_Phdr segments[SEGMENTS_MAX];
    module->bias = module->text[0].start - module->text[0].file_offset;
    if (image_read(image, &header, 0, sizeof header) < sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof *segments)
        return;
    unsigned count = header.e_phnum < SEGMENTS_MAX ? header.e_phnum : SEGMENTS_MAX;
    count = (unsigned)(image_read(image, segments, header.e_phoff, count * sizeof *segments) /
                       sizeof *segments);
    if (find_bias(module, segments, count))
        return;
    for (unsigned i = 0; i < count; i++)
        if (segments[i].p_type == PT_NOTE)
            read_notes(module, image, &segments[i]);
}

static void finish_module(struct lapse_mapped_module *module, uint64_t header)
{
    struct image image = { header, -1 };
    if (!header) {
        uint64_t size;
        image.fd = lapse_elf_open_module(module, &size); /* fails: every read below fails */
    }
    read_headers(module, &image);
    if (image.fd >= 0)
        lapse_system_call3(SYS_close, image.fd, 0, 0);
}

/* Add an executable mapping to the last module, or say that there is no room. */
static int add_text(struct lapse_mapped_module *module, const struct lapse_maps_line *line)
{
    uint32_t count = module->text_count;
    uint64_t offset = line->inode ? line->offset : 0;
    if (count && module->text[count - 1].end == line->start) {
        module->text[count - 1].end = line->end;
    } else {
        if (count == LAPSE_MODULE_TEXT_MAX)
            return -E2BIG;
        module->text[count].start = line->start;
        module->text[count].end = line->end;
        module->text[count].file_offset = offset;
        module->text_count++;
    }
    module->end = line->end;
    return 0;
}

static int new_module(struct lapse_modules *modules, const struct lapse_maps_line *line,
                      const char *path, uint32_t path_size, uint64_t start)
{
    int result = add_module(modules, path, path_size);
    if (result)
        return result;
    struct lapse_mapped_module *module = &modules->modules[modules->count - 1];
    module->start = start;
    module->device = line->device;
    module->inode = line->inode;
    return add_text(module, line);
}

/* Memory without a file: the vDSO has an ELF header, the rest is code made at run time. */
static int take_anonymous(struct lapse_modules *modules, const struct lapse_maps_line *line)
{
    static const char jit[] = "[anon:exec]", vdso[] = "[vdso]";
    struct lapse_mapped_module *last =
        modules->count ? &modules->modules[modules->count - 1] : NULL;
    if (!line->executable || !strcmp(line->path, "[vsyscall]"))
        return 0;
    if (!strcmp(line->path, vdso)) {
        int result = new_module(modules, line, vdso, sizeof vdso - 1, line->start);
        if (!result)
            finish_module(&modules->modules[modules->count - 1], line->start);
        return result;
    }
    if (last && !strcmp(last->path, jit) && last->end == line->start)
        return add_text(last, line);
    return new_module(modules, line, jit, sizeof jit - 1, line->start);
}

static int take_file(struct lapse_modules *modules, const struct lapse_maps_line *line,
                     struct run *run)
{
    if (line->device != run->device || line->inode != run->inode || line->offset < run->offset ||
        !run->start)
        *run = (struct run){ .device = line->device, .inode = line->inode, .start = line->start, .module = -1 };
    run->offset = line->offset;
    if (!line->offset && line->readable && !run->header)
        run->header = line->start;
    if (!line->executable) {
        if (run->module >= 0)
            modules->modules[run->module].end = line->end;
        return 0;
    }
    if (run->module >= 0 && !add_text(&modules->modules[run->module], line))
        return 0;
    uint64_t start =
        run->module >= 0 ? line->start : run->start; /* a second entry when one is full */
    int result = new_module(modules, line, line->path, line->path_size, start);
    if (!result) {
        run->module = (int64_t)modules->count - 1;
        finish_module(&modules->modules[run->module], run->header);
    }
    return result;
}

static int read_lines(struct lapse_modules *modules, struct lapse_maps *maps)
{
    struct run run = { 0 };
    struct lapse_maps_line line;
    int result = lapse_maps_open(maps);
    if (result)
        return result;
    while ((result = lapse_maps_next(maps, &line)) > 0) {
        result = line.inode ? take_file(modules, &line, &run) : take_anonymous(modules, &line);
        if (result)
            break;
    }
    lapse_maps_close(maps);
    return result;
}

int lapse_modules_read(struct lapse_modules *modules, const struct lapse_allocator *allocator)
{
    memset(modules, 0, sizeof *modules);
    modules->allocator = *allocator;
    struct lapse_maps *maps = allocator->resize(allocator->context, NULL, 0, sizeof *maps);
    if (!maps)
        return -ENOMEM;
    int result = read_lines(modules, maps);
    allocator->resize(allocator->context, maps, sizeof *maps, 0);
    if (result)
        lapse_modules_free(modules);
    return result;
}

void lapse_modules_free(struct lapse_modules *modules)
{
    struct lapse_allocator *allocator = &modules->allocator;
    for (uint32_t i = 0; i < modules->count; i++) {
        char *path = modules->modules[i].path;
        allocator->resize(allocator->context, path, strlen(path) + 1, 0);
    }
    if (modules->modules)
        allocator->resize(allocator->context, modules->modules,
                          modules->capacity * sizeof *modules->modules, 0);
    modules->modules = NULL;
    modules->count = modules->capacity = 0;
}

const struct lapse_mapped_module *lapse_modules_find(const struct lapse_modules *modules,
                                                     uint64_t address)
{
    uint32_t low = 0, high = modules->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (modules->modules[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    /* Run-time code may sit in a hole of a module, so the nearest start is not always the one. */
    for (uint32_t i = low; i > 0 && low - i < 8; i--)
        if (address < modules->modules[i - 1].end)
            return &modules->modules[i - 1];
    return NULL;
}
