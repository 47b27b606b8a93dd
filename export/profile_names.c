/* SPDX-License-Identifier: MIT */
/* The profile's builder: modules, functions and inlined functions of addresses. A name comes from the
 * recording's own symbols, else from the symbolizer, else it is `module+0xstart`. Every answer says how
 * long it holds. Offline only. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile_source.h"

#define INLINE_MAX 64
#define NAME_BYTES 512

static const char *const pseudo_names[] = {
    NULL, "[truncated]", "[unwind failed]", "[not sampled]",
};
enum { PSEUDO_COUNT = sizeof pseudo_names / sizeof *pseudo_names, PSEUDO_NOT_SAMPLED = 3 };

static bool is_anonymous(const char *path)
{
    return path[0] == '[' && strcmp(path, "[vdso]");
}

static bool module_equal(const void *context, uint32_t id, const void *key)
{
    const struct lapse_profile_module *left = &((const struct lapse_profile *)context)->modules[id];
    const struct lapse_profile_module *right = key;
    /* Two files of one path are told apart by build id, or by what they cover. */
    return left->path == right->path && left->build_id == right->build_id &&
           left->end - left->start == right->end - right->start &&
           (!is_anonymous(left->path) || left->start == right->start);
}

static const char *hex_text(struct lapse_strings *strings, const uint8_t *bytes, uint32_t size)
{
    char text[65];
    for (uint32_t i = 0; i < size && i < 32; i++)
        sprintf(text + 2 * i, "%02x", bytes[i]);
    return lapse_strings_keep_bytes(strings, text, 2 * (size < 32 ? size : 32));
}

static uint32_t add_module(struct lapse_profile *profile, const struct lapse_module *from)
{
    struct lapse_profile_source *source = profile->source;
    struct lapse_profile_module module = {
        .path = lapse_strings_keep(&source->strings, from->path),
        .build_id = hex_text(&source->strings, from->build_id, from->build_id_size),
        .start = from->start, .end = from->end, .bias = from->bias,
        .file_offset = from->text_count ? from->text[0].file_offset - (from->text[0].start - from->start)
                                        : 0,
    };
    if (!module.path || !module.build_id)
        return LAPSE_NONE;
    uint64_t hash = lapse_hash((uintptr_t)module.path, (uintptr_t)module.build_id);
    uint32_t id = lapse_index_find(&source->modules, hash, module_equal, profile, &module);
    if (id != LAPSE_INDEX_NONE)
        return id;
    struct lapse_profile_module *modules = lapse_array_grow(profile->modules, profile->module_count,
                                                            sizeof *modules);
    if (!modules || lapse_index_add(&source->modules, hash, profile->module_count))
        return LAPSE_NONE;
    profile->modules = modules;
    modules[profile->module_count] = module;
    return profile->module_count++;
}

int lapse_profile_add_modules(struct lapse_profile *profile, struct lapse_session_link *link)
{
    link->modules = malloc((link->session->module_count + 1) * sizeof *link->modules);
    if (!link->modules)
        return -ENOMEM;
    for (uint32_t i = 0; i < link->session->module_count; i++) {
        link->modules[i] = add_module(profile, &link->session->modules[i]);
        if (link->modules[i] == LAPSE_NONE)
            return -ENOMEM;
    }
    return 0;
}

uint64_t lapse_profile_pc(const struct lapse_profile *profile, const struct lapse_session_link *link,
                          uint64_t pc, uint64_t time_ns, struct lapse_validity *validity)
{
    const struct lapse_module *module = pc ? lapse_session_module_while(link->session, pc, time_ns, validity)
                                           : NULL;
    if (!module)
        return pc;
    return pc - module->start + profile->modules[link->modules[module - link->session->modules]].start;
}

static bool function_equal(const void *context, uint32_t id, const void *key)
{
    const struct lapse_profile_function *left = &((const struct lapse_profile *)context)->functions[id];
    const struct lapse_profile_function *right = key;
    return left->name == right->name && left->module == right->module && left->flags == right->flags;
}

