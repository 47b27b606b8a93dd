/* SPDX-License-Identifier: MIT */
/* Names of procedure linkage table entries; plt.h is the interface. The entry's own code says which
 * slot it jumps through (jmp *slot(%rip)), and the relocation of that slot names the function. This
 * holds for every kind of table: .plt, .plt.sec, .plt.got. */
#include "plt.h"

#include <errno.h>
#include <string.h>

#include "memory.h"

enum { ENTRY_BYTES = 16, NAME_BYTES = 1024, CHUNK_RELOCATIONS = 64 };

static const char suffix[] = "@plt";

/* Size of the entries of the table that begins with this code; 0: it is no table. The first entry may be
 * the one that calls the loader: push module(%rip); jmp *loader(%rip). */
static uint64_t entry_size(const uint8_t code[ENTRY_BYTES])
{
    static const uint8_t mark[] = { 0xf3, 0x0f, 0x1e, 0xfa }, short_end[] = { 0x66, 0x90 };
    const uint8_t *at = code;
    if (at[0] == 0xff && at[1] == 0x35)
        at += 6;
    else if (!memcmp(at, mark, sizeof mark))
        at += sizeof mark;
    at += at[0] == 0xf2; /* bnd */
    if (at[0] != 0xff || at[1] != 0x25)
        return 0;
    return at == code && !memcmp(code + 6, short_end, sizeof short_end) ? 8 : ENTRY_BYTES;
}

uint64_t lapse_plt_entry(uint64_t start, uint64_t pc)
{
    uint8_t code[ENTRY_BYTES];
    if (pc - start < 8 || start % 8 || lapse_memory_read(code, start, sizeof code) < sizeof code)
        return start;
    uint64_t size = entry_size(code);
    return size ? start + (pc - start) / size * size : start;
}

/* The section named .plt* that holds a file address. */
static const Elf64_Shdr *find_section(const struct lapse_elf_file *file, uint64_t address)
{
    if (file->header.e_shstrndx >= file->section_count)
        return NULL;
    const Elf64_Shdr *names = &file->sections[file->header.e_shstrndx];
    for (uint32_t i = 0; i < file->section_count; i++) {
        const Elf64_Shdr *section = &file->sections[i];
        char name[4];
        if (section->sh_type == SHT_PROGBITS && (section->sh_flags & SHF_EXECINSTR) &&
            address - section->sh_addr < section->sh_size &&
            lapse_elf_file_read(file, name, names->sh_offset + section->sh_name, sizeof name) ==
                sizeof name &&
            !memcmp(name, ".plt", sizeof name))
            return section;
    }
    return NULL;
}

/* File address of the slot that the entry at `offset` jumps through; 0: no such jump. */
static uint64_t find_slot(const struct lapse_elf_file *file, uint64_t offset, uint64_t address,
                          uint64_t size)
{
    uint8_t code[ENTRY_BYTES];
    size_t got = lapse_elf_file_read(file, code, offset, size);
    for (size_t i = 0; i + 6 <= got; i++)
        if (code[i] == 0xff && code[i + 1] == 0x25) {
            int32_t displacement;
            memcpy(&displacement, code + i + 2, sizeof displacement);
            return address + i + 6 + (uint64_t)(int64_t)displacement;
        }
    return 0;
}

/* The symbol that a slot is relocated to, and the table of symbols; 0: none. */
static uint32_t find_symbol(const struct lapse_elf_file *file, uint64_t slot,
                            const Elf64_Shdr **table)
{
    Elf64_Rela relocations[CHUNK_RELOCATIONS];
    for (uint32_t i = 0; i < file->section_count; i++) {
        const Elf64_Shdr *section = &file->sections[i];
        if (section->sh_type != SHT_RELA || section->sh_link >= file->section_count ||
            section->sh_entsize != sizeof *relocations || section->sh_size > file->size)
            continue;
        for (uint64_t at = 0; at < section->sh_size; at += sizeof relocations) {
            uint64_t left = section->sh_size - at;
            size_t got = lapse_elf_file_read(file, relocations, section->sh_offset + at,
                                             left < sizeof relocations ? left : sizeof relocations);
            for (size_t r = 0; r < got / sizeof *relocations; r++)
                if (relocations[r].r_offset == slot) {
                    *table = &file->sections[section->sh_link];
                    return (uint32_t)ELF64_R_SYM(relocations[r].r_info);
                }
            if (got < sizeof relocations)
                break;
        }
    }
    return 0;
}

static uint32_t read_name(const struct lapse_elf_file *file, const Elf64_Shdr *table,
                          uint32_t number, char *name)
{
    Elf64_Sym symbol;
    if (table->sh_link >= file->section_count ||
        lapse_elf_file_read(file, &symbol, table->sh_offset + number * sizeof symbol,
                            sizeof symbol) < sizeof symbol)
        return 0;
    size_t got =
        lapse_elf_file_read(file, name, file->sections[table->sh_link].sh_offset + symbol.st_name,
                            NAME_BYTES - sizeof suffix);
    const char *end = got ? memchr(name, 0, got) : NULL;
    return end ? (uint32_t)(end - name) : 0;
}

static int name_entry(const struct lapse_elf_file *file, const Elf64_Shdr *section, uint64_t bias,
                      struct lapse_symbol_request *request)
{
    uint64_t size = section->sh_entsize == 8 ? 8 : ENTRY_BYTES;
    uint64_t at = (request->address - bias - section->sh_addr) / size * size;
    uint64_t slot = find_slot(file, section->sh_offset + at, section->sh_addr + at, size);
    const Elf64_Shdr *table = NULL;
    uint32_t number = slot ? find_symbol(file, slot, &table) : 0;
    char name[NAME_BYTES];
    uint32_t length = number ? read_name(file, table, number, name) : 0;
    if (!length)
        return 0;
    memcpy(name + length, suffix, sizeof suffix);
    char *copy = file->allocator.resize(file->allocator.context, NULL, 0, length + sizeof suffix);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, name, length + sizeof suffix);
    request->system_name = copy;
    request->start = bias + section->sh_addr + at;
    request->size = size;
    return 0;
}

int lapse_plt_find(const struct lapse_elf_file *file, uint64_t bias,
                   struct lapse_symbol_request *requests, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const Elf64_Shdr *section =
            requests[i].system_name ? NULL : find_section(file, requests[i].address - bias);
        int result = section ? name_entry(file, section, bias, &requests[i]) : 0;
        if (result)
            return result;
    }
    return 0;
}
