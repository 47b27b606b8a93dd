/* SPDX-License-Identifier: MIT */
/* Names of functions from a module's symbol table. symbols.h is the interface; called at exit, by the
 * drain thread or the thread that stops the session. The table is streamed once; only names that
 * are wanted are read. */
#include "symbols.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "elf_file.h"
#include "plt.h"
#include "system_call.h"

enum { CHUNK_SYMBOLS = 1024, NAME_MAX_BYTES = 16384 };

/* The best symbol so far for one request. */
struct candidate {
    uint64_t start, size;
    uint32_t name; /* offset in the string table */
    uint32_t rank; /* 0: none; global 3, weak 2, local 1 */
};

struct search {
    struct lapse_elf_file file;
    const Elf64_Shdr *table, *strings;
    uint64_t bias, deadline_ns;
    struct lapse_symbol_request *requests;
    uint32_t count;
    /* By request. `sized` covers it. `unsized` has no size and is the nearest before it; entries are
     * at first only where the request is the next one behind the symbol, later passed on. `nearest`
     * is the start of whatever function is nearest before it, likewise. */
    struct candidate *sized, *unsized;
    uint64_t *nearest;
    Elf64_Sym *chunk;
    char *names[2];
};

static void *allocate(const struct lapse_allocator *allocator, size_t size)
{
    return allocator->resize(allocator->context, NULL, 0, size);
}

static void release(const struct lapse_allocator *allocator, void *memory, size_t size)
{
    if (memory)
        allocator->resize(allocator->context, memory, size, 0);
}

/* The name at an offset of the string table into names[which]; its length, 0 when unreadable. */
static uint32_t read_name(struct search *search, unsigned which, uint32_t offset)
{
    char *to = search->names[which];
    uint32_t done = 0;
    while (done < NAME_MAX_BYTES - 1 && offset + (uint64_t)done < search->strings->sh_size) {
        size_t piece = done ? NAME_MAX_BYTES - 1 - done : 256; /* most names are short */
        size_t left = search->strings->sh_size - offset - done;
        size_t got = lapse_elf_file_read(&search->file, to + done,
                                         search->strings->sh_offset + offset + done,
                                         piece < left ? piece : left);
        const char *end = got ? memchr(to + done, 0, got) : NULL;
        if (end)
            return (uint32_t)(end - to);
        if (!got)
            return 0;
        done += (uint32_t)got;
    }
    to[done] = 0;
    return done;
}

/* Two symbols that start at the same place: is the second the better name? */
static int is_better_alias(struct search *search, const struct candidate *old,
                           const struct candidate *new)
{
    if (old->rank != new->rank)
        return new->rank > old->rank;
    uint32_t old_length = read_name(search, 0, old->name),
             new_length = read_name(search, 1, new->name);
    if (old_length != new_length)
        return new_length && (!old_length || new_length < old_length);
    return memcmp(search->names[1], search->names[0], new_length) < 0;
}

static void offer(struct search *search, struct candidate *best, const struct candidate *new)
{
    if (!best->rank || new->start > best->start ||
        (new->start == best->start && is_better_alias(search, best, new)))
        *best = *new;
}

