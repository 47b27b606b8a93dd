/* SPDX-License-Identifier: MIT */
#include "image_units.h"

#include "array.h"

#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORGET_BYTES = 16 << 20 };

static bool is_code(const void *context, uint64_t address)
{
    const struct lapse_image *image = context;
    for (uint32_t i = 0; i < image->code_count; i++)
        if (address >= image->code[i].start && address < image->code[i].end)
            return true;
    return false;
}

static void read_code_segments(struct lapse_image *image)
{
    const struct lapse_object_file *file = image->files.main ? image->files.main
                                                             : image->files.debug;
    size_t count;
    if (elf_getphdrnum(file->elf, &count))
        return;
    for (size_t i = 0; i < count && image->code_count < sizeof image->code / sizeof *image->code;
         i++) {
        GElf_Phdr header;
        if (!gelf_getphdr(file->elf, (int)i, &header) || header.p_type != PT_LOAD
            || !(header.p_flags & PF_X))
            continue;
        image->code[image->code_count].start = header.p_vaddr;
        image->code[image->code_count++].end = header.p_vaddr + header.p_memsz;
    }
}

static struct lapse_bytes section(const struct lapse_object_file *file, const char *name)
{
    Elf_Data *data = lapse_object_file_data(file, name);
    return data ? (struct lapse_bytes){ data->d_buf, data->d_size } : (struct lapse_bytes){ 0 };
}

static bool open_dwarf(struct lapse_image *image)
{
    struct lapse_object_file *file = image->files.debug;
    if (!file || !lapse_object_file_has_dwarf(file))
        return false;
    image->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    if (!image->dwarf)
        return false;
    image->files.alternate = lapse_debug_files_alternate(image->dwarf, file->path,
                                                         image->services->options);
    if (image->files.alternate)
        image->alternate = dwarf_begin_elf(image->files.alternate->elf, DWARF_C_READ, NULL);
    if (image->alternate)
        dwarf_setalt(image->dwarf, image->alternate);
    image->source = (struct lapse_unit_source){
        image->dwarf,
        section(file, ".debug_info"),
        section(file, ".debug_abbrev"),
        { section(file, ".debug_line"), section(file, ".debug_line_str"),
          section(file, ".debug_str"), section(file, ".debug_str_offsets") },
        { section(file, ".debug_addr"), section(file, ".debug_ranges"),
          section(file, ".debug_rnglists") }
    };
    return image->source.info.size;
}

static uint64_t die_number(Dwarf_Die *die, unsigned name, uint64_t otherwise)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value;
    return dwarf_attr(die, name, &attribute) && !dwarf_formudata(&attribute, &value) ? value
                                                                                     : otherwise;
}

static void read_bases(Dwarf_Die *die, struct lapse_unit_place *place)
{
    Dwarf_Addr low;
    place->bases.address = dwarf_lowpc(die, &low) ? 0 : low;
    place->bases.addr = die_number(die, DW_AT_addr_base, die_number(die, DW_AT_GNU_addr_base, 0));
    place->bases.ranges = die_number(die, DW_AT_GNU_ranges_base, 0);
    place->bases.rnglists = die_number(die, DW_AT_rnglists_base, 0);
}

struct listing {
    struct lapse_address_range *ranges;
    size_t count, capacity;
};

static bool list_range(struct lapse_image *image, struct listing *listing, uint64_t start,
                       uint64_t end, size_t unit)
{
    if (start >= end || !is_code(image, start) || !is_code(image, end - 1))
        return true;
    if (!lapse_array_room(&listing->ranges, listing->count, &listing->capacity,
                          sizeof *listing->ranges))
        return false;
    /* Where units overlap the first in the file holds, while the map prefers high values. */
    listing->ranges[listing->count++] = (struct lapse_address_range){
        start, end, UINT32_MAX - 1 - (uint32_t)unit
    };
    return true;
}

/* A unit without ranges of its own is read now, to take those of its functions. */
static bool list_functions(struct lapse_image *image, struct listing *listing, size_t index)
{
    struct lapse_unit unit = { 0 };
    bool good = true;
    if (!lapse_unit_read_functions(&unit, &image->source, &image->units[index].skeleton, is_code,
                                   image))
        for (size_t i = 0; i + 1 < unit.map.count && good; i++)
            if (unit.map.values[i] != LAPSE_RANGE_NONE)
                good = list_range(image, listing, unit.map.starts[i], unit.map.starts[i + 1],
                                  index);
    lapse_unit_free(&unit);
    return good;
}

