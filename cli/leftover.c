/* SPDX-License-Identifier: MIT */
/* See leftover.h. The ring's words are read as the drain thread would have read them (runtime/ring.c),
 * but every word is suspect: other users may write into the folder, and the process may have been
 * stopped between any two instructions. */
#include "leftover.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../runtime/ring.h"
#include "index.h"
#include "leftover_text.h"
#include "wire.h"

enum { CHUNK_HEADER = 1, CHUNK_THREADS = 3, CHUNK_RAW = 6, CHUNK_LABELS = 9, CHUNK_SPANS = 10, CHUNK_COUNTERS = 11, CHUNK_SESSION = 15,
       CHUNK_RING_POSITION = 16 };
enum { COUNTER_TICKS = 1, COUNTER_RECORDED = 3, COUNTER_DROPPED_SPANS = 20, COUNTERS = 32, RAW_NOT_SAMPLED = 4 };
#define WORDS_MOST (UINT64_C(1) << 22)
#define CHUNK_FULL (LAPSE_CHUNK_MAX / 4 * 3)

/* What the spool has already. */
struct spool_state {
    uint64_t end;      /* behind the last whole chunk */
    uint64_t position; /* of the ring, up to which its samples are in it */
    uint64_t counters[COUNTERS];
    struct lapse_map threads;
    struct lapse_leftover_text text;
    bool is_cut;       /* what follows `end` is a chunk that was being written */
};

/* A lease on reading is refused while anybody has the file open or mapped for writing. Where there
 * are no leases, the pid has to do. */
static bool is_mapped(int fd, pid_t pid)
{
    if (fcntl(fd, F_SETLEASE, F_RDLCK))
        return errno == EAGAIN || (pid > 0 && kill(pid, 0) == 0);
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

static int read_all(int fd, void *to, size_t size, off_t at)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, (char *)to + done, size - done, at + (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got ? -errno : -EBADMSG;
        done += (size_t)got;
    }
    return 0;
}

static int load(struct lapse_leftover *leftover, int fd)
{
    struct stat status;
    struct lapse_ring_control control;
    if (fstat(fd, &status))
        return -errno;
    if (!S_ISREG(status.st_mode) || status.st_nlink > 1)
        return -EBADMSG;
    leftover->is_alive = is_mapped(fd, 0);
    int error = read_all(fd, &control, sizeof control, 0);
    if (error)
        return error;
    leftover->words = control.words;
    leftover->pid = (uint32_t)control.pid;
    memcpy(leftover->session_id, control.session_id, sizeof leftover->session_id);
    if (control.magic != LAPSE_RING_MAGIC || control.words < 8 || control.words > WORDS_MOST ||
        (control.words & (control.words - 1)) ||
        (uint64_t)status.st_size != LAPSE_RING_CONTROL_SIZE + control.words * 8)
        return -EBADMSG;
    leftover->is_retired = control.owner.is_retired;
    leftover->is_alive = is_mapped(fd, (pid_t)control.pid);
    if (leftover->is_retired) /* between exec and its own ring, a process has none mapped */
        leftover->is_alive |= control.pid && kill((pid_t)control.pid, 0) == 0;
    if (leftover->is_alive || leftover->is_retired)
        return 0;
    leftover->memory = aligned_alloc(LAPSE_RING_CONTROL_SIZE, (size_t)status.st_size);
    return leftover->memory ? read_all(fd, leftover->memory, (size_t)status.st_size, 0) : -ENOMEM;
}

int lapse_leftover_open(struct lapse_leftover *leftover, int folder, const char *name)
{
    *leftover = (struct lapse_leftover){ 0 };
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -errno;
    int error = load(leftover, fd);
    close(fd);
    if (error)
        lapse_leftover_close(leftover);
    return error;
}

void lapse_leftover_close(struct lapse_leftover *leftover)
{
    free(leftover->memory);
    leftover->memory = NULL;
}

static struct lapse_ring ring_of(const struct lapse_leftover *leftover)
{
    struct lapse_ring ring = { .control = leftover->memory, .mask = leftover->words - 1 };
    ring.words = (_Atomic uint64_t *)((char *)leftover->memory + LAPSE_RING_CONTROL_SIZE);
    return ring;
}

