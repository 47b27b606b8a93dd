/* SPDX-License-Identifier: MIT */
/* Reader of recordings: opening, which is one pass over the chunks. They come from chunk_file.c, are
 * unpacked by chunk_unpack.c and taken in by recording_contents.c; samples are
 * streamed by recording_samples.c. Called by profile.c and the commands. Offline only. */
#include "recording.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recording_source.h"

#define CHUNK_MEMORY_MAX (512u << 20) /* one unpacked chunk of 1 MiB needs far less */
#define MEMORY_BLOCK (1u << 20)

struct lapse_memory_block {
    struct lapse_memory_block *next;
    size_t capacity;
    max_align_t bytes[];
};

/* protobuf-c asks for very many small pieces and gives all of them back at once. */
static void *chunk_memory_alloc(void *context, size_t size)
{
    struct lapse_chunk_memory *memory = context;
    struct lapse_memory_block *block = memory->blocks;
    if (size > CHUNK_MEMORY_MAX)
        return NULL;
    size = (size + 15) & ~(size_t)15;
    if (!block || block->capacity - memory->used < size) {
        size_t capacity = size > MEMORY_BLOCK ? size : MEMORY_BLOCK;
        if (memory->total + capacity > CHUNK_MEMORY_MAX ||
            !(block = malloc(sizeof *block + capacity)))
            return NULL;
        *block = (struct lapse_memory_block){ .next = memory->blocks, .capacity = capacity };
        memory->blocks = block;
        memory->total += capacity;
        memory->used = 0;
    }
    memory->used += size;
    return (char *)block->bytes + memory->used - size;
}

static void chunk_memory_free(void *context, void *piece)
{
    (void)context;
    (void)piece;
}

/* Keeps one block for the next chunk. */
static void chunk_memory_reset(struct lapse_chunk_memory *memory, bool all)
{
    while (memory->blocks && (all || memory->blocks->next)) {
        struct lapse_memory_block *next = memory->blocks->next;
        free(memory->blocks);
        memory->blocks = next;
    }
    memory->used = 0;
    memory->total = memory->blocks ? memory->blocks->capacity : 0;
}

int lapse_recording_next_chunk(struct lapse_recording *recording, struct lapse_damage *damage,
                               Lapse__Chunk **chunk, bool *gap)
{
    struct lapse_recording_source *source = recording->source;
    ProtobufCAllocator allocator = { chunk_memory_alloc, chunk_memory_free, &source->memory };
    bool lost = false;
    for (;;) {
        const uint8_t *body;
        uint32_t size;
        int result = lapse_chunk_file_next(&source->file, damage, &body, &size, gap);
        *gap |= lost;
        if (result <= 0)
            return result;
        chunk_memory_reset(&source->memory, false);
        *chunk = lapse_chunk_unpack(&allocator, body, size);
        if (*chunk)
            return 1;
        damage->bad_chunks++; /* a right checksum over what is no Chunk */
        lost = true;
    }
}

int lapse_recording_met_session(struct lapse_recording *recording, uint32_t session)
{
    uint64_t tag = recording->source->states[session].tag;
    return tag ? lapse_map_put(&recording->source->tags, tag, session) : 0;
}

uint32_t lapse_recording_session_of(const struct lapse_recording *recording, uint32_t current,
                                    const Lapse__Chunk *chunk)
{
    uint32_t found;
    if (!chunk->session ||
        (current != LAPSE_INDEX_NONE && recording->source->states[current].tag == chunk->session))
        return current;
    return lapse_map_get(&recording->source->tags, chunk->session, &found) ? found
                                                                           : LAPSE_INDEX_NONE;
}

/* A chunk of a session whose beginning is lost. Its node ids are not known unless it says them. */
static int add_headless_session(struct lapse_recording *recording, const Lapse__Chunk *chunk)
{
    struct lapse_session *session = lapse_recording_add_session(recording);
    if (!session)
        return -ENOMEM;
    struct lapse_session_state *state = &recording->source->states[recording->session_count - 1];
    state->tag = chunk->session;
    state->unsure = true;
    return lapse_recording_add_note(session, "the beginning of this session is lost");
}

static int take_chunk(struct lapse_recording *recording, uint32_t *current,
                      const Lapse__Chunk *chunk, bool gap)
{
    struct lapse_sample_pass pass = { .recording = recording, .damage = &recording->damage };
    uint32_t owner = chunk->header ? LAPSE_INDEX_NONE
                                   : lapse_recording_session_of(recording, *current, chunk);
    int error = 0;
    if (owner == LAPSE_INDEX_NONE) {
        error = chunk->header ? lapse_recording_take_header(recording, chunk->header)
                              : add_headless_session(recording, chunk);
        owner = recording->session_count - 1;
        if (!error)
            error = lapse_recording_met_session(recording, owner);
    } else if (gap) {
        recording->source->states[owner].unsure = true;
    }
    *current = owner;
    if (!error)
        error = lapse_recording_take_contents(recording, owner, chunk);
    if (!error && chunk->n_raw_samples)
        recording->source->states[owner].has_raw = true;
    return error ? error : lapse_recording_chunk_samples(&pass, owner, chunk);
}

static int by_start(const void *a, const void *b)
{
    const struct lapse_module *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return (left->loaded_ns > right->loaded_ns) - (left->loaded_ns < right->loaded_ns);
}

