/* SPDX-License-Identifier: MIT */
/* Names of procedure-linkage entries: `name@plt`. No table says which entry belongs to which
 * function, so each entry is decoded: the slot that it jumps through (or the relocation index that
 * it pushes) leads to the relocation and so to the symbol. That holds for .plt, .plt.sec, .plt.got.
 */
#include "symbol_table.h"

#include "array.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct slot {
    uint64_t address;
    const char *name;
};
struct slots {
    struct slot *items;
    size_t count, capacity;
};

static int by_address(const void *a, const void *b)
{
    const struct slot *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* IRELATIVE relocations name no symbol but the address of the resolver. */
static const char *relocation_name(const struct lapse_symbol_table *table, Elf *elf,
                                   Elf_Scn *symbols, const GElf_Shdr *symbol_header,
                                   const GElf_Rela *relocation)
{
    GElf_Sym symbol;
    if (GELF_R_TYPE(relocation->r_info) == R_X86_64_IRELATIVE) {
        for (size_t i = 0; i < table->count; i++)
            if (table->symbols[i].start == (uint64_t)relocation->r_addend)
                return table->symbols[i].name;
        return NULL;
    }
    Elf_Data *data = symbols ? elf_getdata(symbols, NULL) : NULL;
    if (!data || !gelf_getsym(data, (int)GELF_R_SYM(relocation->r_info), &symbol))
        return NULL;
    return elf_strptr(elf, symbol_header->sh_link, symbol.st_name);
}

static int read_slots(const struct lapse_symbol_table *table, const struct lapse_object_file *file,
                      const char *section_name, struct slots *slots)
{
    GElf_Shdr header, symbol_header = { 0 };
    Elf_Scn *section = lapse_object_file_section(file, section_name, &header);
    Elf_Data *data = section && header.sh_type == SHT_RELA ? elf_getdata(section, NULL) : NULL;
    if (!data)
        return 0;
    Elf_Scn *symbols = header.sh_link ? elf_getscn(file->elf, header.sh_link) : NULL;
    if (symbols && !gelf_getshdr(symbols, &symbol_header))
        symbols = NULL;
    for (size_t i = 0; i < data->d_size / sizeof(Elf64_Rela); i++) {
        GElf_Rela relocation;
        if (!gelf_getrela(data, (int)i, &relocation))
            break;
        unsigned type = GELF_R_TYPE(relocation.r_info);
        const char *name = type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT
                                   || type == R_X86_64_IRELATIVE
                               ? relocation_name(table, file->elf, symbols, &symbol_header,
                                                 &relocation)
                               : NULL;
        if (!lapse_array_room(&slots->items, slots->count, &slots->capacity, sizeof *slots->items))
            return -ENOMEM;
        slots->items[slots->count++] = (struct slot){ relocation.r_offset, name };
    }
    return 0;
}

static uint32_t word(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

/* `pushed` are the procedure relocations in file order, `slots` all of them by address. */
static const char *entry_name(const uint8_t *entry, size_t size, uint64_t address,
                              const struct slots *pushed, const struct slots *slots)
{
    size_t at = size >= 4 && word(entry) == 0xfa1e0ff3u ? 4 : 0; /* endbr64 */
    if (at < size && entry[at] == 0xf2)                          /* bnd */
        at++;
    if (at + 6 <= size && entry[at] == 0xff && entry[at + 1] == 0x25) { /* jmp *disp(%rip) */
        struct slot key = { address + at + 6 + (uint64_t)(int64_t)(int32_t)word(entry + at + 2),
                            NULL };
        struct slot *found = bsearch(&key, slots->items, slots->count, sizeof key, by_address);
        return found ? found->name : NULL;
    }
    if (at + 5 <= size && entry[at] == 0x68) { /* push index */
        uint32_t index = word(entry + at + 1);
        return index < pushed->count ? pushed->items[index].name : NULL;
    }
    return NULL;
}

static int add_entries(struct lapse_symbol_table *table, const struct lapse_object_file *file,
                       const char *section_name, const struct slots *pushed,
                       const struct slots *slots)
{
    GElf_Shdr header;
    if (!lapse_object_file_section(file, section_name, &header)
        || !(header.sh_flags & SHF_EXECINSTR))
        return 0;
    Elf_Data *data = lapse_object_file_data(file, section_name);
    size_t step = header.sh_entsize == 8 || header.sh_entsize == 16 ? header.sh_entsize : 16;
    for (size_t at = 0; data && at + step <= data->d_size; at += step) {
        char text[4096];
        const char *name = entry_name((const uint8_t *)data->d_buf + at, step, header.sh_addr + at,
                                      pushed, slots);
        if (!name || !*name)
            continue;
        snprintf(text, sizeof text, "%s@plt", name);
        struct lapse_table_symbol symbol = { .start = header.sh_addr + at,
                                             .end = header.sh_addr + at + step,
                                             .name = strdup(text),
                                             .rank = 3,
                                             .allocated = true,
                                             .sized = true };
        if (!symbol.name || lapse_symbol_table_push(table, symbol)) {
            free((char *)symbol.name);
            return -ENOMEM;
        }
    }
    return 0;
}

int lapse_symbol_table_add_plt(struct lapse_symbol_table *table,
                               const struct lapse_object_file *file)
{
    static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };
    struct slots pushed = { 0 }, slots = { 0 };
    int error = read_slots(table, file, ".rela.plt", &pushed);
    if (!error)
        error = read_slots(table, file, ".rela.plt", &slots);
    if (!error)
        error = read_slots(table, file, ".rela.dyn", &slots);
    if (slots.count)
        qsort(slots.items, slots.count, sizeof *slots.items, by_address);
    for (size_t i = 0; i < sizeof sections / sizeof *sections && !error; i++)
        error = add_entries(table, file, sections[i], &pushed, &slots);
    free(pushed.items);
    free(slots.items);
    return error;
}
