/* SPDX-License-Identifier: MIT */
/* Order and choice. Aliases: global before weak before local, then the shortest name, then by
 * bytes; a symbol with a size before one without. Procedure-linkage names come last: some linkers
 * give these entries real symbols. */
#include "symbol_table.h"

#include "array.h"

#include <errno.h>
#include <string.h>

int lapse_symbol_table_push(struct lapse_symbol_table *table, struct lapse_table_symbol symbol)
{
    if (!lapse_array_room(&table->symbols, table->count, &table->capacity, sizeof symbol))
        return -ENOMEM;
    table->symbols[table->count++] = symbol;
    return 0;
}

/* End of the executable section that a symbol without a size may reach at most; 0: not code. */
static uint64_t code_end(Elf *elf, const GElf_Sym *symbol)
{
    GElf_Shdr header;
    Elf_Scn *section = symbol->st_shndx < SHN_LORESERVE ? elf_getscn(elf, symbol->st_shndx) : NULL;
    if (!section || !gelf_getshdr(section, &header) || !(header.sh_flags & SHF_EXECINSTR))
        return 0;
    return symbol->st_value >= header.sh_addr && symbol->st_value < header.sh_addr + header.sh_size
               ? header.sh_addr + header.sh_size
               : 0;
}

static int add_symbol(struct lapse_symbol_table *table, Elf *elf, const GElf_Sym *symbol,
                      const char *name)
{
    unsigned type = GELF_ST_TYPE(symbol->st_info), binding = GELF_ST_BIND(symbol->st_info);
    if (symbol->st_shndx == SHN_UNDEF || !name || !*name)
        return 0;
    if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
        return 0;
    uint64_t end = code_end(elf, symbol);
    if (!end)
        return 0;
    struct lapse_table_symbol entry = { .start = symbol->st_value,
                                        .name = name,
                                        .end = end,
                                        .rank = binding == STB_LOCAL  ? 2
                                                : binding == STB_WEAK ? 1
                                                                      : 0,
                                        .sized = symbol->st_size };
    if (symbol->st_size && symbol->st_size < end - entry.start)
        entry.end = entry.start + symbol->st_size;
    return lapse_symbol_table_push(table, entry);
}

int lapse_symbol_table_add(struct lapse_symbol_table *table, const struct lapse_object_file *file)
{
    for (Elf_Scn *section = NULL; (section = elf_nextscn(file->elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header)
            || (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) || !header.sh_entsize)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        size_t count = data ? data->d_size / sizeof(Elf64_Sym) : 0;
        for (size_t i = 0; i < count; i++) {
            GElf_Sym symbol;
            if (!gelf_getsym(data, (int)i, &symbol))
                break;
            if (add_symbol(table, file->elf, &symbol,
                           elf_strptr(file->elf, header.sh_link, symbol.st_name)))
                return -ENOMEM;
        }
    }
    return 0;
}

static int by_preference(const void *a, const void *b)
{
    const struct lapse_table_symbol *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->sized != y->sized)
        return x->sized ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    size_t a_length = strlen(x->name), b_length = strlen(y->name);
    if (a_length != b_length)
        return a_length < b_length ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* One symbol per start; the longest extent of the aliases stays. */
static void drop_aliases(struct lapse_symbol_table *table)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++) {
        struct lapse_table_symbol *symbol = &table->symbols[i];
        struct lapse_table_symbol *last = kept ? &table->symbols[kept - 1] : NULL;
        if (!last || last->start != symbol->start) {
            table->symbols[kept++] = *symbol;
            continue;
        }
        if (symbol->sized && last->sized && symbol->end > last->end)
            last->end = symbol->end;
        if (symbol->allocated)
            free((char *)symbol->name);
    }
    table->count = kept;
}

/* A label without a size inside a function is part of it; elsewhere it reaches to the next symbol.
 */
static void settle_unsized(struct lapse_symbol_table *table)
{
    uint64_t covered = 0;
    for (size_t i = 0; i < table->count; i++) {
        struct lapse_table_symbol *symbol = &table->symbols[i];
        if (symbol->sized) {
            covered = symbol->end > covered ? symbol->end : covered;
            continue;
        }
        if (symbol->start < covered)
            symbol->end = symbol->start;
        else if (i + 1 < table->count && table->symbols[i + 1].start < symbol->end)
            symbol->end = table->symbols[i + 1].start;
    }
}

int lapse_symbol_table_order(struct lapse_symbol_table *table)
{
    if (table->count)
        qsort(table->symbols, table->count, sizeof *table->symbols, by_preference);
    drop_aliases(table);
    settle_unsized(table);
    struct lapse_address_range *ranges = malloc((table->count + 1) * sizeof *ranges);
    if (!ranges)
        return -ENOMEM;
    for (size_t i = 0; i < table->count; i++)
        ranges[i] = (struct lapse_address_range){ table->symbols[i].start, table->symbols[i].end,
                                                  (uint32_t)i };
    int error = lapse_range_map_build(&table->map, ranges, table->count);
    free(ranges);
    return error;
}

void lapse_symbol_table_free(struct lapse_symbol_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        if (table->symbols[i].allocated)
            free((char *)table->symbols[i].name);
    free(table->symbols);
    lapse_range_map_free(&table->map);
    *table = (struct lapse_symbol_table){ 0 };
}

const struct lapse_table_symbol *lapse_symbol_table_find(const struct lapse_symbol_table *table,
                                                         uint64_t address)
{
    uint32_t index = lapse_range_map_find(&table->map, address);
    return index == LAPSE_RANGE_NONE ? NULL : &table->symbols[index];
}