uint32_t lapse_profile_function(struct lapse_profile *profile, const char *name,
                                const char *system_name, const char *file, uint32_t line,
                                uint32_t module, uint32_t flags)
{
    struct lapse_profile_source *source = profile->source;
    struct lapse_profile_function function = {
        .name = lapse_strings_keep(&source->strings, name), .line = line, .module = module, .flags = flags,
    };
    if (!function.name)
        return LAPSE_NONE;
    uint64_t hash = lapse_hash((uintptr_t)function.name, (uint64_t)module << 32 | flags);
    uint32_t id = lapse_index_find(&source->functions, hash, function_equal, profile, &function);
    if (id != LAPSE_INDEX_NONE) {
        if (file && !profile->functions[id].file)
            profile->functions[id].file = lapse_strings_keep(&source->strings, file);
        return id;
    }
    if (system_name && strcmp(system_name, name))
        function.system_name = lapse_strings_keep(&source->strings, system_name);
    if (file)
        function.file = lapse_strings_keep(&source->strings, file);
    struct lapse_profile_function *functions =
        lapse_array_grow(profile->functions, profile->function_count, sizeof *functions);
    if (!functions || lapse_index_add(&source->functions, hash, profile->function_count))
        return LAPSE_NONE;
    profile->functions = functions;
    functions[profile->function_count] = function;
    return profile->function_count++;
}

const char *lapse_profile_last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

static uint32_t unnamed_function(struct lapse_profile *profile, const struct lapse_module *module,
                                 uint32_t module_index, uint64_t address)
{
    char name[NAME_BYTES];
    if (!module)
        snprintf(name, sizeof name, "[unknown]");
    else if (module->path[0] == '[') /* an offset would say nothing: no file has it */
        snprintf(name, sizeof name, "%s", module->path);
    else
        snprintf(name, sizeof name, "%.*s+0x%" PRIx64, NAME_BYTES - 24, lapse_profile_last_part(module->path),
                 address - module->bias);
    return lapse_profile_function(profile, name, NULL, NULL, 0, module_index, LAPSE_FUNCTION_UNNAMED);
}

/* What is known of a function's first byte: the outermost frame there is the function itself. Returns
 * the number of frames, 0 when nothing is known. */
static uint32_t first_byte(struct lapse_profile *profile, struct lapse_session_link *link,
                           uint64_t address, uint64_t time_ns, struct lapse_inline_frame *outermost)
{
    const struct lapse_symbolizer *symbolizer = profile->source->options.symbolizer;
    const struct lapse_address_info *info = lapse_session_address(link->session, address, false);
    struct lapse_inline_frame frames[INLINE_MAX];
    uint32_t count = info ? info->frame_count : 0;
    if (count)
        *outermost = info->frames[0];
    else if (symbolizer && (count = symbolizer->frames(symbolizer->context, link->session, address,
                                                       false, time_ns, frames, INLINE_MAX)))
        *outermost = frames[0];
    return count;
}

static const char *shown(const struct lapse_profile *profile, const char *name, const char *system_name)
{
    const struct lapse_symbolizer *symbolizer = profile->source->options.symbolizer;
    return symbolizer && symbolizer->show && system_name ? symbolizer->show(symbolizer->context, system_name) : name;
}

static uint32_t find_function(struct lapse_profile *profile, struct lapse_session_link *link,
                              uint64_t address, uint64_t time_ns, struct lapse_validity *validity)
{
    const struct lapse_symbol *symbol = lapse_session_symbol(link->session, address, time_ns, validity);
    const struct lapse_module *module = lapse_session_module_while(link->session, address, time_ns,
                                                                   validity);
    uint32_t module_index = module ? link->modules[module - link->session->modules] : LAPSE_NONE;
    struct lapse_inline_frame frame = { 0 };
    if (symbol && !symbol->from_ns && !symbol->until_ns && lapse_session_is_reused(link->session, address))
        symbol = NULL;
    uint32_t count = symbol && symbol->file ? 0 : first_byte(profile, link, address, time_ns, &frame);
    uint32_t line = count == 1 ? frame.line : 0; /* else the line of an inlined call */
    if (symbol && *symbol->name) {
        bool jit = symbol->from_ns || !module || is_anonymous(module->path);
        return lapse_profile_function(profile, shown(profile, symbol->name, symbol->system_name),
                                      symbol->system_name,
                                      symbol->file ? symbol->file : frame.file,
                                      symbol->line ? symbol->line : line, module_index,
                                      jit ? LAPSE_FUNCTION_JIT : 0);
    }
    if (count && frame.name && *frame.name)
        return lapse_profile_function(profile, shown(profile, frame.name, frame.system_name),
                                      frame.system_name, frame.file, line, module_index, 0);
    return unnamed_function(profile, module, module_index, symbol ? symbol->address : address);
}