/* Of equals, the one that was written last comes last and is found first. */
static int by_address(const void *a, const void *b)
{
    const struct lapse_symbol *left = a, *right = b;
    if (left->address != right->address)
        return left->address < right->address ? -1 : 1;
    if (left->from_ns != right->from_ns)
        return left->from_ns < right->from_ns ? -1 : 1;
    return left->reach < right->reach ? -1 : 1;
}

static int by_info_address(const void *a, const void *b)
{
    const struct lapse_address_info *left = a, *right = b;
    if (left->address != right->address)
        return left->address < right->address ? -1 : 1;
    return left->is_return - right->is_return;
}

static uint64_t symbol_end(const struct lapse_symbol *symbol)
{
    uint64_t size = symbol->size ? symbol->size : 1;
    return symbol->address + size < symbol->address ? UINT64_MAX : symbol->address + size;
}

/* Sort what is looked up by address. The reach of an item is the furthest end up to it: a search to
 * the left stops where it is passed. */
static void finish_session(struct lapse_session *session)
{
    uint64_t reach = 0;
    if (session->module_count)
        qsort(session->modules, session->module_count, sizeof *session->modules, by_start);
    for (uint32_t i = 0; i < session->module_count; i++) {
        reach = session->modules[i].end > reach ? session->modules[i].end : reach;
        session->modules[i].reach = reach;
    }
    if (session->symbol_count)
        qsort(session->symbols, session->symbol_count, sizeof *session->symbols, by_address);
    reach = 0;
    for (uint32_t i = 0; i < session->symbol_count; i++) {
        uint64_t end = symbol_end(&session->symbols[i]);
        reach = end > reach ? end : reach;
        session->symbols[i].reach = reach;
    }
    if (session->address_count)
        qsort(session->addresses, session->address_count, sizeof *session->addresses,
              by_info_address);
}

static int read_all(struct lapse_recording *recording)
{
    uint32_t current = LAPSE_INDEX_NONE;
    Lapse__Chunk *chunk;
    bool gap;
    int result;
    while ((result = lapse_recording_next_chunk(recording, &recording->damage, &chunk, &gap)) > 0) {
        result = take_chunk(recording, &current, chunk, gap);
        if (result)
            return result;
    }
    if (result)
        return result;
    for (uint32_t i = 0; i < recording->session_count; i++)
        finish_session(&recording->sessions[i]);
    return lapse_recording_intern_raw(recording);
}

bool lapse_recording_is(const void *bytes, size_t size)
{
    return size >= 4 && !memcmp(bytes, "LAPC", 4);
}

static int open_fd(struct lapse_recording *recording, int fd, const char *name)
{
    recording->source = calloc(1, sizeof *recording->source);
    if (!recording->source) {
        close(fd);
        return -ENOMEM;
    }
    int error = lapse_chunk_file_open(&recording->source->file, fd);
    if (!error && !(recording->path = strdup(name)))
        error = -ENOMEM;
    return error ? error : read_all(recording);
}

/* Of a file without a session. */
static const char *why_nothing(const struct lapse_chunk_file *file)
{
    char bytes[4];
    if (!file->size)
        return "the file is empty";
    if (pread(file->fd, bytes, sizeof bytes, 0) == sizeof bytes &&
        lapse_recording_is(bytes, sizeof bytes))
        return "begins as a lapse recording, but its beginning is damaged or cut off";
    return "not a lapse recording";
}

int lapse_recording_open_fd(struct lapse_recording **out, int fd, const char *name, char *error,
                            size_t error_size)
{
    struct lapse_recording *recording = calloc(1, sizeof *recording);
    int result = -ENOMEM;
    *out = NULL;
    if (recording)
        result = open_fd(recording, fd, name);
    else
        close(fd);
    if (!result && !recording->session_count) {
        result = -EBADMSG;
        snprintf(error, error_size, "%s: %s", name, why_nothing(&recording->source->file));
    } else if (result) {
        snprintf(error, error_size, "%s: %s", name, strerror(-result));
    } else {
        lapse_chunk_file_idle(&recording->source->file);
        *out = recording;
        return 0;
    }
    lapse_recording_close(recording);
    return result;
}

int lapse_recording_open(struct lapse_recording **recording, const char *path, char *error,
                         size_t error_size)
{
    int fd = lapse_open_seekable(path);
    if (fd >= 0)
        return lapse_recording_open_fd(recording, fd, path, error, error_size);
    *recording = NULL;
    snprintf(error, error_size, "%s: %s", path, strerror(-fd));
    return fd;
}

uint64_t lapse_recording_progress(const struct lapse_recording *recording, uint64_t *total)
{
    *total = recording->source->file.size;
    return recording->source->file.offset;
}

void lapse_recording_close(struct lapse_recording *recording)
{
    if (!recording)
        return;
    for (uint32_t i = 0; i < recording->session_count; i++)
        lapse_recording_free_session(&recording->sessions[i], &recording->source->states[i]);
    if (recording->source) {
        lapse_chunk_file_close(&recording->source->file);
        chunk_memory_reset(&recording->source->memory, true);
        lapse_map_free(&recording->source->tags);
        free(recording->source->states);
    }
    free(recording->sessions);
    free(recording->source);
    free(recording->path);
    free(recording);
}