static bool list_unit(struct lapse_image *image, struct listing *listing, Dwarf_Die *die,
                      struct lapse_unit_place place)
{
    Dwarf_Addr base, start, end;
    if (!lapse_array_room(&image->units, image->unit_count, &image->unit_capacity,
                          sizeof *image->units))
        return false;
    read_bases(die, &place);
    size_t index = image->unit_count++, before = listing->count;
    image->units[index] = (struct lapse_image_unit){ .skeleton = place };
    for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;)
        if (!list_range(image, listing, start, end, index))
            return false;
    return listing->count > before || list_functions(image, listing, index);
}

static bool list_units(struct lapse_image *image, struct listing *listing)
{
    Dwarf_Off at = 0, next, abbrev;
    size_t header;
    Dwarf_Half version;
    uint8_t address, offset;
    while (!dwarf_next_unit(image->dwarf, at, &next, &header, &version, &abbrev, &address, &offset,
                            NULL, NULL)
           && next > at && next <= image->source.info.size) {
        Dwarf_Die die;
        struct lapse_unit_place place = {
            at, next, at + header, abbrev, { version, address, offset }, { 0 }
        };
        int tag = dwarf_offdie(image->dwarf, at + header, &die) ? dwarf_tag(&die) : 0;
        if ((tag == DW_TAG_compile_unit || tag == DW_TAG_skeleton_unit) && address == 8
            && !list_unit(image, listing, &die, place))
            return false;
        at = next;
    }
    return true;
}

static void list(struct lapse_image *image)
{
    const struct lapse_offline_options *options = image->services->options;
    struct listing listing = { 0 };
    image->units_listed = true;
    if (!image->files.debug)
        return;
    read_code_segments(image);
    if (!open_dwarf(image))
        return;
    if (options->progress)
        options->progress(options->progress_context, image->files.debug->path, 0, 0);
    if (!list_units(image, &listing)
        || lapse_range_map_build(&image->unit_map, listing.ranges, listing.count))
        lapse_range_map_free(&image->unit_map);
    free(listing.ranges);
}

