/* SPDX-License-Identifier: MIT */
/* See firefox_tables.h. */
#include "firefox_tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "captions.h"

/* Categories: the first is the default; those of code follow enum lapse_code_kind. */
enum { CODE_CATEGORY = 1, GUESSED_CATEGORY = CODE_CATEGORY + LAPSE_CODE_KINDS };
#define GUESSED_MARK (1ull << 32)

static const struct { const char *name, *color; } categories[] = {
    { "Other", "grey" },
    [CODE_CATEGORY + LAPSE_CODE_USER] = { "User", "yellow" },
    [CODE_CATEGORY + LAPSE_CODE_LIBRARY] = { "Library", "green" },
    [CODE_CATEGORY + LAPSE_CODE_LIBC] = { "C library", "blue" },
    [CODE_CATEGORY + LAPSE_CODE_KERNEL_ENTRY] = { "Kernel entry", "orange" },
    [CODE_CATEGORY + LAPSE_CODE_JIT] = { "JIT", "magenta" },
    [CODE_CATEGORY + LAPSE_CODE_PSEUDO] = { "Missing", "darkgrey" },
    [GUESSED_CATEGORY] = { "Guessed", "brown" },
};
#define CATEGORY_COUNT (sizeof categories / sizeof *categories)

void lapse_firefox_categories(struct lapse_output *output)
{
    lapse_output_char(output, '[');
    for (size_t i = 0; i < CATEGORY_COUNT; i++) {
        lapse_output_text(output, i ? ",{\"name\":\"" : "{\"name\":\"");
        lapse_output_text(output, categories[i].name);
        lapse_output_text(output, "\",\"color\":\"");
        lapse_output_text(output, categories[i].color);
        lapse_output_text(output, "\",\"subcategories\":[\"Other\"]}");
    }
    lapse_output_char(output, ']');
}

static uint32_t inline_depth(const struct lapse_profile *profile, uint32_t node)
{
    uint32_t depth = 0;
    for (; profile->nodes[node].flags & LAPSE_NODE_INLINED && profile->nodes[node].parent; depth++)
        node = profile->nodes[node].parent;
    return depth;
}

static uint32_t frame_number(struct lapse_firefox_tables *tables, uint32_t node, uint64_t pc,
                             uint32_t line)
{
    const struct lapse_profile_node *n = &tables->profile->nodes[node];
    uint64_t mark = inline_depth(tables->profile, node);
    if (n->flags & LAPSE_NODE_GUESSED)
        mark |= GUESSED_MARK;
    return lapse_intern(&tables->frames, (struct lapse_key){ { n->function, pc, line, mark } },
                        NULL);
}

static int add_stack(struct lapse_firefox_tables *tables, uint32_t number, uint32_t frame,
                     uint32_t prefix)
{
    uint32_t *frames = lapse_array_grow(tables->stack_frames, number, sizeof *frames);
    if (frames)
        tables->stack_frames = frames;
    uint32_t *prefixes = lapse_array_grow(tables->stack_prefixes, number, sizeof *prefixes);
    if (prefixes)
        tables->stack_prefixes = prefixes;
    if (!frames || !prefixes || frame == LAPSE_INDEX_NONE)
        return -ENOMEM;
    frames[number] = frame;
    prefixes[number] = prefix;
    return 0;
}

struct place { uint32_t node, line; uint64_t pc; };

/* Number of a leaf's stack, plus one. The places from the leaf outwards are listed first, then taken
 * root first: a prefix has a smaller number than what it is the prefix of. */
static int leaf_stack(struct lapse_firefox_tables *tables, const struct lapse_profile_leaf *leaf,
                      struct place *places, uint32_t *stack)
{
    const struct lapse_profile_node *nodes = tables->profile->nodes;
    uint32_t depth = 0;
    struct place at = { leaf->node, leaf->line, leaf->pc };
    while (at.node) {
        places[depth++] = at;
        if (!(nodes[at.node].flags & LAPSE_NODE_INLINED))
            at.pc = nodes[at.node].call_pc ? nodes[at.node].call_pc - 1 : 0;
        at.line = nodes[at.node].call_line;
        at.node = nodes[at.node].parent;
    }
    *stack = 0;
    while (depth--) {
        const struct place *place = &places[depth];
        bool is_new;
        struct lapse_key key = { { place->node, place->pc, place->line, 0 } };
        uint32_t number = lapse_intern(&tables->stacks, key, &is_new);
        if (number == LAPSE_INDEX_NONE)
            return -ENOMEM;
        if (is_new && add_stack(tables, number,
                                frame_number(tables, place->node, place->pc, place->line), *stack))
            return -ENOMEM;
        *stack = number + 1;
    }
    return 0;
}

