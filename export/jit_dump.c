/* SPDX-License-Identifier: MIT */
/* Reader of jitdump files (jit_code.h). A header, then records of 16 bytes and a body: loads, moves,
 * source lines that stand before the load they belong to, and others that are stepped over by their
 * size. The code bytes in a load are not read. */
#include "jit_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC 0x4a695444u
#define HEADER_BYTES 40u
#define RECORD_BYTES 16u
#define LOAD_BYTES 40u
#define MOVE_BYTES 48u
#define MACHINE_X86_64 62u
#define TIME_IS_TSC 1u
#define ELF_HEADER_BYTES 0x40u
#define PADDING_MAX 8u /* behind the last entry */
#define FILE_BYTES_MAX (UINT64_C(1) << 32)
#define LINES_MAX (UINT32_C(1) << 26)

enum { WINDOW_BYTES = 1 << 16, NAME_BYTES = 4096 };
enum { CODE_LOAD, CODE_MOVE, DEBUG_INFO, CODE_CLOSE };

struct dump {
    struct lapse_jit_code *code;
    int fd;
    uint64_t window_offset;
    uint32_t window_size;
    bool no_times;
    struct lapse_map places; /* start and index of a load to its number */
    /* Lines that wait for their load. */
    uint64_t lines_of;
    uint32_t first_line, line_count;
    /* V8 adds the size of an ELF header to the addresses of lines: no line of any function is nearer
     * to its start then. */
    uint64_t least_offset;
    uint8_t window[WINDOW_BYTES];
};

/* Up to `size` bytes at an offset: how many there are. They stay until the next call. */
static uint32_t view(struct dump *dump, uint64_t offset, uint32_t size, const uint8_t **bytes)
{
    if (offset < dump->window_offset || offset + size > dump->window_offset + dump->window_size) {
        ssize_t got;
        while ((got = pread(dump->fd, dump->window, WINDOW_BYTES, (off_t)offset)) < 0 && errno == EINTR)
            ;
        dump->window_offset = offset;
        dump->window_size = got > 0 ? (uint32_t)got : 0;
    }
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

static int add_load(struct dump *dump, const struct lapse_jit_load *load, const char *name, uint32_t size)
{
    uint32_t number = dump->code->load_count;
    int error = lapse_jit_code_add(dump->code, load, name, size);
    if (error || dump->code->load_count == number)
        return error;
    return lapse_map_put(&dump->places, lapse_hash(lapse_hash(0, load->start), load->index), number);
}

static bool lines_fit(const struct dump *dump, const struct lapse_jit_load *load)
{
    const struct lapse_jit_line *lines = &dump->code->lines[dump->first_line];
    return lines[0].address >= load->start &&
           lines[dump->line_count - 1].address - load->start <= load->size + ELF_HEADER_BYTES;
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
    dump->line_count = 0;
    uint64_t room = end - body - LOAD_BYTES;
    uint32_t got = view(dump, body + LOAD_BYTES, room < NAME_BYTES ? (uint32_t)room : NAME_BYTES, &at);
    return add_load(dump, &load, (const char *)at, (uint32_t)strnlen((const char *)at, got));
}

static int take_move(struct dump *dump, uint64_t body, uint64_t end, uint64_t time_ns)
{
    const uint8_t *at;
    if (end - body < MOVE_BYTES || view(dump, body, MOVE_BYTES, &at) < MOVE_BYTES)
        return 0;
    uint64_t from = number64(at + 16), to = number64(at + 24), index = number64(at + 40);
    uint32_t number;
    if (!lapse_map_get(&dump->places, lapse_hash(lapse_hash(0, from), index), &number))
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

static int by_address(const void *a, const void *b)
{
    const struct lapse_jit_line *x = a, *y = b;
    return x->address < y->address ? -1 : x->address > y->address;
}

static int add_line(struct dump *dump, uint64_t address, uint32_t line, const char *file, uint32_t size)
{
    struct lapse_jit_code *code = dump->code;
    struct lapse_jit_line *lines = lapse_array_grow(code->lines, code->line_count, sizeof *lines);
    if (!lines)
        return -ENOMEM;
    code->lines = lines;
    /* One byte 0xff: the file of the line before. */
    bool same = size == 1 && (uint8_t)file[0] == 0xff && dump->line_count;
    const char *kept = same ? lines[code->line_count - 1].file
                            : lapse_strings_keep_bytes(&code->strings, file, size);
    if (!kept)
        return -ENOMEM;
    lines[code->line_count++] = (struct lapse_jit_line){ address, kept, line };
    dump->line_count++;
    return 0;
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

static void forget_lines(struct dump *dump)
{
    dump->code->line_count = dump->first_line;
    dump->line_count = 0;
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
    for (; count && end - offset > 16 && dump->code->line_count < LINES_MAX; count--) {
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
    if (dump->line_count)
        qsort(dump->code->lines + dump->first_line, dump->line_count, sizeof(struct lapse_jit_line),
              by_address);
    return 0;
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
        number32(at + 4) != 1 || number32(at + 12) != MACHINE_X86_64 ||
        number64(at + 32) & ~(uint64_t)TIME_IS_TSC)
        return -EBADMSG;
    *first = number32(at + 8) < HEADER_BYTES ? HEADER_BYTES : number32(at + 8);
    dump->no_times = number64(at + 32) & TIME_IS_TSC; /* counted by another clock than the samples */
    return 0;
}

int lapse_jit_code_read_dump(struct lapse_jit_code *code, int fd)
{
    struct dump *dump = malloc(sizeof *dump);
    uint64_t offset = 0, size;
    if (!dump)
        return -ENOMEM;
    *dump = (struct dump){ .code = code, .fd = fd, .least_offset = UINT64_MAX };
    uint32_t before = code->line_count;
    int error = open_dump(dump, &offset);
    while (!error && offset < FILE_BYTES_MAX && (size = take_record(dump, offset, &error)))
        offset += size;
    if (dump->least_offset != UINT64_MAX && dump->least_offset >= ELF_HEADER_BYTES)
        for (uint32_t i = before; i < code->line_count; i++)
            code->lines[i].address -= ELF_HEADER_BYTES;
    lapse_map_free(&dump->places);
    free(dump);
    return error;
}
