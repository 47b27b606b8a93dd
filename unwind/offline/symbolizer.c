/* SPDX-License-Identifier: MIT */
/* Sessions and modules to images: which file stands behind an address of a recording, and the
 * interface that the profile builder calls. */
#include "offline.h"

#include "array.h"
#include "image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

enum { CACHE_BYTES = 256 << 20 };

struct known_image {
    char *path;
    struct lapse_build_id build_id;
    struct lapse_image *image; /* NULL: nothing was found, and will not be looked for again */
};

struct lapse_offline {
    struct lapse_offline_options options;
    struct lapse_image_services services;
    struct lapse_symbolizer symbolizer;
    struct known_image *images;
    size_t image_count, image_capacity;
    size_t last; /* image that was asked for last */
    char **notes;
    size_t note_count, note_capacity;
};

static uint32_t frames_of(void *context, const struct lapse_session *session, uint64_t pc,
                          bool is_return, uint64_t time_ns, struct lapse_inline_frame *frames,
                          uint32_t max);

static const char *show(void *context, const char *system_name);

int lapse_offline_create(struct lapse_offline **result, const struct lapse_offline_options *options)
{
    struct lapse_offline *offline = calloc(1, sizeof *offline);
    *result = NULL;
    if (!offline)
        return -ENOMEM;
    offline->options = *options;
    offline->services.options = &offline->options;
    offline->services.cache.limit = options->cache_bytes ? options->cache_bytes : CACHE_BYTES;
    offline->services.names = lapse_names_create(options->demangle);
    offline->symbolizer = (struct lapse_symbolizer){ frames_of, offline, show };
    if (!offline->services.names) {
        free(offline);
        return -ENOMEM;
    }
    *result = offline;
    return 0;
}

void lapse_offline_destroy(struct lapse_offline *offline)
{
    if (!offline)
        return;
    for (size_t i = 0; i < offline->image_count; i++) {
        lapse_image_destroy(offline->images[i].image);
        free(offline->images[i].path);
    }
    for (size_t i = 0; i < offline->note_count; i++)
        free(offline->notes[i]);
    free(offline->images);
    free(offline->notes);
    lapse_names_destroy(offline->services.names);
    free(offline);
}

const struct lapse_symbolizer *lapse_offline_symbolizer(struct lapse_offline *offline)
{
    return &offline->symbolizer;
}

uint32_t lapse_offline_note_count(const struct lapse_offline *offline)
{
    return (uint32_t)offline->note_count;
}

const char *lapse_offline_note(const struct lapse_offline *offline, uint32_t index)
{
    return offline->notes[index];
}

static void add_note(struct lapse_offline *offline, const char *text)
{
    for (size_t i = 0; i < offline->note_count; i++)
        if (!strcmp(offline->notes[i], text))
            return;
    if (!*text
        || !lapse_array_room(&offline->notes, offline->note_count, &offline->note_capacity,
                             sizeof *offline->notes))
        return;
    char *note = strdup(text);
    if (note)
        offline->notes[offline->note_count++] = note;
}

/* The running kernel's vDSO, which is the recorded one when the build ids agree. */
static void find_vdso(struct lapse_module_files *files, const struct lapse_build_id *wanted)
{
    const Elf64_Ehdr *header = (const void *)getauxval(AT_SYSINFO_EHDR);
    if (!header || !wanted->size)
        return;
    size_t size = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    uint8_t *bytes = malloc(size);
    if (!bytes)
        return;
    memcpy(bytes, header, size);
    if (lapse_object_file_adopt(&files->main, "[vdso]", bytes, size))
        return;
    if (!lapse_build_id_equal(&files->main->build_id, wanted)) {
        lapse_object_file_close(files->main);
        files->main = NULL;
    }
    files->debug = files->main;
}

/* Linux shows the file of a replaced library so; with a build id its name may still lead to it. */
static char *module_path(const char *path)
{
    static const char suffix[] = " (deleted)";
    size_t length = strlen(path), tail = sizeof suffix - 1;
    return length > tail && !strcmp(path + length - tail, suffix) ? strndup(path, length - tail)
                                                                  : strdup(path);
}

static struct known_image *open_image(struct lapse_offline *offline, const char *path,
                                      const struct lapse_build_id *build_id,
                                      uint64_t until_realtime_ns)
{
    struct lapse_module_files files = { 0 };
    char note[2048] = "", *usable = module_path(path);
    struct known_image known = { strdup(path), *build_id, NULL };
    if (!usable || !known.path
        || !lapse_array_room(&offline->images, offline->image_count, &offline->image_capacity,
                             sizeof known)) {
        free(usable);
        free(known.path);
        return NULL;
    }
    if (!strcmp(usable, "[vdso]"))
        find_vdso(&files, build_id);
    else if (usable[0] != '[')
        lapse_debug_files_find(&files, usable, build_id, until_realtime_ns, &offline->options, note,
                               sizeof note);
    if (files.debug && lapse_object_file_is_packed(files.debug, ".debug_info"))
        snprintf(note, sizeof note, "%s: debug information is compressed in a way that this libelf cannot read; names only",
                 files.debug->path);
    add_note(offline, note);
    free(usable);
    if (files.main || files.debug)
        known.image = lapse_image_create(&files, &offline->services);
    offline->images[offline->image_count++] = known;
    return &offline->images[offline->image_count - 1];
}

