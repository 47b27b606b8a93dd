/* SPDX-License-Identifier: MIT */
/* The reader of perf maps and jitdump files (the process's own and `lapse record`'s), on any bytes. The
 * first byte chooses which, how short reads are, whether memory ends, and whether only some addresses
 * are wanted. What is found at an address covers it, at a time not before its beginning; a name without
 * times is that of the last entry, over the whole range for which it is put into a recording; and
 * leaving out what nobody wants changes no answer. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "jit_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { LOADS = 8, ADDRESSES = 64 };
enum { IS_DUMP = 1, SHORT_READS = 2, LITTLE_MEMORY = 4 };

struct input {
    const uint8_t *bytes;
    size_t size, piece;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static long give(void *context, void *to, size_t size, uint64_t offset)
{
    const struct input *input = context;
    if (offset >= input->size)
        return 0;
    size = size < input->piece ? size : input->piece;
    size = size < input->size - offset ? size : input->size - offset;
    memcpy(to, input->bytes + offset, size);
    return (long)size;
}

/* Sizes are checked as an arena would rely on them; *context: how many calls still succeed. */
static void *resize(void *context, void *old, size_t old_size, size_t new_size)
{
    uint32_t *left = context;
    size_t *block = old ? (size_t *)old - 2 : NULL;
    check(!block || *block == old_size);
    if (!new_size) {
        free(block);
        return NULL;
    }
    if (!*left)
        return NULL;
    --*left;
    block = realloc(block, new_size + 2 * sizeof *block);
    check(block);
    *block = new_size;
    return block + 2;
}

static int read_code(struct lapse_jit_code *code, const struct input *input, uint8_t choice)
{
    struct lapse_jit_source source = { give, (void *)input, UINT64_C(1) << 28 };
    code->items_max = 1 << 16;
    return choice & IS_DUMP ? lapse_jit_code_read_dump(code, &source) : lapse_jit_code_read_map(code, &source);
}

static void look_up(const struct lapse_jit_code *code, uint64_t address, uint64_t time_ns)
{
    struct lapse_jit_load *loads[LOADS];
    uint64_t until;
    const struct lapse_jit_load *load = lapse_jit_code_find(code, address, time_ns, &until);
    if (load) {
        check(address - load->start < load->size && load->from_ns <= time_ns && *load->name);
        check(!until || until > time_ns);
        const struct lapse_jit_line *line = lapse_jit_code_line(code, load, address);
        check(!line || (line->address <= address && line->file));
    }
    uint32_t count = lapse_jit_code_all(code, address, loads, LOADS);
    check(count <= LOADS);
    for (uint32_t i = 0; i < count; i++) {
        check(address - loads[i]->start < loads[i]->size);
        check(!i || loads[i - 1]->from_ns <= loads[i]->from_ns);
    }
}

/* The last entry of a perf map that covers an address, by looking at them all. */
static const struct lapse_jit_load *last_at(const struct lapse_jit_code *code, uint64_t address)
{
    const struct lapse_jit_load *last = NULL;
    for (uint32_t i = 0; i < code->load_count; i++)
        if (address - code->loads[i].start < code->loads[i].size &&
            (!last || code->loads[i].order > last->order))
            last = &code->loads[i];
    return last;
}

static void check_part(const struct lapse_jit_code *code, uint64_t address)
{
    uint64_t start, end, unused;
    const struct lapse_jit_load *last = last_at(code, address);
    check(lapse_jit_code_find(code, address, 1, &unused) == last);
    if (!last)
        return;
    lapse_jit_code_part(code, last, address, &start, &end);
    check(start <= address && address < end);
    check(last_at(code, start) == last && last_at(code, end - 1) == last);
    check(start == last->start || last_at(code, start - 1) != last);
    check(end == last->start + last->size || last_at(code, end) != last);
}

static void check_put(const struct lapse_jit_code *code, struct lapse_jit_load *load)
{
    static uint8_t bytes[2 * LAPSE_JIT_PUT_MAX];
    struct lapse_wire wire = { .bytes = bytes, .capacity = sizeof bytes };
    lapse_jit_put_symbol(&wire, code, load, load->start, load->name);
    check(wire.size > 0 && wire.size <= LAPSE_JIT_PUT_MAX);
    size_t size = wire.size;
    lapse_jit_put_symbol(&wire, code, load, load->start, load->name);
    check(wire.size == size);
    lapse_jit_put_line(&wire, code, load, load->start + 1, true, load->name);
    check(wire.size - size <= LAPSE_JIT_PUT_MAX && !wire.overflow);
}

static void check_wanted(const struct lapse_jit_code *all, const struct input *input, uint8_t choice)
{
    uint64_t wanted[ADDRESSES], until[2];
    uint32_t memory = UINT32_MAX;
    const struct lapse_allocator allocator = { resize, &memory };
    struct lapse_jit_code some = { .allocator = &allocator, .wanted = wanted, .wanted_count = ADDRESSES };
    for (uint64_t i = 0; i < ADDRESSES; i++)
        wanted[i] = 0x1000 + i * 16;
    check(!read_code(&some, input, choice));
    check(some.load_count <= all->load_count);
    for (uint32_t i = 0; i < ADDRESSES; i++) {
        const struct lapse_jit_load *one = lapse_jit_code_find(all, wanted[i], 1 + i * 10, &until[0]);
        const struct lapse_jit_load *other = lapse_jit_code_find(&some, wanted[i], 1 + i * 10, &until[1]);
        check(!one == !other && (!one || !strcmp(one->name, other->name)));
    }
    lapse_jit_code_free(&some);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (!size)
        return 0;
    struct input input = { bytes + 1, size - 1, bytes[0] & SHORT_READS ? 7 : size };
    uint32_t memory = bytes[0] & LITTLE_MEMORY ? bytes[0] >> 3 : UINT32_MAX;
    const struct lapse_allocator allocator = { resize, &memory };
    struct lapse_jit_code code = { .allocator = &allocator };
    int result = read_code(&code, &input, bytes[0]);
    check(result != -ENOMEM || bytes[0] & LITTLE_MEMORY);
    if (!result && memory > 100) {
        for (uint64_t i = 0; i < ADDRESSES; i++)
            look_up(&code, 0x1000 + i * 16, i * 10);
        for (uint32_t i = 0; i < code.load_count && i < 64; i++) {
            look_up(&code, code.loads[i].start + code.loads[i].size - 1, code.loads[i].from_ns);
            if (!(bytes[0] & IS_DUMP))
                check_part(&code, code.loads[i].start + code.loads[i].size / 2);
            check_put(&code, &code.loads[i]);
        }
        check_wanted(&code, &input, bytes[0]);
    }
    lapse_jit_code_free(&code);
    return 0;
}
