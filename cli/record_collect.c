/* SPDX-License-Identifier: MIT */
/* From the spools of many processes to one recording: end to end, in order of start, since two
 * recordings end to end are a recording. Memory is bounded; what is there is never overwritten; when
 * something fails the spools stay where they are. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "index.h"
#include "record.h"
#include "wire.h"

#define SUFFIX ".lapse"
#define NUMBERS 10000 /* files of one name that are tried */
#define HEADER_FIELD 1
#define ID_FIELD 3
#define START_FIELD 14
#define TREE_FIELD 17
#define START_BYTES 65536u

struct spool { char *name; uint64_t start_ns, offset, bytes; };
struct spools { struct spool *items; uint32_t count; };

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), end_size = strlen(end);
    return size > end_size && !strcmp(text + size - end_size, end);
}

/* Folder and name of the recording. Returns 0 or an errno. */
static int name_place(struct lapse_record_place *place, const char *output)
{
    char copy[PATH_MAX];
    *place = (struct lapse_record_place){ 0 };
    snprintf(copy, sizeof copy, "%s", output);
    if (ends_with(copy, SUFFIX))
        copy[strlen(copy) - strlen(SUFFIX)] = 0;
    char *slash = strrchr(copy, '/');
    const char *base = slash ? slash + 1 : copy;
    if (slash)
        *slash = 0;
    const char *folder = !slash ? "." : *copy ? copy : "/";
    if (!*base || strlen(output) >= PATH_MAX || strlen(base) > NAME_MAX - 32)
        return *base ? ENAMETOOLONG : EISDIR;
    if (!realpath(folder, place->folder))
        return errno;
    memcpy(place->base, base, strlen(base) + 1);
    return 0;
}

/* /dev/stdout and the like, also where a file is behind them: a recording takes the place of the file
 * of its name, and no name can take the place of a descriptor. */
static bool is_descriptor(const char *output)
{
    static const char *const starts[] = { "/dev/std", "/dev/fd/", "/proc/self/fd/" };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(output, starts[i], strlen(starts[i])))
            return true;
    return false;
}