/* The next whole record from *position on. One whose writer was stopped in the middle has no header:
 * it is stepped over word by word. */
static bool next_record(struct lapse_ring *ring, uint64_t *position, struct lapse_record *record,
                        uint64_t *scratch)
{
    uint64_t tail = atomic_load_explicit(&ring->control->tail, memory_order_relaxed);
    uint64_t used = atomic_load_explicit(&ring->control->head, memory_order_relaxed) - tail;
    if (used > ring->mask + 1)
        used = ring->mask + 1;
    if (*position - tail > used) /* before tail, or nonsense */
        *position = tail;
    for (; *position - tail < used; ++*position) {
        uint64_t at = *position;
        if (lapse_ring_peek(ring, &at, record, scratch, LAPSE_RECORD_WORDS_MAX) == 1) {
            *position = at;
            return true;
        }
    }
    return false;
}

static bool is_sample(const struct lapse_record *record)
{
    return record->kind == LAPSE_RECORD_SAMPLE || record->kind == LAPSE_RECORD_NOT_SAMPLED;
}

static bool is_kept(const struct lapse_record *record)
{
    return is_sample(record) || record->kind == LAPSE_RECORD_SPAN;
}

bool lapse_leftover_has_samples(const struct lapse_leftover *leftover)
{
    struct lapse_ring ring = ring_of(leftover);
    struct lapse_record record;
    uint64_t *scratch = malloc(LAPSE_RECORD_WORDS_MAX * sizeof *scratch), position = 0;
    bool found = false;
    while (scratch && !found && next_record(&ring, &position, &record, scratch))
        found = is_kept(&record);
    free(scratch);
    return found;
}

static void read_counters(struct spool_state *state, struct lapse_wire_reader counters)
{
    struct lapse_wire_reader body;
    uint64_t value;
    uint32_t field;
    while (lapse_wire_next(&counters, &field, &value, &body) == 1)
        if (field < COUNTERS)
            state->counters[field] = value;
}

static int read_chunk(struct spool_state *state, struct lapse_wire_reader chunk)
{
    struct lapse_wire_reader body, none;
    uint64_t value;
    uint32_t field;
    while (lapse_wire_next(&chunk, &field, &value, &body) == 1) {
        if (field == CHUNK_RING_POSITION)
            state->position = value;
        else if (field == CHUNK_COUNTERS)
            read_counters(state, body);
        else if (field == CHUNK_LABELS && lapse_leftover_text_labels(&state->text, body))
            return -ENOMEM;
        else if (field == CHUNK_SPANS && lapse_leftover_text_span(&state->text, body))
            return -ENOMEM;
        else if (field == CHUNK_THREADS && lapse_wire_next(&body, &field, &value, &none) == 1 &&
                 field == 1 && lapse_map_put(&state->threads, value, 1))
            return -ENOMEM;
    }
    return 0;
}

static int read_spool(struct spool_state *state, int fd, uint8_t *bytes)
{
    struct stat status;
    uint8_t head[LAPSE_CHUNK_HEAD];
    uint32_t size, crc;
    if (fstat(fd, &status))
        return -errno;
    uint64_t file_size = (uint64_t)status.st_size;
    for (;;) {
        state->is_cut = file_size - state->end < sizeof head;
        if (state->is_cut)
            return 0;
        if (read_all(fd, head, sizeof head, (off_t)state->end) || lapse_chunk_head_read(head, &size, &crc))
            break;
        state->is_cut = file_size - state->end - sizeof head < size;
        if (state->is_cut || read_all(fd, bytes, size, (off_t)(state->end + sizeof head)))
            return 0;
        if (lapse_crc32c(0, bytes, size) != crc)
            break;
        int error = read_chunk(state, (struct lapse_wire_reader){ bytes, bytes + size });
        if (error)
            return error;
        state->end += sizeof head + size;
    }
    state->end = file_size; /* damaged in the middle: what is there stays, and we go on behind it */
    return 0;
}

