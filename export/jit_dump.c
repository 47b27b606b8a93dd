/* SPDX-License-Identifier: MIT */
/* Reader of jitdump files (jit_code.h). A header, then records of 16 bytes and a body: loads, moves,
 * source lines that stand before the load they belong to, and others that are stepped over by their
 * size. The code bytes in a load are not read. */
#include "jit_code.h"

#include <errno.h>
#include <string.h>

#define MAGIC 0x4a695444u
#define HEADER_BYTES 40u
#define RECORD_BYTES 16u
#define LOAD_BYTES 40u
#define MOVE_BYTES 48u
#define MACHINE_NONE 0u /* CPython 3.13 says so */
#define MACHINE_X86_64 62u
#define TIME_IS_TSC 1u
#define ELF_HEADER_BYTES 0x40u
#define PADDING_MAX 8u /* behind the last entry */
#define NAME_BYTES LAPSE_JIT_NAME_MAX
#define NO_LOAD UINT32_MAX

enum { WINDOW_BYTES = 1 << 16, RECENT = 64 };
enum { CODE_LOAD, CODE_MOVE, DEBUG_INFO, CODE_CLOSE };

struct dump {
    struct lapse_jit_code *code;
    const struct lapse_jit_source *source;
    long error; /* of the source, or of ours */
    uint64_t window_offset;
    uint32_t window_size;
    bool no_times;
    /* Loads by start and index, to find the one that moves: first of each bucket, then `chain`. */
    uint32_t *buckets, bucket_count;
    const char *recent[RECENT]; /* names of files that were kept, by their checksum */
    /* Lines that wait for their load. */
    uint64_t lines_of;
    uint32_t first_line, line_count;
    /* V8 adds the size of an ELF header to the addresses of lines: no line of any function is nearer
     * to its start then. */
    uint64_t least_offset;
    uint8_t window[WINDOW_BYTES];
};

static void fill_window(struct dump *dump, uint64_t offset)
{
    dump->window_offset = offset;
    dump->window_size = 0;
    while (dump->window_size < WINDOW_BYTES && !dump->error) {
        long got = dump->source->read(dump->source->context, dump->window + dump->window_size,
                                      WINDOW_BYTES - dump->window_size, offset + dump->window_size);
        if (got < 0)
            dump->error = got;
        if (got <= 0)
            break;
        dump->window_size += (uint32_t)got;
    }
}

/* Up to `size` bytes at an offset: how many there are. They stay until the next call. */
static uint32_t view(struct dump *dump, uint64_t offset, uint32_t size, const uint8_t **bytes)
{
    if (offset < dump->window_offset || offset + size > dump->window_offset + dump->window_size)
        fill_window(dump, offset);
    uint64_t left = dump->window_offset + dump->window_size - offset;
    *bytes = dump->window + (offset - dump->window_offset);
    return left < size ? (uint32_t)left : size;
}

