/* SPDX-License-Identifier: MIT */
#include "split_unit.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

enum part {
    PART_INFO,
    PART_ABBREV,
    PART_LINE,
    PART_STR_OFFSETS,
    PART_RNGLISTS,
    PART_STR,
    PART_COUNT
};

struct parts {
    struct lapse_bytes part[PART_COUNT];
};

static const char *const part_names[PART_COUNT] = {
    ".debug_info.dwo",        ".debug_abbrev.dwo",   ".debug_line.dwo",
    ".debug_str_offsets.dwo", ".debug_rnglists.dwo", ".debug_str.dwo",
};

static void read_parts(struct parts *parts, const struct lapse_object_file *file)
{
    for (int i = 0; i < PART_COUNT; i++) {
        Elf_Data *data = lapse_object_file_data(file, part_names[i]);
        if (data)
            parts->part[i] = (struct lapse_bytes){ data->d_buf, data->d_size };
    }
}

/* Column of a package's index for a section kind, -1: not a part that is wanted. */
static int part_of_kind(uint32_t kind, unsigned version)
{
    switch (kind) {
    case 1: return PART_INFO;
    case 3: return PART_ABBREV;
    case 4: return PART_LINE;
    case 6: return PART_STR_OFFSETS;
    case 8: return version >= 5 ? PART_RNGLISTS : -1;
    default: return -1;
    }
}

static uint64_t number_at(const struct lapse_bytes *index, uint64_t offset, unsigned size)
{
    struct lapse_cursor cursor = { index->bytes, index->bytes + index->size, false };
    lapse_cursor_skip(&cursor, offset);
    return lapse_cursor_fixed(&cursor, size);
}

/* Cut a package's sections down to what its index says about one unit. */
static int cut_package(struct parts *parts, const struct lapse_bytes *index, uint64_t id)
{
    unsigned version = (unsigned)number_at(index, 0, 2);
    uint64_t columns = number_at(index, 4, 4), units = number_at(index, 8, 4),
             slots = number_at(index, 12, 4);
    uint64_t rows_at = 16 + 8 * slots, kinds_at = rows_at + 4 * slots;
    uint64_t offsets_at = kinds_at + 4 * columns, sizes_at = offsets_at + 4 * columns * units;
    if (!slots || slots & (slots - 1) || columns > 32
        || sizes_at + 4 * columns * units > index->size)
        return -EBADMSG;
    uint64_t slot = id & (slots - 1), step = ((id >> 32) & (slots - 1)) | 1, row = 0;
    for (uint64_t tries = 0; tries < slots; tries++, slot = (slot + step) & (slots - 1)) {
        row = number_at(index, rows_at + 4 * slot, 4);
        if (!row || number_at(index, 16 + 8 * slot, 8) == id)
            break;
        row = 0;
    }
    if (!row || row > units)
        return -ENOENT;
    for (uint64_t column = 0; column < columns; column++) {
        int part = part_of_kind((uint32_t)number_at(index, kinds_at + 4 * column, 4), version);
        uint64_t cell = 4 * ((row - 1) * columns + column);
        uint64_t offset = number_at(index, offsets_at + cell, 4),
                 size = number_at(index, sizes_at + cell, 4);
        if (part < 0)
            continue;
        struct lapse_bytes *bytes = &parts->part[part];
        if (offset > bytes->size || size > bytes->size - offset)
            return -EBADMSG;
        *bytes = (struct lapse_bytes){ bytes->bytes + offset, size };
    }
    return 0;
}

/* Start of the list of offsets: DWARF 5 puts a head before it. */
static size_t offsets_head(const struct lapse_bytes *offsets, unsigned version)
{
    if (version < 5)
        return 0;
    return offsets->size >= 4 && number_at(offsets, 0, 4) != 0xffffffff ? 8 : 16;
}

/* Strings that the unit uses, and its offsets rewritten to them. Offsets of eight bytes (units
 * beyond 4 GiB) are refused. */
