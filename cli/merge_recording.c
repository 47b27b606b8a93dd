/* SPDX-License-Identifier: MIT */
/* Recordings as inputs of `lapse merge`. See merge_recording.h. */
#include "merge_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "folded_reader.h"
#include "format.h"

enum { SHOWN_BUILD = 8 };

static struct lapse_profile *open_profile(const char *path)
{
    struct lapse_profile_options options = { 0 };
    struct lapse_profile *profile;
    char cause[512];
    if (!lapse_profile_open(&profile, &path, 1, &options, cause, sizeof cause))
        return profile;
    lapse_complain("merge", "%s", cause);
    return NULL;
}

static bool note_build(struct lapse_merge_builds *builds, const struct lapse_profile_module *module)
{
    uint32_t before = builds->paths.count;
    uint32_t path = lapse_strings_number(&builds->paths, module->path, strlen(module->path));
    uint32_t build = lapse_strings_number(&builds->builds, module->build_id,
                                          strlen(module->build_id));
    if (path == LAPSE_INDEX_NONE || build == LAPSE_INDEX_NONE)
        return false;
    if (path == before) {
        void *grown = lapse_array_grow(builds->first, before, sizeof *builds->first);
        if (!grown)
            return false;
        builds->first = grown;
        builds->first[path] = build;
    } else if (builds->first[path] != build) {
        builds->first[path] = LAPSE_INDEX_NONE;
    }
    return true;
}

int lapse_merge_note_builds(struct lapse_merge_builds *builds, const char *path)
{
    struct lapse_profile *profile = open_profile(path);
    bool noted = true;
    if (!profile)
        return LAPSE_STATUS_BAD;
    for (uint32_t i = 0; noted && i < profile->module_count; i++)
        if (profile->modules[i].build_id[0])
            noted = note_build(builds, &profile->modules[i]);
    lapse_profile_close(profile);
    return noted ? 0 : lapse_complain("merge", "out of memory");
}

/* `name [libx.so 1a2b3c4d]` for functions of modules with several builds. */
static bool tell_builds_apart(const struct lapse_merge_builds *builds, struct lapse_profile *profile,
                              struct lapse_strings *names)
{
    for (uint32_t i = 0; i < profile->function_count; i++) {
        struct lapse_profile_function *function = &profile->functions[i];
        if (function->module == LAPSE_NONE)
            continue;
        const struct lapse_profile_module *module = &profile->modules[function->module];
        const char *slash = strrchr(module->path, '/');
        char *text;
        for (uint32_t path = 0; path < builds->paths.count; path++) {
            if (builds->first[path] != LAPSE_INDEX_NONE || !module->build_id[0] ||
                strcmp(builds->paths.texts[path], module->path))
                continue;
            if (asprintf(&text, "%s [%s %.*s]", function->name, slash ? slash + 1 : module->path,
                         SHOWN_BUILD, module->build_id) < 0)
                return false;
            function->name = lapse_strings_keep(names, text);
            free(text);
            if (!function->name)
                return false;
        }
    }
    return true;
}

static int add_text(struct lapse_folded_merge *merge, char *text, size_t size)
{
    struct lapse_folded_line line;
    struct lapse_lines lines;
    const char *cause;
    int status, error = 0;
    lapse_lines_memory(&lines, text, size);
    while (!error && (status = lapse_folded_next(&lines, &line, &cause)) == 1)
        error = lapse_folded_merge_stack(merge, line.stack, line.size, line.value);
    return error ? lapse_complain("merge", "%s", lapse_folded_merge_error(merge)) : 0;
}

int lapse_merge_add_recording(struct lapse_folded_merge *merge,
                              const struct lapse_merge_builds *builds, const char *path,
                              const char *name)
{
    struct lapse_profile *profile = open_profile(path);
    struct lapse_export_options options = { 0 };
    struct lapse_strings names = { 0 };
    char cause[512] = "out of memory", *text = NULL;
    size_t size = 0;
    int status = LAPSE_STATUS_BAD;
    if (!profile)
        return LAPSE_STATUS_BAD;
    FILE *memory = open_memstream(&text, &size);
    bool written = memory && tell_builds_apart(builds, profile, &names) &&
                   !lapse_write_folded(profile, memory, &options, cause, sizeof cause);
    if (memory && fclose(memory))
        written = false;
    if (written && !lapse_folded_merge_input(merge, name))
        status = add_text(merge, text, size);
    else
        lapse_complain("merge", "%s: %s", name, cause);
    free(text);
    lapse_profile_close(profile);
    lapse_strings_free(&names);
    return status;
}

void lapse_merge_builds_free(struct lapse_merge_builds *builds)
{
    lapse_strings_free(&builds->paths);
    lapse_strings_free(&builds->builds);
    free(builds->first);
}
