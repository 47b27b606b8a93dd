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
#include "jit_code.h"
#include "recording.h"
#include "wire.h"

enum { FIELD_SYMBOLS = 7, FIELD_ADDRESSES = 8, FIELD_SESSION = 15, TURNS_MAX = 64 };
#define ROOM_BYTES (64u << 10)

struct place { uint64_t address; bool is_return; };

struct work {
    const struct lapse_session *session;
    struct lapse_jit_code code;
    struct lapse_map seen, written; /* places; loads by number */
    struct place *places;
    uint32_t count;
    struct lapse_wire wire;
    int fd, error;
};

/* Anonymous memory, and what programs use in its place. */
static bool is_run_time_code(const struct lapse_session *session, uint64_t address)
{
    static const char *const starts[] = { "[anon", "/memfd:", "/dev/zero", "/SYSV" };
    bool covered = false;
    for (uint32_t i = 0; i < session->module_count; i++) {
        const struct lapse_module *module = &session->modules[i];
        if (address < module->start || address >= module->end)
            continue;
        covered = true;
        for (size_t k = 0; k < sizeof starts / sizeof *starts; k++)
            if (!strncmp(module->path, starts[k], strlen(starts[k])))
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

static void write_symbol(struct work *work, const struct lapse_jit_load *load)
{
    struct lapse_wire *wire = &work->wire;
    uint32_t number = (uint32_t)(load - work->code.loads), known;
    if (lapse_map_get(&work->written, number, &known))
        return;
    if (lapse_map_put(&work->written, number, 0))
        work->error = -ENOMEM;
    const struct lapse_jit_line *line = load->line_count ? &work->code.lines[load->first_line] : NULL;
    size_t mark = lapse_wire_begin(wire, FIELD_SYMBOLS);
    lapse_wire_uint(wire, 1, load->start);
    lapse_wire_uint(wire, 2, load->size);
    lapse_wire_string(wire, 3, load->name);
    if (line) {
        lapse_wire_string(wire, 5, line->file);
        lapse_wire_uint(wire, 6, line->line);
    }
    lapse_wire_uint(wire, 7, load->from_ns);
    lapse_wire_uint(wire, 8, lapse_jit_code_until(&work->code, load));
    lapse_wire_end(wire, mark);
}

/* An AddressInfo has no time: only where nothing else ever stood. */
static void write_line(struct work *work, const struct place *place, const struct lapse_jit_load *load)
{
    struct lapse_wire *wire = &work->wire;
    const struct lapse_jit_line *line =
        lapse_jit_code_line(&work->code, load, place->address - place->is_return);
    if (!line || lapse_session_address(work->session, place->address, place->is_return))
        return;
    size_t mark = lapse_wire_begin(wire, FIELD_ADDRESSES);
    lapse_wire_uint(wire, 1, place->address);
    size_t inner = lapse_wire_begin(wire, 2);
    lapse_wire_string(wire, 1, load->name);
    lapse_wire_string(wire, 3, line->file);
    lapse_wire_uint(wire, 4, line->line);
    lapse_wire_end(wire, inner);
    lapse_wire_uint(wire, 3, place->is_return);
    lapse_wire_end(wire, mark);
}

static void name_place(struct work *work, const struct place *place)
{
    const struct lapse_jit_load *loads[TURNS_MAX];
    uint64_t address = place->address - place->is_return;
    uint32_t count = lapse_jit_code_all(&work->code, address, loads, TURNS_MAX);
    const struct lapse_symbol *known = lapse_session_symbol(work->session, address, UINT64_MAX - 1, NULL);
    for (uint32_t i = 0; i < count; i++) {
        bool last = i + 1 == count || !loads[count - 1]->from_ns;
        const struct lapse_jit_load *load = last ? loads[count - 1] : loads[i];
        if (work->wire.capacity - work->wire.size < ROOM_BYTES)
            flush(work);
        /* A perf map's last word is what the process itself wrote at its end. */
        if (load->from_ns || !known)
            write_symbol(work, load);
        if (count == 1)
            write_line(work, place, load);
        if (last)
            break;
    }
}

static int name_session(struct work *work)
{
    work->wire = (struct lapse_wire){ .bytes = malloc(LAPSE_CHUNK_MAX), .capacity = LAPSE_CHUNK_MAX - 16 };
    if (!work->wire.bytes)
        return -ENOMEM;
    for (uint32_t i = 0; i < work->count && !work->error; i++)
        name_place(work, &work->places[i]);
    flush(work);
    free(work->wire.bytes);
    return work->error;
}

static void free_work(struct work *work)
{
    lapse_jit_code_free(&work->code);
    lapse_map_free(&work->seen);
    lapse_map_free(&work->written);
    free(work->places);
}

static int read_tables(struct work *work, int map, int dump)
{
    int error = dump >= 0 ? lapse_jit_code_read_dump(&work->code, dump) : 0;
    /* What a jitdump file says is better: it has times. */
    if ((error == -EBADMSG || !work->code.load_count) && map >= 0)
        error = lapse_jit_code_read_map(&work->code, map);
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
