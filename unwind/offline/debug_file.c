/* SPDX-License-Identifier: MIT */
/* Every candidate is proven before it is used: by build id where both sides have one, else a
 * debuglink by its checksum. A candidate that fails is passed over; only the module itself is worth
 * a note, since its names then come from elsewhere or not at all. */
#include "debug_file.h"

#include "debuginfod.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <limits.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { MINI_MAX = 512 << 20 }; /* a .gnu_debugdata that unpacks to more is refused */

static const char *const system_dir = "/usr/lib/debug";

bool lapse_object_file_has_dwarf(const struct lapse_object_file *file)
{
    GElf_Shdr header;
    return (lapse_object_file_section(file, ".debug_info", &header) && header.sh_type != SHT_NOBITS)
           || (lapse_object_file_section(file, ".zdebug_info", &header)
               && header.sh_type != SHT_NOBITS);
}

static bool has_symbols(const struct lapse_object_file *file)
{
    GElf_Shdr header;
    return lapse_object_file_section(file, ".symtab", &header) && header.sh_type == SHT_SYMTAB;
}

/* Open a candidate if its build id is the wanted one. */
static struct lapse_object_file *open_same(const char *path, const struct lapse_build_id *wanted)
{
    struct lapse_object_file *file;
    if (lapse_object_file_open(&file, path))
        return NULL;
    if (lapse_build_id_equal(&file->build_id, wanted))
        return file;
    lapse_object_file_close(file);
    return NULL;
}

/* n-th folder of debug files: --debug-dir, then below --symfs, then the system's. NULL: no more. */
static const char *debug_dir(const struct lapse_offline_options *options, uint32_t n, char *to,
                             size_t size)
{
    if (n < options->debug_dir_count)
        return options->debug_dirs[n];
    n -= options->debug_dir_count;
    if (options->symfs && n == 0) {
        snprintf(to, size, "%s%s", options->symfs, system_dir);
        return to;
    }
    return n == (options->symfs ? 1 : 0) ? system_dir : NULL;
}

static struct lapse_object_file *by_build_id(const struct lapse_build_id *id, const char *suffix,
                                             const struct lapse_offline_options *options)
{
    char hex[65], dir[PATH_MAX], path[2 * PATH_MAX];
    const char *folder;
    struct lapse_object_file *file = NULL;
    if (id->size < 2)
        return NULL;
    lapse_build_id_text(id, hex);
    for (uint32_t n = 0; !file && (folder = debug_dir(options, n, dir, sizeof dir)); n++) {
        snprintf(path, sizeof path, "%s/.build-id/%.2s/%s%s", folder, hex, hex + 2, suffix);
        file = open_same(path, id);
    }
    return file;
}

static uint32_t checksum(const struct lapse_object_file *file)
{
    uint32_t crc = 0;
    for (size_t at = 0; at < file->size; at += 1 << 20) {
        size_t part = file->size - at < 1 << 20 ? file->size - at : 1 << 20;
        crc = (uint32_t)crc32(crc, file->bytes + at, (uInt)part);
        lapse_object_file_forget(file, file->bytes + at, part);
    }
    return crc;
}

/* A link to itself would be followed for ever by those who look for links in what they found; here
 * a debug file's own links are never followed, and the module itself is no answer. */
static struct lapse_object_file *open_linked(const char *path, const struct lapse_object_file *main,
                                             uint32_t crc)
{
    struct lapse_object_file *file;
    if (lapse_object_file_open(&file, path))
        return NULL;
    bool same_file = file->device == main->device && file->inode == main->inode;
    bool both = file->build_id.size && main->build_id.size;
    if (!same_file
        && (both ? lapse_build_id_equal(&file->build_id, &main->build_id) : checksum(file) == crc))
        return file;
    lapse_object_file_close(file);
    return NULL;
}

static struct lapse_object_file *by_debuglink(const struct lapse_object_file *main,
                                              const char *module_path,
                                              const struct lapse_offline_options *options)
{
    GElf_Word crc;
    const char *name = dwelf_elf_gnu_debuglink(main->elf, &crc), *folder;
    char here[PATH_MAX], dir[PATH_MAX], path[3 * PATH_MAX];
    if (!name || !*name || strchr(name, '/') || strlen(main->path) >= sizeof here)
        return NULL;
    strcpy(here, main->path);
    char *slash = strrchr(here, '/');
    if (slash)
        slash[1] = '\0';
    else
        here[0] = '\0';
    snprintf(path, sizeof path, "%s%s", here, name);
    struct lapse_object_file *file = open_linked(path, main, crc);
    if (!file) {
        snprintf(path, sizeof path, "%s.debug/%s", here, name);
        file = open_linked(path, main, crc);
    }
    const char *end = strrchr(module_path, '/');
    int length = end ? (int)(end - module_path) : 0;
    for (uint32_t n = 0; !file && (folder = debug_dir(options, n, dir, sizeof dir)); n++) {
        snprintf(path, sizeof path, "%s%.*s/%s", folder, length, module_path, name);
        file = open_linked(path, main, crc);
    }
    return file;
}

static struct lapse_object_file *from_server(const struct lapse_build_id *id,
                                             const struct lapse_offline_options *options)
{
    char *path = lapse_debuginfod_find(id, options);
    struct lapse_object_file *file = path ? open_same(path, id) : NULL;
    free(path);
    return file;
}