static const char *die_text(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    return dwarf_attr(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

static struct lapse_object_file *open_package(struct lapse_image *image)
{
    const struct lapse_object_file *files[] = { image->files.debug, image->files.main };
    char path[PATH_MAX];
    if (image->package_tried)
        return image->package;
    image->package_tried = true;
    for (int i = 0; i < 2 && !image->package; i++) {
        if (!files[i])
            continue;
        snprintf(path, sizeof path, "%s.dwp", files[i]->path);
        lapse_object_file_open(&image->package, path);
    }
    return image->package;
}

static uint64_t skeleton_id(Dwarf_Die *die)
{
    Dwarf_Die unused;
    uint64_t id = 0;
    uint8_t type;
    Dwarf_Half version;
    if (dwarf_cu_info(die->cu, &version, &type, &unused, NULL, &id, NULL, NULL) || version < 5)
        return die_number(die, DW_AT_GNU_dwo_id, 0);
    return id;
}

/* Where the entries are: in the file itself, or in the split unit that a skeleton names. */
static void place_entries(struct lapse_image *image, struct lapse_image_unit *unit, Dwarf_Die *die,
                          const char *compile_dir)
{
    const char *name = die_text(die, DW_AT_dwo_name);
    if (!name)
        name = die_text(die, DW_AT_GNU_dwo_name);
    unit->source = &image->source;
    unit->place = unit->skeleton;
    if (!name)
        return;
    struct lapse_skeleton skeleton = { skeleton_id(die), name, compile_dir, unit->skeleton.bases,
                                       image->source.ranges };
    char cut[2 * PATH_MAX];
    int error = unit->split ? 0
                            : lapse_split_unit_open(&unit->split, &skeleton, open_package(image),
                                                    image->files.debug->path,
                                                    image->services->options->symfs, cut, sizeof cut);
    if (error == -ESTALE && !image->cut_split)
        image->cut_split = strdup(cut);
    if (error)
        return;
    unit->source = &unit->split->source;
    unit->place = unit->split->place;
}

/* Pages of a mapped file count as memory of the process although they can be read again any time:
 * they are given back every so often. */
static void forget_pages(struct lapse_image *image, uint64_t read)
{
    const struct lapse_unit_source *source = &image->source;
    const struct lapse_bytes sections[] = {
        source->info,           source->abbrev,        source->lines.line,      source->lines.str,
        source->lines.line_str, source->ranges.ranges, source->ranges.rnglists, source->ranges.addr
    };
    image->read_bytes += read;
    if (image->read_bytes < FORGET_BYTES)
        return;
    image->read_bytes = 0;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        if (sections[i].size)
            lapse_object_file_forget(image->files.debug, sections[i].bytes, sections[i].size);
}

static void build(struct lapse_image *image, struct lapse_image_unit *unit)
{
    Dwarf_Die die;
    unit->is_built = true;
    if (!dwarf_offdie(image->dwarf, unit->skeleton.first_die, &die))
        return;
    const char *compile_dir = die_text(&die, DW_AT_comp_dir);
    place_entries(image, unit, &die, compile_dir ? compile_dir : "");
    uint64_t program = die_number(&die, DW_AT_stmt_list, UINT64_MAX);
    lapse_unit_read_functions(&unit->built, unit->source, &unit->place, is_code, image);
    if (program != UINT64_MAX)
        lapse_line_table_read(&unit->built.lines, &image->source.lines, program,
                              compile_dir ? compile_dir : "", false, is_code, image);
    if (unit->split && unit->source->lines.line.size)
        lapse_line_table_read(&unit->built.files, &unit->source->lines, 0,
                              compile_dir ? compile_dir : "", true, is_code, image);
    forget_pages(image, unit->skeleton.end - unit->skeleton.offset);
}

static void unlink_unit(struct lapse_unit_cache *cache, struct lapse_image_unit *unit)
{
    *(unit->newer ? &unit->newer->older : &cache->newest) = unit->older;
    *(unit->older ? &unit->older->newer : &cache->oldest) = unit->newer;
    unit->newer = unit->older = NULL;
}

static void link_newest(struct lapse_unit_cache *cache, struct lapse_image_unit *unit)
{
    unit->older = cache->newest;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = unit;
    cache->newest = unit;
}

static size_t unit_cost(const struct lapse_image_unit *unit)
{
    return lapse_unit_bytes(&unit->built) + (unit->split ? 2 * unit->split->file->size : 0);
}

static void drop(struct lapse_unit_cache *cache, struct lapse_image_unit *unit)
{
    cache->bytes -= unit_cost(unit);
    unlink_unit(cache, unit);
    lapse_unit_free(&unit->built);
    lapse_split_unit_close(unit->split);
    unit->split = NULL;
    unit->is_built = false;
}

struct lapse_image_unit *lapse_image_units_find(struct lapse_image *image, uint64_t address)
{
    struct lapse_unit_cache *cache = &image->services->cache;
    if (!image->units_listed)
        list(image);
    uint32_t value = lapse_range_map_find(&image->unit_map, address);
    if (value == LAPSE_RANGE_NONE)
        return NULL;
    struct lapse_image_unit *unit = &image->units[UINT32_MAX - 1 - value];
    if (unit->is_built) {
        if (cache->newest != unit) {
            unlink_unit(cache, unit);
            link_newest(cache, unit);
        }
        return unit;
    }
    build(image, unit);
    link_newest(cache, unit);
    cache->bytes += unit_cost(unit);
    while (cache->bytes > cache->limit && cache->oldest != unit)
        drop(cache, cache->oldest);
    return unit;
}

void lapse_image_units_free(struct lapse_image *image)
{
    for (size_t i = 0; i < image->unit_count; i++)
        if (image->units[i].is_built)
            drop(&image->services->cache, &image->units[i]);
    free(image->units);
    lapse_range_map_free(&image->unit_map);
    dwarf_end(image->dwarf);
    dwarf_end(image->alternate);
    lapse_object_file_close(image->package);
    free(image->cut_split);
}