/* What no recording can be called, or NULL. */
static const char *refusal(const char *output)
{
    struct stat status;
    const char *slash = strrchr(output, '/'), *base = slash ? slash + 1 : output;
    if (!strcmp(output, "-") || is_descriptor(output))
        return "a recording needs a file, it cannot go to standard output";
    if (!*output)
        return "the name is empty";
    if (!*base || !strcmp(base, ".") || !strcmp(base, ".."))
        return strerror(EISDIR);
    if (!stat(output, &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
        return "is a device or a pipe, and a recording needs a file";
    return NULL;
}

int lapse_record_place_make(struct lapse_record_place *place, const char *output)
{
    const char *refused = refusal(output);
    int error = refused ? EINVAL : name_place(place, output);
    if (!error) {
        if (snprintf(place->spools, PATH_MAX, "%s/.lapse-run-XXXXXX", place->folder) >= PATH_MAX - NAME_MAX)
            error = ENAMETOOLONG;
        else if (!mkdtemp(place->spools))
            error = errno;
    }
    if (error) {
        lapse_complain("record", "%s: %s; the command was not run", output, refused ? refused : strerror(error));
        return -error;
    }
    /* Servers that are started by root write their spool as another user. That user can make files
     * here, but neither list the folder nor touch those of others. */
    if (!geteuid())
        chmod(place->spools, 01733);
    lapse_record_rings_make(place);
    return 0;
}

int lapse_record_place_find(struct lapse_record_place *place, const char *folder, const char *output)
{
    char path[PATH_MAX];
    int error = name_place(place, output);
    if (error)
        return -error;
    if (!realpath(folder, place->spools) || snprintf(path, sizeof path, "%s/rings", place->spools) >= PATH_MAX)
        return -ENOTDIR;
    ssize_t size = readlink(path, place->rings, sizeof place->rings - 1);
    return size > 0 ? 0 : -ENOTDIR;
}

struct lapse_spool_mark lapse_record_mark_of(const uint8_t *bytes, size_t got)
{
    uint64_t value = 0;
    uint32_t size, crc, field;
    struct lapse_spool_mark mark = { 0 };
    struct lapse_wire_reader header, body;
    if (got > LAPSE_CHUNK_HEAD && !lapse_chunk_head_read(bytes, &size, &crc)) {
        struct lapse_wire_reader chunk = { bytes + LAPSE_CHUNK_HEAD, bytes + got };
        if (lapse_wire_next(&chunk, &field, &value, &header) == 1 && field == HEADER_FIELD)
            while (lapse_wire_next(&header, &field, &value, &body) == 1) {
                if (field == START_FIELD)
                    mark.start_ns = value;
                else if (field == ID_FIELD && body.end - body.at == sizeof mark.session_id)
                    memcpy(mark.session_id, body.at, sizeof mark.session_id);
            }
    }
    return mark;
}

struct lapse_spool_mark lapse_record_spool_mark(int fd)
{
    uint8_t *bytes = malloc(START_BYTES);
    ssize_t got = bytes ? pread(fd, bytes, START_BYTES, 0) : 0;
    struct lapse_spool_mark mark = lapse_record_mark_of(bytes, got > 0 ? (size_t)got : 0);
    free(bytes);
    return mark;
}

int lapse_record_open_spool(int folder, const char *name, int flags, struct stat *status)
{
    int fd = openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && (fstat(fd, status) || !S_ISREG(status->st_mode) || status->st_nlink != 1)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool is_living(const struct lapse_record_place *place, const struct lapse_spool_mark *mark)
{
    for (uint32_t i = 0; i < place->living_count; i++)
        if (!memcmp(place->living[i], mark->session_id, sizeof mark->session_id))
            return true;
    return false;
}

static int add_part(struct spools *spools, const char *name, const struct lapse_shared_part *part)
{
    struct spool *items = lapse_array_grow(spools->items, spools->count, sizeof *items);
    char *copy = strdup(name);
    if (items)
        spools->items = items;
    if (!items || !copy) {
        free(copy);
        return -ENOMEM;
    }
    items[spools->count++] = (struct spool){ copy, part->mark.start_ns, part->offset, part->bytes };
    return 0;
}

static int add_spool(struct spools *spools, const struct lapse_record_place *place, int folder,
                     const char *name)
{
    struct stat status;
    struct lapse_shared_part part = { 0 };
    int fd = lapse_record_open_spool(folder, name, O_RDONLY, &status), error = 0;
    if (fd < 0)
        return 0;
    if (lapse_record_is_shared(name)) {
        for (uint64_t at = 0; !error && lapse_record_shared_next(fd, &at, &part);)
            error = add_part(spools, name, &part);
    } else if (status.st_size) {
        part.mark = lapse_record_spool_mark(fd);
        part.bytes = (uint64_t)status.st_size;
        error = is_living(place, &part.mark) ? 0 : add_part(spools, name, &part);
    }
    close(fd);
    return error;
}

static int by_start(const void *a, const void *b)
{
    const struct spool *left = a, *right = b;
    if (left->start_ns != right->start_ns)
        return left->start_ns < right->start_ns ? -1 : 1;
    return strcmp(left->name, right->name);
}

static int list_spools(struct spools *spools, const struct lapse_record_place *place)
{
    DIR *folder = opendir(place->spools);
    int error = folder ? 0 : -errno;
    for (struct dirent *entry; !error && (entry = readdir(folder));)
        if (ends_with(entry->d_name, SUFFIX))
            error = add_spool(spools, place, dirfd(folder), entry->d_name);
    if (folder)
        closedir(folder);
    if (spools->count)
        qsort(spools->items, spools->count, sizeof *spools->items, by_start);
    return error;
}

static void free_spools(struct spools *spools)
{
    for (uint32_t i = 0; i < spools->count; i++)
        free(spools->items[i].name);
    free(spools->items);
}

static int copy_bytes(int from, int to, uint64_t count, uint64_t *copied)
{
    char bytes[65536];
    while (count) {
        /* The kernel copies where it can; what it cannot, in our memory. */
        ssize_t got = copy_file_range(from, NULL, to, NULL, count < 1u << 30 ? count : 1u << 30, 0);
        if (got < 0 && (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
            got = read(from, bytes, count < sizeof bytes ? count : sizeof bytes);
            for (ssize_t done = 0, wrote; got > 0 && done < got; done += wrote)
                if ((wrote = write(to, bytes + done, (size_t)(got - done))) < 0)
                    return -errno;
        }
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got ? -errno : 0;
        *copied += (uint64_t)got;
        count -= (uint64_t)got;
    }
    return 0;
}

/* Behind the first session, of which it becomes a part. */
static int add_tree(struct lapse_record_place *place, int to)
{
    uint8_t bytes[LAPSE_CHUNK_HEAD + 32];
    struct lapse_wire wire = { .bytes = bytes + LAPSE_CHUNK_HEAD, .capacity = sizeof bytes - LAPSE_CHUNK_HEAD };
    if (!place->tree_ns)
        return 0;
    lapse_wire_uint(&wire, TREE_FIELD, place->tree_ns);
    lapse_chunk_head(bytes, wire.bytes, (uint32_t)wire.size);
    ssize_t size = (ssize_t)(LAPSE_CHUNK_HEAD + wire.size), wrote = write(to, bytes, (size_t)size);
    place->bytes += (uint64_t)size;
    return wrote == size ? 0 : wrote < 0 ? -errno : -EIO;
}

/* The only spool is the recording. */
static int add_tree_to(struct lapse_record_place *place, const char *path)
{
    int to = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    int error = to < 0 ? -errno : add_tree(place, to);
    if (to >= 0 && close(to) && !error)
        error = -errno;
    return error;
}

/* All spools into one new file of the private folder. */
static int concatenate(struct lapse_record_place *place, const struct spools *spools, char path[PATH_MAX])
{
    struct stat status;
    if (snprintf(path, PATH_MAX, "%s/recording", place->spools) >= PATH_MAX)
        return -ENAMETOOLONG;
    int folder = open(place->spools, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = folder < 0 || to < 0 ? -errno : 0;
    for (uint32_t i = 0; i < spools->count && !error; i++) {
        int from = lapse_record_open_spool(folder, spools->items[i].name, O_RDONLY, &status);
        if (from < 0)
            continue;
        error = lseek(from, (off_t)spools->items[i].offset, SEEK_SET) < 0
                    ? -errno : copy_bytes(from, to, spools->items[i].bytes, &place->bytes);
        if (!i && !error)
            error = add_tree(place, to);
        close(from);
    }
    if (folder >= 0)
        close(folder);
    if (to >= 0 && close(to) && !error)
        error = -errno;
    if (error)
        unlink(path);
    return error;
}

/* Give the finished file its name, or the name with the first number that is free. */
static int publish(struct lapse_record_place *place, const char *finished)
{
    for (unsigned number = 0; number < NUMBERS; number++) {
        char suffix[32];
        snprintf(suffix, sizeof suffix, number ? ".%u" SUFFIX : SUFFIX, number);
        if (snprintf(place->path, PATH_MAX, "%s/%s%s", place->folder, place->base, suffix) >= PATH_MAX)
            return -ENAMETOOLONG;
        /* Both fail when the name is taken; not every file system can do the first. */
        if (!renameat2(AT_FDCWD, finished, AT_FDCWD, place->path, RENAME_NOREPLACE))
            return 0;
        if (errno == EINVAL && !link(finished, place->path))
            return unlink(finished), 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

/* They are in the recording; the folder stays for others. */
static void remove_spools(const struct lapse_record_place *place, const struct spools *spools)
{
    int folder = open(place->spools, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (uint32_t i = 0; i < spools->count && folder >= 0; i++)
        unlinkat(folder, spools->items[i].name, 0);
    if (folder >= 0)
        close(folder);
}

int lapse_record_collect(struct lapse_record_place *place)
{
    struct spools spools = { 0 };
    char finished[PATH_MAX] = "";
    int error = lapse_record_rings_take(place);
    if (place->living_count)
        lapse_record_shared_take(place);
    if (!error)
        error = list_spools(&spools, place);
    place->spool_count = spools.count;
    place->path[0] = 0;
    if (!error && spools.count == 1 && !lapse_record_is_shared(spools.items[0].name)) {
        if (snprintf(finished, sizeof finished, "%s/%s", place->spools, spools.items[0].name) >= PATH_MAX)
            error = -ENAMETOOLONG;
        place->bytes = spools.items[0].bytes;
        if (!error)
            error = add_tree_to(place, finished);
    } else if (!error && spools.count) {
        error = concatenate(place, &spools, finished);
    }
    if (!error && spools.count)
        error = publish(place, finished);
    if (!error && place->living_count)
        remove_spools(place, &spools);
    free_spools(&spools);
    if (error) {
        lapse_complain("record", "%s/%s" SUFFIX ": %s; what was recorded stays in %s", place->folder,
                       place->base, strerror(-error), place->spools);
        place->path[0] = 0;
    }
    return error;
}

void lapse_record_place_remove(struct lapse_record_place *place)
{
    lapse_record_rings_remove(place);
    if (place->living_count)
        return;
    DIR *folder = opendir(place->spools);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(place->spools);
}

void lapse_record_tell_living(const struct lapse_record_place *place, const char *command)
{
    if (place->living_count)
        lapse_complain(command, "%u process%s still run%s and go%s on recording into %s; `lapse recover "
                       "%s` makes a recording of that once %s ended", place->living_count,
                       place->living_count == 1 ? "" : "es", place->living_count == 1 ? "s" : "",
                       place->living_count == 1 ? "es" : "", place->spools, place->spools,
                       place->living_count == 1 ? "it has" : "they have");
}
