/* SPDX-License-Identifier: MIT */
/* From tables of run-time code to Symbol and AddressInfo of the addresses that were sampled
 * (record_jit_names.h). Code of files is left alone: their own symbols name it. */
#include "record_jit_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call_tree.h"
#include "heap.h"
#include "index.h"
#include "jit_code.h"
#include "recording.h"
#include "symbols.h"

enum { FIELD_SESSION = 15, TURNS_MAX = 64 };

struct place { uint64_t address; bool is_return; };

struct work {
    const struct lapse_session *session;
    struct lapse_jit_code code;
    struct lapse_map seen; /* places */
    struct place *places;
    uint32_t count;
    struct lapse_wire wire;
    int fd, error;
};

static bool is_run_time_code(const struct lapse_session *session, uint64_t address)
{
    bool covered = false;
    for (uint32_t i = 0; i < session->module_count; i++) {
        const struct lapse_module *module = &session->modules[i];
        if (address < module->start || address >= module->end)
            continue;
        covered = true;
        if (lapse_is_run_time_code(module->path))
            return true;
    }
    return !covered;
}

static void add_place(struct work *work, uint64_t address, bool is_return)
{
    uint32_t known;
    uint64_t key = address << 1 | is_return;
    if (work->error || address < 4096 || lapse_map_get(&work->seen, key, &known) ||
        !is_run_time_code(work->session, address - is_return))
        return;
    struct place *places = lapse_array_grow(work->places, work->count, sizeof *places);
    if (places)
        work->places = places;
    if (!places || lapse_map_put(&work->seen, key, work->count))
        work->error = -ENOMEM;
    else
        places[work->count++] = (struct place){ address, is_return };
}

static int add_sample(void *context, const struct lapse_recorded_sample *sample)
{
    struct work *works = context;
    add_place(&works[sample->session], sample->leaf_pc, false);
    return works[sample->session].error;
}

static void add_nodes(struct work *work)
{
    uint32_t count;
    const struct lapse_call_node *nodes = lapse_call_tree_nodes(work->session->tree, &count);
    for (uint32_t i = 1; i < count; i++) {
        add_place(work, nodes[i].function, false);
        add_place(work, nodes[i].call_site, true);
    }
}

static int write_all(int fd, const void *bytes, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t wrote = write(fd, (const char *)bytes + done, size - done);
        if (wrote < 0 && errno != EINTR)
            return -errno;
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return 0;
}

static void flush(struct work *work)
{
    uint8_t head[LAPSE_CHUNK_HEAD];
    struct lapse_wire *wire = &work->wire;
    uint64_t tag;
    if (wire->size && !work->error) {
        memcpy(&tag, work->session->session_id, sizeof tag);
        lapse_wire_fixed64(wire, FIELD_SESSION, tag);
        lapse_chunk_head(head, wire->bytes, (uint32_t)wire->size);
        work->error = wire->overflow ? -EOVERFLOW : write_all(work->fd, head, sizeof head);
        if (!work->error)
            work->error = write_all(work->fd, wire->bytes, wire->size);
    }
    wire->size = 0;
}

/* What the process itself has said at its end stays: a perf map's last word, a jitdump file's at a time. */
static bool is_known(const struct work *work, const struct lapse_jit_load *load, uint64_t address)
{
    const struct lapse_symbol *known = lapse_session_symbol(
        work->session, address, load->from_ns ? load->from_ns : UINT64_MAX - 1, NULL);
    return known && (!load->from_ns || known->from_ns == load->from_ns);
}

static void name_place(struct work *work, const struct place *place)
{
    char name[LAPSE_JIT_NAME_MAX + 1];
    struct lapse_jit_load *loads[TURNS_MAX];
    uint64_t address = place->address - place->is_return;
    uint32_t count = lapse_jit_code_all(&work->code, address, loads, TURNS_MAX);
    /* Without times the last one is right; with them each is, at its time. */
    for (uint32_t i = count && !loads[count - 1]->from_ns ? count - 1 : 0; i < count; i++) {
        uint32_t size = lapse_demangle(name, sizeof name - 1, loads[i]->name, LAPSE_DEMANGLE_FULL);
        name[size] = 0;
        if (work->wire.capacity - work->wire.size < 2 * LAPSE_JIT_PUT_MAX)
            flush(work);
        if (!is_known(work, loads[i], address))
            lapse_jit_put_symbol(&work->wire, &work->code, loads[i], address, name);
        if (count == 1 && !lapse_session_address(work->session, place->address, place->is_return))
            lapse_jit_put_line(&work->wire, &work->code, loads[i], place->address, place->is_return, name);
    }
}

static int by_address(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    uint64_t left = x->address - x->is_return, right = y->address - y->is_return;
    return left < right ? -1 : left > right;
}

static int name_session(struct work *work)
{
    work->wire = (struct lapse_wire){ .bytes = malloc(LAPSE_CHUNK_MAX), .capacity = LAPSE_CHUNK_MAX - 16 };
    if (!work->wire.bytes)
        return -ENOMEM;
    if (work->count)
        qsort(work->places, work->count, sizeof *work->places, by_address);
    for (uint32_t i = 0; i < work->count && !work->error; i++)
        name_place(work, &work->places[i]);
    flush(work);
    free(work->wire.bytes);
    return work->error;
}

static void free_work(struct work *work)
{
    if (work->code.allocator)
        lapse_jit_code_free(&work->code);
    lapse_map_free(&work->seen);
    free(work->places);
}

static int read_tables(struct work *work, int map, int dump)
{
    struct lapse_jit_source map_file = lapse_jit_file(&map), dump_file = lapse_jit_file(&dump);
    work->code.allocator = &lapse_heap;
    int error = dump >= 0 ? lapse_jit_code_read_dump(&work->code, &dump_file) : 0;
    /* What a jitdump file says is better: it has times. */
    if (error == -EBADMSG || !work->code.load_count) {
        lapse_jit_code_free(&work->code);
        error = map >= 0 ? lapse_jit_code_read_map(&work->code, &map_file) : 0;
    }
    return error == -EBADMSG ? 0 : error;
}

static int name_recording(struct lapse_recording *recording, int fd, int map, int dump)
{
    struct work *works = calloc(recording->session_count + 1, sizeof *works);
    int error = works ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < recording->session_count && !error; i++) {
        works[i].session = &recording->sessions[i];
        works[i].fd = fd;
        add_nodes(&works[i]);
        error = works[i].error;
    }
    if (!error)
        error = lapse_recording_each_sample(recording, add_sample, works);
    for (uint32_t i = 0; works && i < recording->session_count; i++) {
        if (!error && works[i].count)
            error = read_tables(&works[i], map, dump);
        if (!error && works[i].count)
            error = name_session(&works[i]);
        free_work(&works[i]);
    }
    free(works);
    return error;
}

int lapse_record_jit_names(const char *spool, int map, int dump)
{
    struct lapse_recording *recording;
    char text[256];
    int error = lapse_recording_open(&recording, spool, text, sizeof text);
    if (error)
        return error;
    int fd = open(spool, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC);
    error = fd < 0 ? -errno : name_recording(recording, fd, map, dump);
    if (fd >= 0)
        close(fd);
    lapse_recording_close(recording);
    return error;
}