/* The first request at or behind a file address. */
static uint32_t first_request(const struct search *search, uint64_t address)
{
    uint32_t low = 0, high = search->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (search->requests[middle].address - search->bias < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int is_function(const Elf64_Sym *symbol)
{
    unsigned type = ELF64_ST_TYPE(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || !symbol->st_value || !symbol->st_name)
        return 0;
    return type == STT_FUNC || type == STT_GNU_IFUNC || (type == STT_NOTYPE && symbol->st_size);
}

static void take_symbol(struct search *search, const Elf64_Sym *symbol)
{
    static const uint32_t ranks[] = { [STB_LOCAL] = 1, [STB_GLOBAL] = 3, [STB_WEAK] = 2 };
    unsigned binding = ELF64_ST_BIND(symbol->st_info);
    if (!is_function(symbol))
        return;
    struct candidate new = { symbol->st_value, symbol->st_size, symbol->st_name,
                             binding < 3 ? ranks[binding] : 3 };
    uint32_t i = first_request(search, new.start);
    if (i == search->count)
        return;
    if (new.start > search->nearest[i])
        search->nearest[i] = new.start;
    if (!new.size) {
        offer(search, &search->unsized[i], &new);
        return;
    }
    for (; i < search->count && search->requests[i].address - search->bias - new.start < new.size;
         i++)
        offer(search, &search->sized[i], &new);
}

static int is_late(const struct search *search)
{
    struct timespec now;
    return search->deadline_ns != UINT64_MAX &&
           lapse_system_call3(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0) == 0 &&
           (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec >= search->deadline_ns;
}

static int stream_table(struct search *search)
{
    uint64_t offset = search->table->sh_offset, left = search->table->sh_size / sizeof(Elf64_Sym);
    while (left) {
        size_t wanted = left < CHUNK_SYMBOLS ? left : CHUNK_SYMBOLS;
        size_t got =
            lapse_elf_file_read(&search->file, search->chunk, offset, wanted * sizeof(Elf64_Sym)) /
            sizeof(Elf64_Sym);
        for (size_t i = 0; i < got; i++)
            take_symbol(search, &search->chunk[i]);
        if (got < wanted)
            break;
        if (is_late(search))
            return -ETIME; /* half a table may give the wrong names */
        offset += got * sizeof(Elf64_Sym);
        left -= got;
    }
    return 0;
}

/* A symbol without a size reaches to the next function, or to the end of its section. */
static int unsized_covers(const struct search *search, uint32_t i)
{
    const struct candidate *candidate = &search->unsized[i];
    uint64_t address = search->requests[i].address - search->bias;
    if (!candidate->rank || candidate->start < search->nearest[i])
        return 0;
    for (uint32_t s = 0; s < search->file.section_count; s++) {
        const Elf64_Shdr *section = &search->file.sections[s];
        if ((section->sh_flags & SHF_EXECINSTR) && address - section->sh_addr < section->sh_size)
            return candidate->start >= section->sh_addr;
    }
    return 0;
}

static void pass_on(struct search *search)
{
    for (uint32_t i = 1; i < search->count; i++) {
        if (search->nearest[i] < search->nearest[i - 1])
            search->nearest[i] = search->nearest[i - 1];
        if (search->unsized[i - 1].rank &&
            (!search->unsized[i].rank || search->unsized[i].start < search->unsized[i - 1].start))
            search->unsized[i] = search->unsized[i - 1];
    }
}

static int give_name(struct search *search, struct lapse_symbol_request *request,
                     const struct candidate *best)
{
    uint32_t length = read_name(search, 0, best->name);
    if (!length)
        return 0;
    char *name = allocate(&search->file.allocator, length + 1);
    if (!name)
        return -ENOMEM;
    memcpy(name, search->names[0], length + 1);
    request->system_name = name;
    request->start = best->start + search->bias;
    request->size = best->size ? best->size : request->address + 1 - request->start;
    return 0;
}

static int give_names(struct search *search)
{
    pass_on(search);
    for (uint32_t i = 0; i < search->count; i++) {
        const struct candidate *best = search->sized[i].rank          ? &search->sized[i]
                                       : unsized_covers(search, i) ? &search->unsized[i]
                                                                   : NULL;
        int result = best && !search->requests[i].system_name
                         ? give_name(search, &search->requests[i], best)
                         : 0;
        if (result)
            return result;
    }
    return 0;
}

/* .symtab, else .dynsym; sections whose strings are no string table are passed over. */
static int find_table(struct search *search)
{
    const struct lapse_elf_file *file = &search->file;
    search->table = NULL;
    for (uint32_t i = 0; i < file->section_count; i++) {
        const Elf64_Shdr *section = &file->sections[i];
        if ((section->sh_type != SHT_SYMTAB && section->sh_type != SHT_DYNSYM) ||
            section->sh_entsize != sizeof(Elf64_Sym) || section->sh_link >= file->section_count ||
            file->sections[section->sh_link].sh_type != SHT_STRTAB ||
            section->sh_size > file->size || file->sections[section->sh_link].sh_size > file->size)
            continue;
        if (!search->table || section->sh_type == SHT_SYMTAB) {
            search->table = section;
            search->strings = &file->sections[section->sh_link];
        }
    }
    return search->table ? 0 : -ENOENT;
}

static int run_search(struct search *search)
{
    const struct lapse_allocator *allocator = &search->file.allocator;
    size_t per_request = 2 * sizeof(struct candidate) + sizeof(uint64_t);
    size_t size =
        search->count * per_request + CHUNK_SYMBOLS * sizeof(Elf64_Sym) + 2 * NAME_MAX_BYTES;
    char *memory = allocate(allocator, size);
    if (!memory)
        return -ENOMEM;
    memset(memory, 0, search->count * per_request);
    search->sized = (struct candidate *)memory;
    search->unsized = search->sized + search->count;
    search->nearest = (uint64_t *)(search->unsized + search->count);
    search->chunk = (Elf64_Sym *)(search->nearest + search->count);
    search->names[0] = (char *)(search->chunk + CHUNK_SYMBOLS);
    search->names[1] = search->names[0] + NAME_MAX_BYTES;
    int result = 0;
    if (!find_table(search)) {
        result = stream_table(search);
        if (!result)
            result = give_names(search);
    }
    release(allocator, memory, size);
    return result;
}

int lapse_symbols_find_until(const struct lapse_mapped_module *module,
                             struct lapse_symbol_request *requests, uint32_t count,
                             const struct lapse_allocator *allocator, uint64_t deadline_ns)
{
    struct search search = {
        .bias = module->bias, .requests = requests, .count = count, .deadline_ns = deadline_ns
    };
    for (uint32_t i = 0; i < count; i++) {
        requests[i].start = requests[i].size = 0;
        requests[i].system_name = NULL;
    }
    int result = count ? lapse_elf_file_open(&search.file, module, allocator) : -ENOEXEC;
    if (result == -ENOENT || result == -ENOTDIR)
        return -ESTALE;
    if (result) /* no file, no names: nothing of ours failed */
        return result == -ENOMEM || result == -ESTALE ? result : 0;
    result = run_search(&search);
    if (!result)
        result = lapse_plt_find(&search.file, module->bias, requests, count);
    lapse_elf_file_close(&search.file);
    return result;
}

int lapse_symbols_find(const struct lapse_mapped_module *module,
                       struct lapse_symbol_request *requests, uint32_t count,
                       const struct lapse_allocator *allocator)
{
    int result = lapse_symbols_find_until(module, requests, count, allocator, UINT64_MAX);
    return result == -ESTALE ? 0 : result;
}