static int gather_strings(struct parts *parts, uint8_t **offsets_copy, uint8_t **strings)
{
    struct lapse_bytes *offsets = &parts->part[PART_STR_OFFSETS], *text = &parts->part[PART_STR];
    unsigned version = parts->part[PART_INFO].size >= 6
                           ? (unsigned)number_at(&parts->part[PART_INFO], 4, 2)
                           : 0;
    size_t head = offsets_head(offsets, version), size = 1, capacity = 1 << 16;
    if (head == 16)
        return -ENOTSUP;
    *offsets_copy = malloc(offsets->size + 1);
    *strings = malloc(capacity);
    if (!*offsets_copy || !*strings)
        return -ENOMEM;
    if (offsets->size)
        memcpy(*offsets_copy, offsets->bytes, offsets->size);
    (*strings)[0] = '\0';
    for (size_t at = head; at + 4 <= offsets->size; at += 4) {
        const char *string = lapse_section_string(text->bytes, text->size,
                                                  number_at(offsets, at, 4));
        size_t length = strlen(string) + 1;
        uint32_t place = *string ? (uint32_t)size : 0;
        while (size + length > capacity) {
            uint8_t *more = realloc(*strings, capacity *= 2);
            if (!more)
                return -ENOMEM;
            *strings = more;
        }
        memcpy(*offsets_copy + at, &place, sizeof place);
        if (place) {
            memcpy(*strings + size, string, length);
            size += length;
        }
    }
    offsets->bytes = *offsets_copy;
    *text = (struct lapse_bytes){ *strings, size };
    return 0;
}

/* An image with the parts under their plain names: head, contents, names, section table. */
static uint8_t *build_image(const struct parts *parts, size_t *size)
{
    char names[256] = "";
    size_t names_size = 1, at = sizeof(Elf64_Ehdr), name_at[PART_COUNT];
    Elf64_Shdr sections[PART_COUNT + 2] = { 0 };
    for (int i = 0; i < PART_COUNT; i++) {
        size_t length = strlen(part_names[i]) - strlen(".dwo");
        name_at[i] = names_size;
        memcpy(names + names_size, part_names[i], length);
        names_size += length + 1;
        sections[i + 1] = (Elf64_Shdr){ .sh_name = (Elf64_Word)name_at[i],
                                        .sh_type = SHT_PROGBITS,
                                        .sh_offset = at,
                                        .sh_size = parts->part[i].size,
                                        .sh_addralign = 1 };
        at += parts->part[i].size;
    }
    size_t last = PART_COUNT + 1;
    sections[last] = (Elf64_Shdr){ .sh_name = 0,
                                   .sh_type = SHT_STRTAB,
                                   .sh_offset = at,
                                   .sh_size = names_size,
                                   .sh_addralign = 1 };
    size_t table = (at + names_size + 7) & ~(size_t)7;
    Elf64_Ehdr head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
                                     EV_CURRENT },
                        .e_type = ET_EXEC,
                        .e_machine = EM_X86_64,
                        .e_version = EV_CURRENT,
                        .e_ehsize = sizeof head,
                        .e_shoff = table,
                        .e_shentsize = sizeof *sections,
                        .e_shnum = PART_COUNT + 2,
                        .e_shstrndx = PART_COUNT + 1 };
    *size = table + sizeof sections;
    uint8_t *image = calloc(1, *size);
    if (!image)
        return NULL;
    memcpy(image, &head, sizeof head);
    for (int i = 0; i < PART_COUNT; i++)
        if (parts->part[i].size)
            memcpy(image + sections[i + 1].sh_offset, parts->part[i].bytes, parts->part[i].size);
    memcpy(image + at, names, names_size);
    memcpy(image + table, sections, sizeof sections);
    return image;
}

static struct lapse_bytes section(const struct lapse_object_file *file, const char *name)
{
    Elf_Data *data = lapse_object_file_data(file, name);
    return data ? (struct lapse_bytes){ data->d_buf, data->d_size } : (struct lapse_bytes){ 0 };
}

/* The unit with the id that the skeleton asks for; type units and others are passed over. */
static int find_unit(struct lapse_split_unit *split, uint64_t id)
{
    struct lapse_unit_place *place = &split->place;
    Dwarf_Off at = 0, next, abbrev;
    size_t header;
    Dwarf_Half version;
    uint8_t address, offset;
    while (!dwarf_next_unit(split->source.dwarf, at, &next, &header, &version, &abbrev, &address,
                            &offset, NULL, NULL)) {
        Dwarf_Die die, unused;
        Dwarf_Attribute attribute;
        Dwarf_Word older;
        uint64_t unit_id = 0;
        uint8_t type = 0;
        bool good = dwarf_offdie(split->source.dwarf, at + header, &die)
                    && !dwarf_cu_info(die.cu, NULL, &type, &unused, NULL, &unit_id, NULL, NULL);
        if (good && version < 5 && dwarf_attr(&die, DW_AT_GNU_dwo_id, &attribute)
            && !dwarf_formudata(&attribute, &older))
            unit_id = older;
        if (good && dwarf_tag(&die) == DW_TAG_compile_unit && unit_id == id) {
            *place = (struct lapse_unit_place){
                at, next, at + header, abbrev, { version, address, offset }, place->bases
            };
            return next <= split->source.info.size ? 0 : -EBADMSG;
        }
        if (next <= at)
            break;
        at = next;
    }
    return -ENOENT;
}