static void put_header(struct lapse_wire *wire, const struct lapse_ring_control *control)
{
    const struct lapse_ring_owner *owner = &control->owner;
    size_t mark = lapse_wire_begin(wire, CHUNK_HEADER);
    lapse_wire_uint(wire, 1, 1);
    lapse_wire_string(wire, 2, "lapse " LAPSE_VERSION);
    lapse_wire_bytes(wire, 3, control->session_id, sizeof control->session_id);
    if (owner->has_run_id)
        lapse_wire_bytes(wire, 4, owner->run_id, sizeof owner->run_id);
    lapse_wire_uint(wire, 5, owner->run_index);
    lapse_wire_uint(wire, 6, control->pid);
    lapse_wire_bytes(wire, 9, owner->program, strnlen(owner->program, sizeof owner->program));
    lapse_wire_uint(wire, 12, owner->clock);
    lapse_wire_uint(wire, 13, control->period_ns);
    lapse_wire_uint(wire, 14, owner->start_ns);
    lapse_wire_uint(wire, 15, owner->start_realtime_ns);
    lapse_wire_uint(wire, 16, owner->depth);
    lapse_wire_uint(wire, 17, owner->min_samples);
    lapse_wire_uint(wire, 18, owner->gap_ns);
    lapse_wire_uint(wire, 19, owner->close);
    lapse_wire_uint(wire, 20, owner->run_variant);
    lapse_wire_end(wire, mark);
}

static int put_sample(struct lapse_wire *wire, struct spool_state *state, const struct lapse_record *record)
{
    uint32_t labels;
    int error = lapse_leftover_text_set(&state->text, wire, record, &labels);
    bool is_late = record->kind == LAPSE_RECORD_NOT_SAMPLED;
    size_t mark = lapse_wire_begin(wire, CHUNK_RAW);
    lapse_wire_uint(wire, 1, record->thread);
    lapse_wire_uint(wire, 2, record->time_ns);
    lapse_wire_uint(wire, 3, record->weight_ns);
    size_t pcs = lapse_wire_begin(wire, 4);
    for (uint32_t i = 0; i < record->depth; i++)
        lapse_wire_varint(wire, record->pcs[i]);
    lapse_wire_end(wire, pcs);
    /* Flags of records are enum RawFlag but for this one; late ticks keep their number in the CFA. */
    lapse_wire_uint(wire, 5, is_late ? RAW_NOT_SAMPLED : record->flags & 3u);
    lapse_wire_uint(wire, 6, is_late ? 0 : record->cut_cfa);
    lapse_wire_uint(wire, 7, labels);
    lapse_wire_end(wire, mark);
    return error;
}

/* One without a name would be shown as one of another kind. */
static void put_span(struct lapse_wire *wire, struct spool_state *state, const struct lapse_record *record)
{
    const char *name = lapse_leftover_text_at(&state->text, record->cut_cfa);
    if (!name) {
        state->counters[COUNTER_DROPPED_SPANS]++;
        return;
    }
    size_t mark = lapse_wire_begin(wire, CHUNK_SPANS);
    lapse_wire_uint(wire, 1, record->thread);
    lapse_wire_uint(wire, 2, record->weight_ns);
    lapse_wire_uint(wire, 3, record->time_ns);
    lapse_wire_string(wire, 4, name);
    lapse_wire_end(wire, mark);
}

/* The last words of a thread whose samples are known; they need nothing of its process. */
static void put_thread_end(struct lapse_wire *wire, struct spool_state *state, const struct lapse_record *record)
{
    uint32_t unused;
    if (!lapse_map_get(&state->threads, record->thread, &unused))
        return;
    size_t mark = lapse_wire_begin(wire, CHUNK_THREADS);
    lapse_wire_uint(wire, 1, record->thread);
    lapse_wire_uint(wire, 2, record->tid);
    lapse_wire_uint(wire, 5, record->time_ns);
    lapse_wire_uint(wire, 6, record->weight_ns);
    lapse_wire_end(wire, mark);
}

static int put_thread(struct lapse_wire *wire, struct spool_state *state, const struct lapse_record *record)
{
    uint32_t unused;
    if (lapse_map_get(&state->threads, record->thread, &unused))
        return 0;
    size_t mark = lapse_wire_begin(wire, CHUNK_THREADS);
    lapse_wire_uint(wire, 1, record->thread);
    lapse_wire_uint(wire, 2, record->tid);
    lapse_wire_uint(wire, 4, record->time_ns);
    lapse_wire_end(wire, mark);
    return lapse_map_put(&state->threads, record->thread, 1);
}

