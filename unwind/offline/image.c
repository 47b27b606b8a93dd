/* SPDX-License-Identifier: MIT */
/* Units are listed when the first address is asked for; each unit's tables are built at its own
 * first address (unit_cache.c keeps them). The name of the outermost frame is the symbol that
 * covers the address, as other symbolizers have it: it knows clones and cold parts, which DWARF
 * does not. */
#include "image.h"

#include "image_units.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

enum { CHAIN_MAX = 256 };

struct lapse_image *lapse_image_create(struct lapse_module_files *files,
                                       struct lapse_image_services *services)
{
    struct lapse_image *image = calloc(1, sizeof *image);
    if (!image) {
        lapse_debug_files_close(files);
        return NULL;
    }
    image->files = *files;
    image->services = services;
    *files = (struct lapse_module_files){ 0 };
    return image;
}

void lapse_image_destroy(struct lapse_image *image)
{
    if (!image)
        return;
    lapse_image_units_free(image);
    lapse_symbol_table_free(&image->symbols);
    lapse_debug_files_close(&image->files);
    free(image);
}

static void load_symbols(struct lapse_image *image)
{
    struct lapse_module_files *files = &image->files;
    struct lapse_symbol_table *table = &image->symbols;
    int error = 0;
    image->symbols_loaded = true;
    if (files->debug)
        error = lapse_symbol_table_add(table, files->debug);
    if (!error && files->main && files->main != files->debug)
        error = lapse_symbol_table_add(table, files->main);
    if (!error && files->mini)
        error = lapse_symbol_table_add(table, files->mini);
    if (!error && files->main)
        error = lapse_symbol_table_add_plt(table, files->main);
    if (error || lapse_symbol_table_order(table))
        lapse_symbol_table_free(table);
}

static const struct lapse_table_symbol *find_symbol(struct lapse_image *image, uint64_t address)
{
    if (!image->symbols_loaded)
        load_symbols(image);
    return lapse_symbol_table_find(&image->symbols, address);
}

static const char *die_string(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(die, name, &attribute) ? dwarf_formstring(&attribute) : NULL;
}

static const char *die_name(const struct lapse_image_unit *unit, uint32_t function)
{
    Dwarf_Die die;
    uint64_t offset = unit->place.offset + unit->built.functions[function].die;
    if (!dwarf_offdie(unit->source->dwarf, offset, &die))
        return NULL;
    const char *name = die_string(&die, DW_AT_linkage_name);
    if (!name)
        name = die_string(&die, DW_AT_MIPS_linkage_name);
    return name ? name : die_string(&die, DW_AT_name);
}

static void set_name(struct lapse_inline_frame *frame, struct lapse_names *names,
                     const char *system_name)
{
    struct lapse_shown_name shown = system_name && *system_name
                                        ? lapse_names_symbol(names, system_name)
                                        : (struct lapse_shown_name){ 0 };
    frame->name = shown.name;
    frame->system_name = shown.system_name;
}

static char *unit_file(const struct lapse_image_unit *unit, uint64_t number,
                       struct lapse_names *names)
{
    const struct lapse_line_table *files = unit->built.files.file_count ? &unit->built.files
                                                                        : &unit->built.lines;
    return lapse_line_table_file(files, number, names);
}

/* Functions at an address, innermost first. */
static uint32_t chain_at(const struct lapse_unit *unit, uint64_t address, uint32_t chain[CHAIN_MAX])
{
    uint32_t depth = 0;
    for (uint32_t at = lapse_range_map_find(&unit->map, address);
         at != LAPSE_RANGE_NONE && depth < CHAIN_MAX; at = unit->functions[at].parent)
        chain[depth++] = at;
    return depth;
}