static int open_parts(struct lapse_split_unit *split, struct parts *parts,
                      const struct lapse_skeleton *skeleton)
{
    uint8_t *offsets = NULL, *strings = NULL, *image;
    size_t size;
    int error = gather_strings(parts, &offsets, &strings);
    image = error ? NULL : build_image(parts, &size);
    free(offsets);
    free(strings);
    if (!image)
        return error ? error : -ENOMEM;
    error = lapse_object_file_adopt(&split->file, skeleton->name, image, size);
    if (error)
        return error;
    split->source.dwarf = dwarf_begin_elf(split->file->elf, DWARF_C_READ, NULL);
    if (!split->source.dwarf)
        return -EBADMSG;
    split->source.info = section(split->file, ".debug_info");
    split->source.abbrev = section(split->file, ".debug_abbrev");
    split->source.lines = (struct lapse_line_sections){ section(split->file, ".debug_line"),
                                                        { 0 },
                                                        section(split->file, ".debug_str"),
                                                        section(split->file,
                                                                ".debug_str_offsets") };
    split->source.ranges = skeleton->sections;
    split->source.ranges.rnglists = section(split->file, ".debug_rnglists");
    split->place.bases = skeleton->bases;
    split->place.bases.rnglists = 12; /* behind the only head of the unit's lists */
    return find_unit(split, skeleton->id);
}

/* The .dwo file: where the skeleton says, below --symfs, or beside the binary. */
static struct lapse_object_file *open_dwo(const struct lapse_skeleton *skeleton, const char *binary,
                                          const char *symfs)
{
    struct lapse_object_file *file = NULL;
    char path[2 * PATH_MAX];
    const char *separator = skeleton->name[0] == '/' ? "" : "/";
    const char *folder = skeleton->name[0] == '/' || !skeleton->compile_dir ? ""
                                                                            : skeleton->compile_dir;
    for (int below = symfs ? 1 : 0; below >= 0 && !file; below--) {
        snprintf(path, sizeof path, "%s%s%s%s", below ? symfs : "", folder, separator,
                 skeleton->name);
        lapse_object_file_open(&file, path);
    }
    const char *slash = strrchr(binary, '/'), *last = strrchr(skeleton->name, '/');
    if (!file) {
        snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash + 1 - binary) : 0, binary,
                 last ? last + 1 : skeleton->name);
        lapse_object_file_open(&file, path);
    }
    return file;
}

int lapse_split_unit_open(struct lapse_split_unit **result, const struct lapse_skeleton *skeleton,
                          const struct lapse_object_file *package, const char *binary,
                          const char *symfs, char *cut, size_t size)
{
    struct parts parts = { 0 };
    struct lapse_object_file *dwo = NULL;
    struct lapse_split_unit *split = calloc(1, sizeof *split);
    int error = split ? -ENOENT : -ENOMEM;
    *result = NULL;
    if (split && package) {
        struct lapse_bytes index = section(package, ".debug_cu_index");
        read_parts(&parts, package);
        error = index.size ? cut_package(&parts, &index, skeleton->id) : -ENOENT;
    }
    if (split && error && (dwo = open_dwo(skeleton, binary, symfs))) {
        parts = (struct parts){ 0 };
        read_parts(&parts, dwo);
        error = parts.part[PART_INFO].size ? 0 : -ENOENT;
    }
    if (!error)
        error = open_parts(split, &parts, skeleton);
    if (dwo && dwo->cut) { /* what was copied out of it is in part zeros */
        snprintf(cut, size, "%s", dwo->path);
        error = -ESTALE;
    }
    lapse_object_file_close(dwo);
    if (error)
        lapse_split_unit_close(split);
    else
        *result = split;
    return error;
}

void lapse_split_unit_close(struct lapse_split_unit *split)
{
    if (!split)
        return;
    dwarf_end(split->source.dwarf);
    lapse_object_file_close(split->file);
    free(split);
}
