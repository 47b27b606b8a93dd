/* SPDX-License-Identifier: MIT */
/* Made-up recordings; see make_recording.h. */
#include "make_recording.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FULL_BYTES (LAPSE_CHUNK_MAX / 2)
#define BLOCK_SAMPLES 500u
#define START_NS UINT64_C(1000000000)
#define DEFAULT_PERIOD_NS UINT64_C(5000000)

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

void lapse_test_spool_open(struct lapse_test_spool *spool, const char *path)
{
    *spool = (struct lapse_test_spool){
        .fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600),
        .wire = { .bytes = malloc(LAPSE_CHUNK_MAX), .capacity = LAPSE_CHUNK_MAX },
    };
    if (spool->fd < 0 || !spool->wire.bytes)
        fail(path);
}

void lapse_test_spool_commit(struct lapse_test_spool *spool)
{
    uint8_t head[LAPSE_CHUNK_HEAD];
    struct lapse_wire *wire = &spool->wire;
    if (!wire->size)
        return;
    if (!spool->anonymous) {
        if (spool->nodes + 1 > spool->first_node)
            lapse_wire_uint(wire, 14, spool->first_node);
        if (spool->session)
            lapse_wire_fixed64(wire, 15, spool->session);
    }
    if (wire->overflow) {
        fputs("make_recording: the chunk is too large\n", stderr);
        exit(2);
    }
    lapse_chunk_head(head, wire->bytes, (uint32_t)wire->size);
    if (write(spool->fd, head, sizeof head) != sizeof head ||
        write(spool->fd, wire->bytes, wire->size) != (ssize_t)wire->size)
        fail("write");
    wire->size = 0;
    spool->first_node = spool->nodes + 1;
}

void lapse_test_spool_close(struct lapse_test_spool *spool)
{
    lapse_test_spool_commit(spool);
    close(spool->fd);
    free(spool->wire.bytes);
}

static size_t begin(struct lapse_test_spool *spool, uint32_t field)
{
    if (spool->wire.size > FULL_BYTES)
        lapse_test_spool_commit(spool);
    return lapse_wire_begin(&spool->wire, field);
}

static void finish(struct lapse_test_spool *spool, size_t mark)
{
    lapse_wire_end(&spool->wire, mark);
}

void lapse_test_spool_header(struct lapse_test_spool *spool, uint32_t pid, const char *program,
                             uint64_t period_ns)
{
    struct lapse_wire *wire = &spool->wire;
    uint8_t id[16] = { 0 };
    lapse_test_spool_commit(spool);
    for (int i = 0; i < 4; i++)
        id[i] = (uint8_t)(pid >> 8 * i);
    id[7] = 0x5e;
    spool->session = (uint64_t)0x5e << 56 | pid;
    spool->nodes = 0;
    spool->first_node = 1;
    size_t mark = begin(spool, 1);
    lapse_wire_uint(wire, 1, 1);
    lapse_wire_string(wire, 2, "lapse test");
    lapse_wire_uint(wire, 5, spool->run_index);
    lapse_wire_bytes(wire, 3, id, spool->anonymous ? 0 : sizeof id);
    lapse_wire_uint(wire, 6, pid);
    lapse_wire_uint(wire, 8, 1);
    lapse_wire_string(wire, 9, program);
    lapse_wire_string(wire, 10, program);
    lapse_wire_string(wire, 10, "two words");
    lapse_wire_string(wire, 11, "testhost");
    lapse_wire_uint(wire, 13, period_ns ? period_ns : DEFAULT_PERIOD_NS);
    lapse_wire_uint(wire, 14, START_NS + spool->shift_ns);
    lapse_wire_uint(wire, 15, UINT64_C(1700000000000000000));
    lapse_wire_uint(wire, 16, 1024);
    finish(spool, mark);
    if (spool->anonymous)
        spool->session = 0;
}