static uint32_t number32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint64_t number64(const uint8_t *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t bucket_of(const struct dump *dump, uint64_t start, uint64_t index)
{
    uint64_t key = start ^ index << 40 ^ index >> 24;
    return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (dump->bucket_count - 1);
}

static void chain_load(struct dump *dump, uint32_t number)
{
    struct lapse_jit_load *load = &dump->code->loads[number];
    uint32_t *bucket = &dump->buckets[bucket_of(dump, load->start, load->index)];
    load->chain = *bucket;
    *bucket = number;
}

static void free_buckets(struct dump *dump)
{
    const struct lapse_allocator *allocator = dump->code->allocator;
    if (dump->buckets)
        allocator->resize(allocator->context, dump->buckets, dump->bucket_count * sizeof *dump->buckets, 0);
    dump->buckets = NULL;
}

/* As many buckets as there is room for loads. */
static int grow_buckets(struct dump *dump)
{
    struct lapse_jit_code *code = dump->code;
    free_buckets(dump);
    dump->bucket_count = code->load_capacity;
    size_t size = dump->bucket_count * sizeof *dump->buckets;
    dump->buckets = code->allocator->resize(code->allocator->context, NULL, 0, size);
    if (!dump->buckets)
        return -ENOMEM;
    memset(dump->buckets, 0xff, size); /* NO_LOAD */
    for (uint32_t i = 0; i + 1 < code->load_count; i++)
        chain_load(dump, i);
    return 0;
}

static int add_load(struct dump *dump, const struct lapse_jit_load *load, const char *name, uint32_t size)
{
    struct lapse_jit_code *code = dump->code;
    uint32_t number = code->load_count;
    int error = lapse_jit_code_add(code, load, name, size);
    if (error || code->load_count == number)
        return error;
    if (dump->bucket_count != code->load_capacity)
        error = grow_buckets(dump);
    if (!error)
        chain_load(dump, number);
    return error;
}

static bool lines_fit(const struct dump *dump, const struct lapse_jit_load *load)
{
    const struct lapse_jit_line *lines = &dump->code->lines[dump->first_line];
    return lines[0].address >= load->start &&
           lines[dump->line_count - 1].address - load->start <= load->size + ELF_HEADER_BYTES;
}

static void forget_lines(struct dump *dump)
{
    dump->code->line_count = dump->first_line;
    dump->line_count = 0;
}

static int take_load(struct dump *dump, uint64_t body, uint64_t end, uint64_t time_ns)
{
    const uint8_t *at;
    if (end - body <= LOAD_BYTES || view(dump, body, LOAD_BYTES, &at) < LOAD_BYTES)
        return 0;
    struct lapse_jit_load load = {
        .start = number64(at + 16), .size = number64(at + 24), .index = number64(at + 32),
        .from_ns = time_ns,
    };
    if (dump->line_count && dump->lines_of == load.start && lines_fit(dump, &load)) {
        load.first_line = dump->first_line;
        load.line_count = dump->line_count;
        uint64_t offset = dump->code->lines[load.first_line].address - load.start;
        dump->least_offset = offset < dump->least_offset ? offset : dump->least_offset;
    }
    uint64_t room = end - body - LOAD_BYTES;
    uint32_t got = view(dump, body + LOAD_BYTES, room < NAME_BYTES ? (uint32_t)room : NAME_BYTES, &at);
    uint32_t before = dump->code->load_count;
    int error = add_load(dump, &load, (const char *)at, (uint32_t)strnlen((const char *)at, got));
    if (dump->line_count && (dump->code->load_count == before || !load.line_count))
        forget_lines(dump);
    dump->line_count = 0;
    return error;
}

/* The newest of that start and index. */
static uint32_t find_load(const struct dump *dump, uint64_t start, uint64_t index)
{
    uint32_t number = dump->buckets ? dump->buckets[bucket_of(dump, start, index)] : NO_LOAD;
    while (number != NO_LOAD && (dump->code->loads[number].start != start ||
                                 dump->code->loads[number].index != index))
        number = dump->code->loads[number].chain;
    return number;
}

static int take_move(struct dump *dump, uint64_t body, uint64_t end, uint64_t time_ns)
{
    const uint8_t *at;
    if (end - body < MOVE_BYTES || view(dump, body, MOVE_BYTES, &at) < MOVE_BYTES)
        return 0;
    uint64_t from = number64(at + 16), to = number64(at + 24), index = number64(at + 40);
    uint32_t number = find_load(dump, from, index);
    if (number == NO_LOAD)
        return 0;
    struct lapse_jit_load *old = &dump->code->loads[number], moved = *old;
    if (!old->end_ns)
        old->end_ns = time_ns;
    moved.start = to;
    moved.from_ns = time_ns;
    moved.end_ns = 0;
    moved.line_count = 0; /* its lines are addresses of the old place */
    return add_load(dump, &moved, moved.name, (uint32_t)strlen(moved.name));
}

/* One copy of the names that come again and again. */
static const char *keep_file(struct dump *dump, const char *file, uint32_t size)
{
    const char **recent = &dump->recent[lapse_crc32c(0, file, size) % RECENT];
    if (!*recent || strncmp(*recent, file, size) || (*recent)[size])
        *recent = lapse_jit_code_keep(dump->code, file, size);
    return *recent;
}

static int add_line(struct dump *dump, uint64_t address, uint32_t line, const char *file, uint32_t size)
{
    struct lapse_jit_code *code = dump->code;
    /* One byte 0xff: the file of the line before. */
    bool same = size == 1 && (uint8_t)file[0] == 0xff && dump->line_count;
    const char *kept = same ? code->lines[code->line_count - 1].file : keep_file(dump, file, size);
    int error = kept ? lapse_jit_code_add_line(code, address, kept, line) : -ENOMEM;
    dump->line_count += !error;
    return error;
}

/* V8 (Node 20) writes names out of memory that it has freed: bytes that are no text, and shorter than the
 * room that was left for them, so that what follows is read out of step. */
static bool is_name(const uint8_t *name, uint32_t size)
{
    if (size == 1 && name[0] == 0xff)
        return true;
    for (uint32_t i = 0; i < size; i++)
        if (name[i] < 0x20 || name[i] == 0x7f || name[i] >= 0xf8)
            return false;
    return size > 0;
}

static int take_lines(struct dump *dump, uint64_t body, uint64_t end)
{
    const uint8_t *at;
    if (end - body < 16 || view(dump, body, 16, &at) < 16)
        return 0;
    uint64_t count = number64(at + 8), offset = body + 16;
    dump->lines_of = number64(at);
    dump->first_line = dump->code->line_count;
    dump->line_count = 0;
    for (; count && end - offset > 16; count--) {
        uint32_t wanted = end - offset < 16 + NAME_BYTES ? (uint32_t)(end - offset) : 16 + NAME_BYTES;
        uint32_t got = view(dump, offset, wanted, &at);
        const uint8_t *name_end = got > 16 ? memchr(at + 16, 0, got - 16) : NULL;
        uint32_t size = name_end ? (uint32_t)(name_end - at - 16) : 0;
        if (!is_name(at + 16, size))
            break;
        int error = add_line(dump, number64(at), number32(at + 8), (const char *)at + 16, size);
        if (error)
            return error;
        offset += 16 + size + 1;
    }
    if (count || end - offset > PADDING_MAX)
        forget_lines(dump); /* one entry that makes no sense makes all of them doubtful */
    return lapse_jit_code_sort_lines(dump->code, dump->first_line, dump->line_count);
}

/* One record; the size of it, 0 at the end or where the file makes no sense any more. */
static uint64_t take_record(struct dump *dump, uint64_t offset, int *error)
{
    const uint8_t *at;
    if (view(dump, offset, RECORD_BYTES, &at) < RECORD_BYTES)
        return 0;
    uint32_t id = number32(at), size = number32(at + 4);
    uint64_t time_ns = dump->no_times ? 0 : number64(at + 8);
    if (size < RECORD_BYTES || id == CODE_CLOSE || view(dump, offset + size - 1, 1, &at) < 1)
        return 0; /* no record, the last one, or one that is not written out yet */
    uint64_t body = offset + RECORD_BYTES, end = offset + size;
    if (id == CODE_LOAD)
        *error = take_load(dump, body, end, time_ns);
    else if (id == CODE_MOVE)
        *error = take_move(dump, body, end, time_ns);
    else if (id == DEBUG_INFO)
        *error = take_lines(dump, body, end);
    return *error ? 0 : size;
}

static int open_dump(struct dump *dump, uint64_t *first)
{
    const uint8_t *at;
    if (view(dump, 0, HEADER_BYTES, &at) < HEADER_BYTES || number32(at) != MAGIC ||
        number32(at + 4) != 1 ||
        (number32(at + 12) != MACHINE_X86_64 && number32(at + 12) != MACHINE_NONE) ||
        number64(at + 32) & ~(uint64_t)TIME_IS_TSC)
        return -EBADMSG;
    *first = number32(at + 8) < HEADER_BYTES ? HEADER_BYTES : number32(at + 8);
    dump->no_times = number64(at + 32) & TIME_IS_TSC; /* counted by another clock than the samples */
    return 0;
}

static int read_records(struct dump *dump)
{
    uint64_t offset = 0, size;
    uint32_t before = dump->code->line_count;
    int error = open_dump(dump, &offset);
    while (!error && !dump->error && (size = take_record(dump, offset, &error))) {
        offset += size;
        if (offset > dump->source->bytes_max)
            error = -EFBIG;
    }
    if (dump->least_offset != UINT64_MAX && dump->least_offset >= ELF_HEADER_BYTES)
        for (uint32_t i = before; i < dump->code->line_count; i++)
            dump->code->lines[i].address -= ELF_HEADER_BYTES;
    return dump->error ? (int)dump->error : error;
}

int lapse_jit_code_read_dump(struct lapse_jit_code *code, const struct lapse_jit_source *source)
{
    const struct lapse_allocator *allocator = code->allocator;
    struct dump *dump = allocator->resize(allocator->context, NULL, 0, sizeof *dump);
    const uint64_t *wanted = code->wanted;
    if (!dump)
        return -ENOMEM;
    memset(dump, 0, sizeof *dump);
    dump->code = code;
    dump->source = source;
    dump->least_offset = UINT64_MAX;
    /* What nobody wants may move to a place that matters, or end what stood there. */
    code->wanted = NULL;
    int error = read_records(dump);
    code->wanted = wanted;
    free_buckets(dump);
    allocator->resize(allocator->context, dump, sizeof *dump, 0);
    return error ? error : lapse_jit_code_settle(code);
}
