/* SPDX-License-Identifier: MIT */
/* Addresses of a session are named in order, so that each unit of debug information is read once.
 * An AddressInfo has no time; an address where modules came and went gets Symbols with times
 * instead. */
#include "symbolize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "call_tree.h"
#include "index.h"
#include "wire.h"

enum { FRAMES = 64, BODY_BYTES = LAPSE_CHUNK_MAX, ROOM_BYTES = 256 << 10 };
enum { FIELD_SYMBOLS = 7, FIELD_ADDRESSES = 8, FIELD_SESSION = 15 };

struct place {
    uint64_t address;
    bool is_return, is_function;
};

struct session_work {
    struct lapse_symbolize *symbolize;
    const struct lapse_session *session;
    struct lapse_map seen; /* address, twice and whether it is a return address */
    struct place *places;
    uint32_t count;
    struct lapse_wire wire;
    int error;
};

static void add_place(struct session_work *work, uint64_t address, bool is_return, bool is_function)
{
    uint64_t key = address << 1 | is_return;
    uint32_t at;
    if (address < 4096 || work->error) /* 0 and pseudo-functions */
        return;
    if (lapse_map_get(&work->seen, key, &at)) {
        work->places[at].is_function |= is_function;
        return;
    }
    struct place *places = lapse_array_grow(work->places, work->count, sizeof *places);
    if (places)
        work->places = places;
    if (!places || lapse_map_put(&work->seen, key, work->count)) {
        work->error = -ENOMEM;
        return;
    }
    places[work->count++] = (struct place){ address, is_return, is_function };
}

static int add_sample(void *context, const struct lapse_recorded_sample *sample)
{
    struct session_work *works = context;
    add_place(&works[sample->session], sample->leaf_pc, false, false);
    return works[sample->session].error;
}

static void add_nodes(struct session_work *work)
{
    uint32_t count;
    const struct lapse_call_node *nodes = lapse_call_tree_nodes(work->session->tree, &count);
    for (uint32_t i = 1; i < count; i++) {
        add_place(work, nodes[i].function, false, true);
        add_place(work, nodes[i].call_site, true, false);
    }
}

static int by_address(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return (int)x->is_return - (int)y->is_return;
}

static void flush(struct session_work *work)
{
    uint8_t head[LAPSE_CHUNK_HEAD];
    struct lapse_wire *wire = &work->wire;
    uint64_t tag;
    if (wire->size && !work->error) {
        memcpy(&tag, work->session->session_id, sizeof tag);
        lapse_wire_fixed64(wire, FIELD_SESSION, tag);
        lapse_chunk_head(head, wire->bytes, (uint32_t)wire->size);
        if (wire->overflow)
            work->error = -EOVERFLOW;
        else if (fwrite(head, sizeof head, 1, work->symbolize->to) != 1
                 || fwrite(wire->bytes, wire->size, 1, work->symbolize->to) != 1)
            work->error = errno ? -errno : -EIO;
    }
    wire->size = 0;
}

static void make_room(struct session_work *work)
{
    if (work->wire.capacity - work->wire.size < ROOM_BYTES)
        flush(work);
}

static void write_text(struct lapse_wire *wire, uint32_t field, const char *text)
{
    if (text && strlen(text) < ROOM_BYTES / FRAMES / 4)
        lapse_wire_string(wire, field, text);
}

static void write_address(struct session_work *work, const struct place *place,
                          const struct lapse_inline_frame *frames, uint32_t count)
{
    struct lapse_wire *wire = &work->wire;
    make_room(work);
    size_t mark = lapse_wire_begin(wire, FIELD_ADDRESSES);
    lapse_wire_uint(wire, 1, place->address);
    for (uint32_t i = 0; i < count; i++) {
        size_t inner = lapse_wire_begin(wire, 2);
        write_text(wire, 1, frames[i].name);
        write_text(wire, 2, frames[i].system_name);
        write_text(wire, 3, frames[i].file);
        lapse_wire_uint(wire, 4, frames[i].line);
        lapse_wire_end(wire, inner);
    }
    lapse_wire_uint(wire, 3, place->is_return);
    lapse_wire_end(wire, mark);
}