void lapse_test_spool_module(struct lapse_test_spool *spool, uint32_t id, const char *path, uint64_t start,
                             uint64_t end, uint64_t bias, uint64_t loaded_ns, uint64_t unloaded_ns)
{
    struct lapse_wire *wire = &spool->wire;
    size_t mark = begin(spool, 2);
    uint8_t build_id[20];
    memset(build_id, (int)id + spool->build, sizeof build_id);
    lapse_wire_uint(wire, 1, id);
    lapse_wire_string(wire, 2, path);
    if (*path == '/')
        lapse_wire_bytes(wire, 3, build_id, sizeof build_id);
    lapse_wire_uint(wire, 4, start);
    lapse_wire_uint(wire, 5, end);
    lapse_wire_uint(wire, 6, bias);
    size_t text = lapse_wire_begin(wire, 7);
    lapse_wire_uint(wire, 1, start);
    lapse_wire_uint(wire, 2, end);
    lapse_wire_end(wire, text);
    lapse_wire_uint(wire, 8, loaded_ns);
    lapse_wire_uint(wire, 9, unloaded_ns);
    finish(spool, mark);
}

void lapse_test_spool_thread(struct lapse_test_spool *spool, uint32_t id, uint32_t tid, const char *name)
{
    size_t mark = begin(spool, 3);
    lapse_wire_uint(&spool->wire, 1, id);
    lapse_wire_uint(&spool->wire, 2, tid);
    lapse_wire_string(&spool->wire, 3, name);
    lapse_wire_uint(&spool->wire, 4, START_NS + spool->shift_ns);
    finish(spool, mark);
}

uint32_t lapse_test_spool_node(struct lapse_test_spool *spool, uint32_t parent, uint64_t call_site,
                               uint64_t function, uint32_t flags)
{
    size_t mark = begin(spool, 4);
    lapse_wire_uint(&spool->wire, 1, parent);
    lapse_wire_uint(&spool->wire, 2, call_site);
    lapse_wire_uint(&spool->wire, 3, function);
    lapse_wire_uint(&spool->wire, 4, flags);
    finish(spool, mark);
    return ++spool->nodes;
}

static void put_samples(struct lapse_test_spool *spool, uint32_t thread,
                        const struct lapse_test_sample *samples, uint32_t count)
{
    struct lapse_wire *wire = &spool->wire;
    size_t list, mark = begin(spool, 5);
    bool labels = false, cut = false;
    for (uint32_t i = 0; i < count; i++) {
        labels |= samples[i].labels != 0;
        cut |= samples[i].cut_cfa != 0;
    }
    lapse_wire_uint(wire, 1, thread);
    lapse_wire_uint(wire, 2, samples[0].time_ns);
    list = lapse_wire_begin(wire, 3);
    for (uint32_t i = 0; i < count; i++)
        lapse_wire_varint(wire, samples[i].time_ns - samples[i ? i - 1 : 0].time_ns);
    lapse_wire_end(wire, list);
    list = lapse_wire_begin(wire, 4);
    for (uint32_t i = 0; i < count; i++)
        lapse_wire_zigzag(wire, (int64_t)samples[i].node - (i ? (int64_t)samples[i - 1].node : 0));
    lapse_wire_end(wire, list);
    list = lapse_wire_begin(wire, 5);
    for (uint32_t i = 0; i < count; i++)
        lapse_wire_zigzag(wire, (int64_t)(samples[i].leaf_pc - (i ? samples[i - 1].leaf_pc : 0)));
    lapse_wire_end(wire, list);
    list = lapse_wire_begin(wire, 6);
    for (uint32_t i = 0; i < count; i++)
        lapse_wire_varint(wire, samples[i].weight_ns);
    lapse_wire_end(wire, list);
    list = lapse_wire_begin(wire, 7);
    for (uint32_t i = 0; labels && i < count; i++)
        lapse_wire_varint(wire, samples[i].labels);
    lapse_wire_end(wire, list);
    list = lapse_wire_begin(wire, 8);
    for (uint32_t i = 0; cut && i < count; i++)
        lapse_wire_varint(wire, samples[i].cut_cfa);
    lapse_wire_end(wire, list);
    finish(spool, mark);
}

void lapse_test_spool_samples(struct lapse_test_spool *spool, uint32_t thread,
                              const struct lapse_test_sample *samples, uint32_t count)
{
    for (uint32_t at = 0; at < count; at += BLOCK_SAMPLES)
        put_samples(spool, thread, samples + at, count - at < BLOCK_SAMPLES ? count - at : BLOCK_SAMPLES);
}