static const char *show(void *context, const char *system_name)
{
    struct lapse_offline *offline = context;
    const char *name = lapse_names_symbol(offline->services.names, system_name).name;
    return name ? name : system_name;
}

static bool is_known(const struct known_image *known, const char *path,
                     const struct lapse_build_id *id)
{
    return lapse_build_id_equal(&known->build_id, id) && !strcmp(known->path, path);
}

static struct lapse_image *image_of(struct lapse_offline *offline, const char *path,
                                    const struct lapse_build_id *id, uint64_t until_realtime_ns)
{
    if (offline->last < offline->image_count && is_known(&offline->images[offline->last], path, id))
        return offline->images[offline->last].image;
    for (size_t i = 0; i < offline->image_count; i++) {
        if (is_known(&offline->images[i], path, id)) {
            offline->last = i;
            return offline->images[i].image;
        }
    }
    struct known_image *known = open_image(offline, path, id, until_realtime_ns);
    return known ? known->image : NULL;
}

static struct lapse_image *image_of_module(struct lapse_offline *offline,
                                           const struct lapse_session *session,
                                           const struct lapse_module *module)
{
    struct lapse_build_id id = { .size = module->build_id_size <= 32 ? module->build_id_size : 0 };
    memcpy(id.bytes, module->build_id, id.size);
    return module->path ? image_of(offline, module->path, &id, session->start_realtime_ns) : NULL;
}

static uint32_t frames_in(struct lapse_offline *offline, struct lapse_image *image, uint64_t address,
                          struct lapse_inline_frame *frames, uint32_t max)
{
    char note[2048];
    uint32_t count = lapse_image_frames(image, address, frames, max);
    const char *cut = lapse_image_cut_path(image);
    if (cut) {
        snprintf(note, sizeof note, "%s: became shorter while it was read; nothing of it is believed", cut);
        add_note(offline, note);
    }
    return count;
}

static uint32_t frames_of(void *context, const struct lapse_session *session, uint64_t pc,
                          bool is_return, uint64_t time_ns, struct lapse_inline_frame *frames,
                          uint32_t max)
{
    struct lapse_offline *offline = context;
    uint64_t address = pc - is_return;
    const struct lapse_module *module = lapse_session_module(session, address, time_ns);
    struct lapse_image *image = module ? image_of_module(offline, session, module) : NULL;
    uint32_t count = image ? frames_in(offline, image, address - module->bias, frames, max) : 0;
    return count && frames[0].name ? count : 0;
}

bool lapse_offline_find_function(struct lapse_offline *offline, const struct lapse_session *session,
                                 uint64_t pc, uint64_t time_ns,
                                 struct lapse_offline_function *function)
{
    const struct lapse_module *module = lapse_session_module(session, pc, time_ns);
    struct lapse_image *image = module ? image_of_module(offline, session, module) : NULL;
    if (!image || !lapse_image_function(image, pc - module->bias, function))
        return false;
    if (function->size)
        function->start += module->bias;
    return true;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static struct lapse_image *image_of_file(struct lapse_offline *offline, const char *path,
                                         const char *build_id)
{
    struct lapse_build_id id = { 0 };
    for (const char *at = build_id; at && at[0] && at[1] && id.size < sizeof id.bytes; at += 2) {
        int high = hex_digit(at[0]), low = hex_digit(at[1]);
        if (high < 0 || low < 0)
            return NULL;
        id.bytes[id.size++] = (uint8_t)(high << 4 | low);
    }
    return image_of(offline, path, &id, 0);
}

int lapse_offline_file_frames(struct lapse_offline *offline, const char *path, const char *build_id,
                              uint64_t address, struct lapse_inline_frame *frames, uint32_t max,
                              uint32_t *count)
{
    struct lapse_image *image = image_of_file(offline, path, build_id);
    *count = image ? frames_in(offline, image, address, frames, max) : 0;
    return image ? 0 : -ENOENT;
}

bool lapse_offline_file_function(struct lapse_offline *offline, const char *path,
                                 const char *build_id, uint64_t address,
                                 struct lapse_offline_function *function)
{
    struct lapse_image *image = image_of_file(offline, path, build_id);
    return image && lapse_image_function(image, address, function);
}

const char *lapse_offline_file_code(struct lapse_offline *offline, const char *path,
                                    const char *build_id)
{
    struct lapse_image *image = image_of_file(offline, path, build_id);
    return image ? lapse_image_code_path(image) : NULL;
}