static void put_counters(struct lapse_wire *wire, struct spool_state *state, uint64_t recorded)
{
    uint64_t *counters = state->counters;
    if (counters[COUNTER_RECORDED] < recorded)
        counters[COUNTER_RECORDED] = recorded;
    if (counters[COUNTER_TICKS] < recorded)
        counters[COUNTER_TICKS] = recorded;
    size_t mark = lapse_wire_begin(wire, CHUNK_COUNTERS);
    for (uint32_t i = 1; i < COUNTERS; i++)
        lapse_wire_uint(wire, i, counters[i]);
    lapse_wire_end(wire, mark);
}

static int write_all(int fd, const void *bytes, size_t size, uint64_t at)
{
    for (size_t done = 0; done < size;) {
        ssize_t wrote = pwrite(fd, (const char *)bytes + done, size - done, (off_t)(at + done));
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return wrote ? -errno : -EIO;
        done += (size_t)wrote;
    }
    return 0;
}

static int send(struct lapse_wire *wire, struct spool_state *state, int fd, const uint8_t session_id[16])
{
    uint8_t head[LAPSE_CHUNK_HEAD];
    uint64_t tag;
    memcpy(&tag, session_id, sizeof tag);
    lapse_wire_fixed64(wire, CHUNK_SESSION, tag);
    lapse_chunk_head(head, wire->bytes, (uint32_t)wire->size);
    int error = write_all(fd, head, sizeof head, state->end);
    if (!error)
        error = write_all(fd, wire->bytes, wire->size, state->end + sizeof head);
    if (!error)
        state->end += sizeof head + wire->size;
    wire->size = 0;
    return error;
}

/* All records from the spool's position on. `scratch` serves the ring, `wire` the chunks. */
static int append(const struct lapse_leftover *leftover, int fd, struct spool_state *state,
                  struct lapse_wire *wire, uint64_t *scratch, uint64_t *samples)
{
    struct lapse_ring ring = ring_of(leftover);
    struct lapse_record record;
    uint64_t position = state->position;
    bool any = false;
    int error = 0;
    if (state->is_cut && ftruncate(fd, (off_t)state->end))
        return -errno;
    if (!state->end)
        put_header(wire, ring.control);
    while (!error && next_record(&ring, &position, &record, scratch)) {
        if (record.kind == LAPSE_RECORD_THREAD_END)
            put_thread_end(wire, state, &record);
        if (!is_kept(&record))
            continue;
        any = true;
        error = put_thread(wire, state, &record);
        if (record.kind == LAPSE_RECORD_SPAN)
            put_span(wire, state, &record);
        else if (!error)
            error = put_sample(wire, state, &record);
        *samples += is_sample(&record);
        if (!error && wire->size > CHUNK_FULL) {
            lapse_wire_uint(wire, CHUNK_RING_POSITION, position);
            error = send(wire, state, fd, leftover->session_id);
        }
    }
    if (error || !any)
        return error;
    lapse_wire_uint(wire, CHUNK_RING_POSITION, position);
    put_counters(wire, state, atomic_load_explicit(&ring.control->recorded, memory_order_relaxed));
    return send(wire, state, fd, leftover->session_id);
}

int lapse_leftover_append(const struct lapse_leftover *leftover, int spool, uint64_t *samples)
{
    struct spool_state state = { 0 };
    uint8_t *bytes = malloc(LAPSE_CHUNK_MAX);
    uint64_t *scratch = malloc(LAPSE_RECORD_WORDS_MAX * sizeof *scratch);
    struct lapse_wire wire = { .bytes = bytes, .capacity = LAPSE_CHUNK_MAX };
    *samples = 0;
    int error = bytes && scratch ? read_spool(&state, spool, bytes) : -ENOMEM;
    if (!error)
        error = append(leftover, spool, &state, &wire, scratch, samples);
    lapse_map_free(&state.threads);
    lapse_leftover_text_free(&state.text);
    free(scratch);
    free(bytes);
    return error;
}