static struct lapse_object_file *unpack_mini(const struct lapse_object_file *main)
{
    Elf_Data *data = lapse_object_file_data(main, ".gnu_debugdata");
    lzma_stream stream = LZMA_STREAM_INIT;
    struct lapse_object_file *file = NULL;
    uint8_t *bytes = NULL;
    size_t capacity = 0;
    lzma_ret state = LZMA_OK;
    if (!data || lzma_stream_decoder(&stream, 256 << 20, 0) != LZMA_OK)
        return NULL;
    stream.next_in = data->d_buf;
    stream.avail_in = data->d_size;
    while (state == LZMA_OK && stream.total_out < MINI_MAX) {
        capacity = capacity ? 2 * capacity : 4 * data->d_size + 4096;
        uint8_t *more = realloc(bytes, capacity);
        if (!more)
            break;
        bytes = more;
        stream.next_out = bytes + stream.total_out;
        stream.avail_out = capacity - stream.total_out;
        state = lzma_code(&stream, LZMA_FINISH);
    }
    size_t size = stream.total_out;
    lzma_end(&stream);
    if (state == LZMA_STREAM_END)
        lapse_object_file_adopt(&file, main->path, bytes, size);
    else
        free(bytes);
    return file;
}

static void open_main(struct lapse_module_files *files, const char *path,
                      const struct lapse_build_id *wanted, uint64_t until_ns,
                      const struct lapse_offline_options *options, char *note, size_t size)
{
    char below[PATH_MAX];
    int error = -ENOENT;
    const char *used = path;
    if (options->symfs) {
        used = below;
        snprintf(below, sizeof below, "%s%s%s", options->symfs, path[0] == '/' ? "" : "/", path);
        error = lapse_object_file_open(&files->main, below);
    }
    /* With a build id the host's own file is as good as one below --symfs; without, it is a guess.
     */
    bool is_path = path[0] == '/'; /* else a name of an imported profile */
    if (error == -ENOENT && is_path && (!options->symfs || wanted->size)) {
        used = path;
        error = lapse_object_file_open(&files->main, path);
    }
    if (error == -ENOENT)
        return; /* a file that went away is ordinary where recordings are read elsewhere */
    if (error) {
        snprintf(note, size, "%s: %s", used,
                 error == -ENOEXEC   ? "not an x86-64 ELF file"
                 : error == -ENOTSUP ? "not a regular file"
                                     : strerror(-error));
        return;
    }
    bool other = wanted->size ? !lapse_build_id_equal(&files->main->build_id, wanted)
                              : until_ns && files->main->modified_ns > until_ns;
    if (!other)
        return;
    char had[65], has[65];
    lapse_build_id_text(wanted, had);
    lapse_build_id_text(&files->main->build_id, has);
    if (wanted->size)
        snprintf(note, size, "%s: not the file that ran (build id %s, recorded %s)", used,
                 *has ? has : "none", had);
    else
        snprintf(note, size, "%s: changed since it ran", used);
    lapse_object_file_close(files->main);
    files->main = NULL;
}

void lapse_debug_files_find(struct lapse_module_files *files, const char *path,
                            const struct lapse_build_id *wanted, uint64_t until_realtime_ns,
                            const struct lapse_offline_options *options, char *note,
                            size_t note_size)
{
    *files = (struct lapse_module_files){ 0 };
    note[0] = '\0';
    open_main(files, path, wanted, until_realtime_ns, options, note, note_size);
    const struct lapse_build_id *id = files->main ? &files->main->build_id : wanted;
    if (!files->main)
        files->main = by_build_id(wanted, "", options);
    if (files->main && lapse_object_file_has_dwarf(files->main)) {
        files->debug = files->main;
        return;
    }
    files->debug = by_build_id(id, ".debug", options);
    if (!files->debug && files->main)
        files->debug = by_debuglink(files->main, path, options);
    if (!files->debug)
        files->debug = from_server(id, options);
    if (!files->debug && files->main && !has_symbols(files->main))
        files->mini = unpack_mini(files->main);
    if (!files->debug)
        files->debug = files->main;
    if (files->debug && !files->main)
        note[0] = '\0'; /* the names are right, wherever they come from */
}

struct lapse_object_file *lapse_debug_files_alternate(Dwarf *dwarf, const char *debug_path,
                                                      const struct lapse_offline_options *options)
{
    const char *name;
    const void *bytes;
    char path[2 * PATH_MAX];
    struct lapse_build_id id = { 0 };
    ssize_t size = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &bytes);
    if (size <= 0 || size > (ssize_t)sizeof id.bytes)
        return NULL;
    memcpy(id.bytes, bytes, (size_t)size);
    id.size = (uint32_t)size;
    const char *slash = strrchr(debug_path, '/');
    int length = name[0] == '/' || !slash ? 0 : (int)(slash + 1 - debug_path);
    snprintf(path, sizeof path, "%.*s%s", length, debug_path, name);
    struct lapse_object_file *file = open_same(path, &id);
    if (!file && options->symfs && name[0] == '/') {
        snprintf(path, sizeof path, "%s%s", options->symfs, name);
        file = open_same(path, &id);
    }
    if (!file)
        file = by_build_id(&id, ".debug", options);
    return file ? file : from_server(&id, options);
}

void lapse_debug_files_close(struct lapse_module_files *files)
{
    lapse_object_file_close(files->alternate);
    lapse_object_file_close(files->mini);
    if (files->debug != files->main)
        lapse_object_file_close(files->debug);
    lapse_object_file_close(files->main);
    *files = (struct lapse_module_files){ 0 };
}