int lapse_firefox_tables_init(struct lapse_firefox_tables *tables,
                              const struct lapse_profile *profile)
{
    uint32_t deepest = 0;
    *tables = (struct lapse_firefox_tables){ .profile = profile };
    for (uint32_t i = 0; i < profile->node_count; i++)
        if (profile->nodes[i].depth > deepest)
            deepest = profile->nodes[i].depth;
    struct place *places = malloc((deepest + 1u) * sizeof *places);
    tables->leaf_stacks = calloc(profile->leaf_count + 1u, sizeof *tables->leaf_stacks);
    int error = places && tables->leaf_stacks ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < profile->leaf_count && !error; i++)
        error = leaf_stack(tables, &profile->leaves[i], places, &tables->leaf_stacks[i]);
    free(places);
    return error;
}

void lapse_firefox_tables_fini(struct lapse_firefox_tables *tables)
{
    lapse_intern_fini(&tables->stacks);
    lapse_intern_fini(&tables->frames);
    lapse_strings_free(&tables->strings);
    lapse_strings_free(&tables->sources);
    free(tables->stack_frames);
    free(tables->stack_prefixes);
    free(tables->leaf_stacks);
}

uint32_t lapse_firefox_string(struct lapse_firefox_tables *tables, const char *text)
{
    return lapse_strings_number(&tables->strings, text, strlen(text));
}

static void put_number(struct lapse_output *output, uint32_t i, uint64_t value)
{
    if (i)
        lapse_output_char(output, ',');
    lapse_output_uint(output, value);
}

static void put_text(struct lapse_output *output, uint32_t i, const char *text)
{
    if (i)
        lapse_output_char(output, ',');
    lapse_output_text(output, text);
}

/* `"NAME":[V,V,...]` with one value throughout. */
static void put_constant(struct lapse_output *output, const char *name, uint32_t count,
                         const char *value)
{
    lapse_output_text(output, ",\"");
    lapse_output_text(output, name);
    lapse_output_text(output, "\":[");
    for (uint32_t i = 0; i < count; i++)
        put_text(output, i, value);
    lapse_output_char(output, ']');
}

static void put_stacks(struct lapse_firefox_tables *tables, struct lapse_output *output)
{
    uint32_t count = tables->stacks.count;
    lapse_output_text(output, "\"stackTable\":{\"length\":");
    lapse_output_uint(output, count);
    lapse_output_text(output, ",\"frame\":[");
    for (uint32_t i = 0; i < count; i++)
        put_number(output, i, tables->stack_frames[i]);
    lapse_output_text(output, "],\"prefix\":[");
    for (uint32_t i = 0; i < count; i++)
        if (tables->stack_prefixes[i])
            put_number(output, i, tables->stack_prefixes[i] - 1);
        else
            put_text(output, i, "null");
    lapse_output_text(output, "]}");
}

static uint32_t category_of(const struct lapse_firefox_tables *tables, const uint64_t *word)
{
    if (word[3] & GUESSED_MARK)
        return GUESSED_CATEGORY;
    return CODE_CATEGORY + (uint32_t)lapse_code_kind(tables->profile, (uint32_t)word[0]);
}

/* Addresses count from where the file's first byte would be mapped. */
static void put_address(struct lapse_firefox_tables *tables, struct lapse_output *output,
                        uint32_t i, const uint64_t *word)
{
    uint32_t module = tables->profile->functions[word[0]].module;
    uint64_t bias = module == LAPSE_NONE ? 0 : tables->profile->modules[module].bias;
    if (module == LAPSE_NONE || word[1] < bias || !word[1])
        put_text(output, i, "-1");
    else
        put_number(output, i, word[1] - bias);
}

static void put_frames(struct lapse_firefox_tables *tables, struct lapse_output *output)
{
    uint32_t count = tables->frames.count;
    const struct lapse_key *keys = tables->frames.keys;
    lapse_output_text(output, ",\n\"frameTable\":{\"length\":");
    lapse_output_uint(output, count);
    lapse_output_text(output, ",\"func\":[");
    for (uint32_t i = 0; i < count; i++)
        put_number(output, i, keys[i].word[0]);
    lapse_output_text(output, "],\"address\":[");
    for (uint32_t i = 0; i < count; i++)
        put_address(tables, output, i, keys[i].word);
    lapse_output_text(output, "],\"inlineDepth\":[");
    for (uint32_t i = 0; i < count; i++)
        put_number(output, i, (uint32_t)keys[i].word[3]);
    lapse_output_text(output, "],\"category\":[");
    for (uint32_t i = 0; i < count; i++)
        put_number(output, i, category_of(tables, keys[i].word));
    lapse_output_text(output, "],\"line\":[");
    for (uint32_t i = 0; i < count; i++)
        if (keys[i].word[2])
            put_number(output, i, keys[i].word[2]);
        else
            put_text(output, i, "null");
    lapse_output_char(output, ']');
    put_constant(output, "subcategory", count, "0");
    put_constant(output, "nativeSymbol", count, "null");
    put_constant(output, "innerWindowID", count, "0");
    put_constant(output, "column", count, "null");
    lapse_output_char(output, '}');
}