void lapse_test_spool_raw(struct lapse_test_spool *spool, uint32_t thread, uint64_t time_ns,
                          uint64_t weight_ns, const uint64_t *pcs, uint32_t count, uint32_t flags)
{
    size_t list, mark = begin(spool, 6);
    lapse_wire_uint(&spool->wire, 1, thread);
    lapse_wire_uint(&spool->wire, 2, time_ns);
    lapse_wire_uint(&spool->wire, 3, weight_ns);
    list = lapse_wire_begin(&spool->wire, 4);
    for (uint32_t i = 0; i < count; i++)
        lapse_wire_varint(&spool->wire, pcs[i]);
    lapse_wire_end(&spool->wire, list);
    lapse_wire_uint(&spool->wire, 5, flags);
    finish(spool, mark);
}

void lapse_test_spool_symbol(struct lapse_test_spool *spool, uint64_t address, uint64_t size,
                             const char *name, uint64_t from_ns, uint64_t until_ns)
{
    size_t mark = begin(spool, 7);
    lapse_wire_uint(&spool->wire, 1, address);
    lapse_wire_uint(&spool->wire, 2, size);
    lapse_wire_string(&spool->wire, 3, name);
    lapse_wire_uint(&spool->wire, 7, from_ns);
    lapse_wire_uint(&spool->wire, 8, until_ns);
    finish(spool, mark);
}

void lapse_test_spool_address(struct lapse_test_spool *spool, uint64_t address, bool is_return,
                              const struct lapse_test_frame *frames, uint32_t count)
{
    size_t mark = begin(spool, 8);
    lapse_wire_uint(&spool->wire, 1, address);
    for (uint32_t i = 0; i < count; i++) {
        size_t frame = lapse_wire_begin(&spool->wire, 2);
        lapse_wire_string(&spool->wire, 1, frames[i].name);
        lapse_wire_string(&spool->wire, 3, frames[i].file);
        lapse_wire_uint(&spool->wire, 4, frames[i].line);
        lapse_wire_end(&spool->wire, frame);
    }
    lapse_wire_uint(&spool->wire, 3, is_return);
    finish(spool, mark);
}

void lapse_test_spool_labels(struct lapse_test_spool *spool, uint32_t id, const char *key,
                             const char *value)
{
    size_t label, mark = begin(spool, 9);
    lapse_wire_uint(&spool->wire, 1, id);
    label = lapse_wire_begin(&spool->wire, 2);
    lapse_wire_string(&spool->wire, 1, key);
    lapse_wire_string(&spool->wire, 2, value);
    lapse_wire_end(&spool->wire, label);
    finish(spool, mark);
}

void lapse_test_spool_span(struct lapse_test_spool *spool, uint32_t thread, uint64_t start_ns,
                           uint64_t end_ns, const char *name)
{
    size_t mark = begin(spool, 10);
    lapse_wire_uint(&spool->wire, 1, thread);
    lapse_wire_uint(&spool->wire, 2, start_ns);
    lapse_wire_uint(&spool->wire, 3, end_ns);
    lapse_wire_string(&spool->wire, 4, name);
    finish(spool, mark);
}

void lapse_test_spool_counters(struct lapse_test_spool *spool, const uint64_t (*fields)[2])
{
    size_t mark = begin(spool, 11);
    for (; (*fields)[0]; fields++)
        lapse_wire_uint(&spool->wire, (uint32_t)(*fields)[0], (*fields)[1]);
    finish(spool, mark);
}

void lapse_test_spool_end(struct lapse_test_spool *spool, uint32_t reason, uint32_t signal,
                          uint64_t time_ns, uint64_t user_ns, uint64_t system_ns)
{
    size_t mark = begin(spool, 12);
    lapse_wire_uint(&spool->wire, 1, reason);
    lapse_wire_uint(&spool->wire, 2, signal);
    lapse_wire_uint(&spool->wire, 3, time_ns);
    lapse_wire_uint(&spool->wire, 4, user_ns);
    lapse_wire_uint(&spool->wire, 5, system_ns);
    finish(spool, mark);
}

void lapse_test_spool_note(struct lapse_test_spool *spool, const char *text)
{
    lapse_wire_string(&spool->wire, 13, text);
}