/* Returns whether there is one now, by this or from before. */
static bool write_symbol(struct session_work *work, const struct lapse_module *module,
                         uint64_t address, bool has_times)
{
    struct lapse_offline_function function;
    struct lapse_wire *wire = &work->wire;
    uint64_t at = has_times ? module->loaded_ns : 0;
    const struct lapse_symbol *known = lapse_session_symbol(work->session, address, at, NULL);
    if (known && *known->name && (!has_times || known->from_ns || known->until_ns))
        return true;
    if (!lapse_offline_find_function(work->symbolize->offline, work->session, address, at, &function))
        return false;
    make_room(work);
    size_t mark = lapse_wire_begin(wire, FIELD_SYMBOLS);
    lapse_wire_uint(wire, 1, function.size ? function.start : address);
    lapse_wire_uint(wire, 2, function.size);
    write_text(wire, 3, function.name);
    write_text(wire, 4, function.system_name);
    write_text(wire, 5, function.file);
    lapse_wire_uint(wire, 6, function.line);
    if (has_times) {
        lapse_wire_uint(wire, 7, module->loaded_ns);
        lapse_wire_uint(wire, 8, module->unloaded_ns);
    }
    lapse_wire_end(wire, mark);
    return true;
}

/* Where modules came and went: symbols with times. Returns whether any is known now. */
static bool name_reused(struct session_work *work, uint64_t address)
{
    const struct lapse_session *session = work->session;
    bool named = false;
    for (uint32_t i = 0; i < session->module_count; i++)
        if (address >= session->modules[i].start && address < session->modules[i].end)
            named |= write_symbol(work, &session->modules[i], address, true);
    return named;
}

static bool has_line(const struct lapse_inline_frame *frames, uint32_t count)
{
    return count && frames[count - 1].file && frames[count - 1].line;
}

static void name_place(struct session_work *work, const struct place *place)
{
    struct lapse_symbolize *symbolize = work->symbolize;
    const struct lapse_session *session = work->session;
    struct lapse_inline_frame frames[FRAMES];
    uint64_t looked_up = place->address - place->is_return;
    const struct lapse_symbolizer *symbolizer = lapse_offline_symbolizer(symbolize->offline);
    const struct lapse_address_info *info = lapse_session_address(session, place->address, place->is_return);
    const struct lapse_module *covering = NULL;
    for (uint32_t i = 0; i < session->module_count; i++)
        if (looked_up >= session->modules[i].start && looked_up < session->modules[i].end)
            covering = &session->modules[i];
    const struct lapse_symbol *symbol = lapse_session_symbol(session, looked_up, UINT64_MAX - 1, NULL);
    bool before = info || (symbol && *symbol->name), now = before;
    symbolize->addresses++;
    symbolize->named_before += before;
    if (info && has_line(info->frames, info->frame_count))
        symbolize->lines_before++, symbolize->lines++;
    if (covering && lapse_session_is_reused(session, looked_up)) {
        now |= name_reused(work, looked_up);
    } else if (covering) {
        if (place->is_function)
            now |= write_symbol(work, covering, looked_up, false);
        uint32_t count = info ? 0
                              : symbolizer->frames(symbolizer->context, session, place->address,
                                                   place->is_return, covering->loaded_ns, frames, FRAMES);
        if (count)
            write_address(work, place, frames, count);
        symbolize->lines += has_line(frames, count);
        now |= count > 0;
    }
    symbolize->named += now;
}

static void show_progress(uint32_t done, uint32_t count)
{
    fprintf(stderr, done < count ? "\r\033[Knaming addresses: %3u %%" : "\r\033[K",
            (unsigned)(100.0 * done / count));
}

static int name_session(struct session_work *work)
{
    time_t start = time(NULL);
    work->wire = (struct lapse_wire){ .bytes = malloc(BODY_BYTES), .capacity = BODY_BYTES - 16 };
    if (!work->wire.bytes)
        return -ENOMEM;
    if (work->count)
        qsort(work->places, work->count, sizeof *work->places, by_address);
    for (uint32_t i = 0; i < work->count && !work->error; i++) {
        name_place(work, &work->places[i]);
        if (work->symbolize->progress && i % 1024 == 0 && time(NULL) > start)
            show_progress(i, work->count);
    }
    if (work->symbolize->progress && work->count)
        show_progress(work->count, work->count);
    flush(work);
    free(work->wire.bytes);
    return work->error;
}

int lapse_symbolize_sessions(struct lapse_symbolize *symbolize)
{
    struct lapse_recording *recording = symbolize->recording;
    struct session_work *works = calloc(recording->session_count + 1, sizeof *works);
    int error = works ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < recording->session_count && !error; i++) {
        works[i].symbolize = symbolize;
        works[i].session = &recording->sessions[i];
        add_nodes(&works[i]);
        error = works[i].error;
    }
    if (!error)
        error = lapse_recording_each_sample(recording, add_sample, works);
    for (uint32_t i = 0; works && i < recording->session_count; i++) {
        if (!error)
            error = name_session(&works[i]);
        lapse_map_free(&works[i].seen);
        free(works[i].places);
    }
    free(works);
    return error;
}