static uint32_t unit_frames(struct lapse_image *image, const struct lapse_image_unit *unit,
                            uint64_t address, struct lapse_inline_frame *frames, uint32_t max)
{
    struct lapse_names *names = image->services->names;
    uint32_t chain[CHAIN_MAX], depth = chain_at(&unit->built, address, chain);
    const struct lapse_line_row *row = lapse_line_table_find(&unit->built.lines, address);
    if (!depth && !row)
        return 0;
    uint32_t count = depth < max ? depth ? depth : 1 : max;
    for (uint32_t i = 0; i < count; i++) {
        /* Frame 0 is the outermost; the others count from the innermost. */
        uint32_t inner = i ? count - 1 - i : depth ? depth - 1 : 0;
        struct lapse_inline_frame *frame = &frames[i];
        *frame = (struct lapse_inline_frame){ 0 };
        if (depth)
            set_name(frame, names, die_name(unit, chain[inner]));
        if (i && !frame->name)
            frame->name = lapse_names_text(names, "[unknown]");
        if (!inner) {
            frame->line = row ? row->line : 0;
            frame->file = row ? lapse_line_table_file(&unit->built.lines, row->file, names) : NULL;
        } else {
            const struct lapse_unit_function *called = &unit->built.functions[chain[inner - 1]];
            frame->line = called->call_line;
            frame->file = unit_file(unit, called->call_file, names);
        }
    }
    return count;
}

const char *lapse_image_cut_path(const struct lapse_image *image)
{
    const struct lapse_object_file *files[] = { image->files.main, image->files.debug, image->files.alternate,
                                                image->package };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (files[i] && files[i]->cut)
            return files[i]->path;
    return image->cut_split;
}

uint32_t lapse_image_frames(struct lapse_image *image, uint64_t address,
                            struct lapse_inline_frame *frames, uint32_t max)
{
    if (!max || lapse_image_cut_path(image))
        return 0;
    struct lapse_image_unit *unit = lapse_image_units_find(image, address);
    uint32_t count = unit ? unit_frames(image, unit, address, frames, max) : 0;
    const struct lapse_table_symbol *symbol = find_symbol(image, address);
    if (!count && symbol) {
        frames[0] = (struct lapse_inline_frame){ 0 };
        count = 1;
    }
    if (symbol)
        set_name(&frames[0], image->services->names, symbol->name);
    return lapse_image_cut_path(image) ? 0 : count;
}

static void declared_at(const struct lapse_image_unit *unit, uint32_t at, struct lapse_names *names,
                        struct lapse_offline_function *function)
{
    Dwarf_Die die;
    Dwarf_Attribute attribute;
    Dwarf_Word number;
    if (!dwarf_offdie(unit->source->dwarf, unit->place.offset + unit->built.functions[at].die,
                      &die))
        return;
    if (dwarf_attr_integrate(&die, DW_AT_decl_line, &attribute)
        && !dwarf_formudata(&attribute, &number))
        function->line = (uint32_t)number;
    /* An origin in another unit counts its files in that unit's table. */
    if (dwarf_attr_integrate(&die, DW_AT_decl_file, &attribute) && attribute.cu == die.cu
        && !dwarf_formudata(&attribute, &number))
        function->file = unit_file(unit, number, names);
    if (!function->file)
        function->line = 0;
}

bool lapse_image_function(struct lapse_image *image, uint64_t address,
                          struct lapse_offline_function *function)
{
    struct lapse_names *names = image->services->names;
    const struct lapse_table_symbol *symbol = find_symbol(image, address);
    struct lapse_image_unit *unit = lapse_image_units_find(image, address);
    uint32_t chain[CHAIN_MAX], depth = unit ? chain_at(&unit->built, address, chain) : 0;
    struct lapse_inline_frame named = { 0 };
    *function = (struct lapse_offline_function){ 0 };
    set_name(&named, names,
             symbol  ? symbol->name
             : depth ? die_name(unit, chain[depth - 1])
                     : NULL);
    if (!named.name || lapse_image_cut_path(image))
        return false;
    function->name = named.name;
    function->system_name = named.system_name;
    if (symbol) {
        function->start = symbol->start;
        function->size = symbol->end - symbol->start;
    }
    if (depth)
        declared_at(unit, chain[depth - 1], names, function);
    return true;
}

const char *lapse_image_code_path(const struct lapse_image *image)
{
    return image->files.main ? image->files.main->path : NULL;
}