uint32_t lapse_profile_function_at(struct lapse_profile *profile, struct lapse_session_link *link,
                                   uint64_t address, uint64_t time_ns,
                                   struct lapse_validity *validity)
{
    uint32_t number;
    if (address > 0 && address < PSEUDO_COUNT)
        return lapse_profile_function(profile, pseudo_names[address], NULL, NULL, 0, LAPSE_NONE,
                                      LAPSE_FUNCTION_PSEUDO |
                                          (address < PSEUDO_NOT_SAMPLED ? LAPSE_FUNCTION_CUT : 0));
    if (!lapse_map_get(&link->function_map, address, &number)) {
        struct lapse_memo *memos = lapse_array_grow(link->functions, link->function_count, sizeof *memos);
        if (!memos || lapse_map_put(&link->function_map, address, link->function_count))
            return LAPSE_NONE;
        link->functions = memos;
        number = link->function_count++;
        memos[number] = (struct lapse_memo){ 0 }; /* holds at no time */
    }
    struct lapse_memo *memo = &link->functions[number];
    if (!lapse_validity_holds(&memo->validity, time_ns)) {
        memo->validity = (struct lapse_validity){ 0, UINT64_MAX };
        memo->value = find_function(profile, link, address, time_ns, &memo->validity);
    }
    lapse_validity_narrow(validity, memo->validity.from_ns, memo->validity.until_ns);
    return memo->value;
}

static int add_position(struct lapse_profile_source *source, uint32_t function, uint32_t line)
{
    struct lapse_frame_position *positions = lapse_array_grow(source->positions, source->position_count,
                                                              sizeof *positions);
    if (!positions)
        return -ENOMEM;
    source->positions = positions;
    positions[source->position_count++] = (struct lapse_frame_position){ function, line };
    return 0;
}

static int find_frames(struct lapse_profile *profile, struct lapse_session_link *link, uint64_t pc,
                       bool is_return, uint64_t time_ns, struct lapse_frames_memo *memo)
{
    struct lapse_profile_source *source = profile->source;
    const struct lapse_symbolizer *symbolizer = source->options.symbolizer;
    const struct lapse_address_info *info = lapse_session_address(link->session, pc, is_return);
    const struct lapse_module *module =
        lapse_session_module_while(link->session, pc - is_return, time_ns, &memo->validity);
    uint32_t module_index = module ? link->modules[module - link->session->modules] : LAPSE_NONE;
    struct lapse_inline_frame found[INLINE_MAX];
    const struct lapse_inline_frame *frames = info ? info->frames : found;
    uint32_t count = info ? info->frame_count : 0;
    if (!info && symbolizer)
        count = symbolizer->frames(symbolizer->context, link->session, pc, is_return, time_ns, found,
                                   INLINE_MAX);
    if (count > INLINE_MAX)
        count = INLINE_MAX;
    memo->first = source->position_count;
    memo->count = count;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = frames[i].name && *frames[i].name
                               ? shown(profile, frames[i].name, frames[i].system_name) : "[unknown]";
        uint32_t function = i ? lapse_profile_function(profile, name, frames[i].system_name,
                                                       frames[i].file, 0, module_index, 0)
                              : LAPSE_NONE;
        if ((i && function == LAPSE_NONE) || add_position(source, function, frames[i].line))
            return -ENOMEM;
    }
    return 0;
}

uint32_t lapse_profile_frames_at(struct lapse_profile *profile, struct lapse_session_link *link,
                                 uint64_t pc, bool is_return, uint64_t time_ns,
                                 struct lapse_validity *validity)
{
    uint64_t key = pc << 1 | is_return;
    uint32_t number;
    if (!lapse_map_get(&link->frame_map, key, &number)) {
        struct lapse_frames_memo *memos = lapse_array_grow(link->frames, link->frame_count, sizeof *memos);
        if (!memos || lapse_map_put(&link->frame_map, key, link->frame_count))
            return LAPSE_NONE;
        link->frames = memos;
        number = link->frame_count++;
        memos[number] = (struct lapse_frames_memo){ 0 };
    }
    struct lapse_frames_memo *memo = &link->frames[number];
    if (!lapse_validity_holds(&memo->validity, time_ns)) {
        memo->validity = (struct lapse_validity){ 0, UINT64_MAX };
        if (find_frames(profile, link, pc, is_return, time_ns, memo))
            return LAPSE_NONE;
    }
    lapse_validity_narrow(validity, memo->validity.from_ns, memo->validity.until_ns);
    return number;
}