static void put_functions(struct lapse_firefox_tables *tables, struct lapse_output *output)
{
    const struct lapse_profile *profile = tables->profile;
    uint32_t count = profile->function_count;
    lapse_output_text(output, ",\n\"funcTable\":{\"length\":");
    lapse_output_uint(output, count);
    lapse_output_text(output, ",\"name\":[");
    for (uint32_t i = 0; i < count; i++)
        put_number(output, i, lapse_firefox_string(tables, profile->functions[i].name));
    lapse_output_text(output, "],\"resource\":[");
    for (uint32_t i = 0; i < count; i++)
        if (profile->functions[i].module == LAPSE_NONE)
            put_text(output, i, "-1");
        else
            put_number(output, i, profile->functions[i].module);
    lapse_output_text(output, "],\"source\":[");
    for (uint32_t i = 0; i < count; i++) {
        const char *file = profile->functions[i].file;
        if (file)
            put_number(output, i, lapse_strings_number(&tables->sources, file, strlen(file)));
        else
            put_text(output, i, "null");
    }
    lapse_output_text(output, "],\"lineNumber\":[");
    for (uint32_t i = 0; i < count; i++)
        if (profile->functions[i].line)
            put_number(output, i, profile->functions[i].line);
        else
            put_text(output, i, "null");
    lapse_output_char(output, ']');
    put_constant(output, "isJS", count, "false");
    put_constant(output, "relevantForJS", count, "false");
    put_constant(output, "columnNumber", count, "null");
    lapse_output_char(output, '}');
}

static void put_resources(struct lapse_firefox_tables *tables, struct lapse_output *output)
{
    const struct lapse_profile *profile = tables->profile;
    uint32_t count = profile->module_count;
    lapse_output_text(output, ",\n\"resourceTable\":{\"length\":");
    lapse_output_uint(output, count);
    lapse_output_text(output, ",\"lib\":[");
    for (uint32_t i = 0; i < count; i++)
        put_number(output, i, i);
    lapse_output_text(output, "],\"name\":[");
    for (uint32_t i = 0; i < count; i++)
        put_number(output, i,
                   lapse_firefox_string(tables, lapse_module_name(&profile->modules[i])));
    lapse_output_char(output, ']');
    put_constant(output, "host", count, "null");
    put_constant(output, "type", count, "1");
    lapse_output_text(output, "},\n\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],"
                              "\"name\":[],\"functionSize\":[]}");
}

static void put_sources(struct lapse_firefox_tables *tables, struct lapse_output *output)
{
    uint32_t count = tables->sources.count;
    lapse_output_text(output, ",\n\"sources\":{\"length\":");
    lapse_output_uint(output, count);
    lapse_output_text(output, ",\"filename\":[");
    for (uint32_t i = 0; i < count; i++)
        put_number(output, i, lapse_firefox_string(tables, tables->sources.texts[i]));
    lapse_output_char(output, ']');
    put_constant(output, "uuid", count, "null");
    lapse_output_char(output, '}');
}

void lapse_firefox_shared(struct lapse_firefox_tables *tables, struct lapse_output *output)
{
    lapse_output_char(output, '{');
    put_stacks(tables, output);
    put_frames(tables, output);
    put_functions(tables, output);
    put_resources(tables, output);
    put_sources(tables, output);
    lapse_output_text(output, ",\n\"stringArray\":[");
    for (uint32_t i = 0; i < tables->strings.count; i++) {
        if (i)
            lapse_output_text(output, ",\n");
        lapse_json_string(output, tables->strings.texts[i]);
    }
    lapse_output_text(output, "]}");
}

/* Breakpad's id: the first 16 bytes of the build id as a GUID (its first three fields in the other
 * byte order), upper case, and an age of 0. */
static void put_breakpad_id(struct lapse_output *output, const char *build_id)
{
    static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
    size_t size = strlen(build_id);
    for (size_t i = 0; i < 32 && size; i++) {
        size_t at = 2u * order[i / 2] + i % 2;
        char digit = at < size ? build_id[at] : '0';
        lapse_output_char(output, digit >= 'a' && digit <= 'f' ? (char)(digit - 32) : digit);
    }
    if (size)
        lapse_output_char(output, '0');
}

void lapse_firefox_libs(struct lapse_firefox_tables *tables, struct lapse_output *output)
{
    lapse_output_char(output, '[');
    for (uint32_t i = 0; i < tables->profile->module_count; i++) {
        const struct lapse_profile_module *module = &tables->profile->modules[i];
        const char *name = lapse_module_name(module);
        lapse_output_text(output, i ? ",\n{\"name\":" : "{\"name\":");
        lapse_json_string(output, name);
        lapse_output_text(output, ",\"path\":");
        lapse_json_string(output, module->path);
        lapse_output_text(output, ",\"debugName\":");
        lapse_json_string(output, name);
        lapse_output_text(output, ",\"debugPath\":");
        lapse_json_string(output, module->path);
        lapse_output_text(output, ",\"arch\":\"x86_64\",\"codeId\":");
        lapse_json_string(output, module->build_id);
        lapse_output_text(output, ",\"breakpadId\":\"");
        put_breakpad_id(output, module->build_id);
        lapse_output_text(output, "\"}");
    }
    lapse_output_char(output, ']');
}
