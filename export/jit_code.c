/* SPDX-License-Identifier: MIT */
/* The table of code made at run time (jit_code.h): sorted once after reading, looked up by address and
 * time. Loads overlap where memory was used again. */
#include "jit_code.h"

#include <errno.h>
#include <string.h>

#include "sort.h"

enum { TEXTS_BYTES = 32 << 10 };

struct lapse_jit_texts {
    struct lapse_jit_texts *next;
    uint32_t used, size;
    char bytes[];
};

static void *resize(const struct lapse_jit_code *code, void *old, size_t old_size, size_t new_size)
{
    return code->allocator->resize(code->allocator->context, old, old_size, new_size);
}

/* Room for one more in an array. */
static int grow(const struct lapse_jit_code *code, void **array, uint32_t count, uint32_t *capacity,
                size_t item)
{
    if (count < *capacity)
        return 0;
    uint32_t wanted = *capacity ? *capacity * 2 : 64;
    if (wanted <= *capacity || (code->items_max && count >= code->items_max))
        return -E2BIG;
    void *grown = resize(code, *array, *capacity * item, wanted * item);
    if (!grown)
        return -ENOMEM;
    *array = grown;
    *capacity = wanted;
    return 0;
}

const char *lapse_jit_code_keep(struct lapse_jit_code *code, const char *text, uint32_t size)
{
    struct lapse_jit_texts *texts = code->texts;
    if (!texts || texts->size - texts->used <= size) {
        uint32_t room = size < TEXTS_BYTES ? TEXTS_BYTES : size + 1;
        texts = resize(code, NULL, 0, sizeof *texts + room);
        if (!texts)
            return NULL;
        *texts = (struct lapse_jit_texts){ .next = code->texts, .size = room };
        code->texts = texts;
    }
    char *copy = texts->bytes + texts->used;
    memcpy(copy, text, size);
    copy[size] = 0;
    texts->used += size + 1;
    return copy;
}

static bool is_wanted(const struct lapse_jit_code *code, uint64_t start, uint64_t size)
{
    uint32_t low = 0, high = code->wanted_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (code->wanted[middle] < start)
            low = middle + 1;
        else
            high = middle;
    }
    return low < code->wanted_count && code->wanted[low] - start < size;
}

int lapse_jit_code_add(struct lapse_jit_code *code, const struct lapse_jit_load *load, const char *name,
                       uint32_t name_size)
{
    if (!load->size || load->start + load->size < load->start || !name_size ||
        (code->wanted && !is_wanted(code, load->start, load->size)))
        return 0;
    void *loads = code->loads;
    int error = grow(code, &loads, code->load_count, &code->load_capacity, sizeof *load);
    code->loads = loads;
    const char *kept = error ? NULL : lapse_jit_code_keep(code, name, name_size);
    if (!kept)
        return error ? error : -ENOMEM;
    struct lapse_jit_load *added = &code->loads[code->load_count];
    *added = *load;
    added->order = code->load_count++;
    added->name = kept;
    return 0;
}

int lapse_jit_code_add_line(struct lapse_jit_code *code, uint64_t address, const char *file, uint32_t line)
{
    void *lines = code->lines;
    int error = grow(code, &lines, code->line_count, &code->line_capacity, sizeof *code->lines);
    code->lines = lines;
    if (!error)
        code->lines[code->line_count++] = (struct lapse_jit_line){ address, file, line };
    return error;
}

/* Put the items of an array into another order, which takes room for a copy. */
static int arrange(const struct lapse_jit_code *code, void *items, uint32_t count, size_t item, lapse_less *less)
{
    size_t order_size = count * sizeof(uint32_t), size = count * item;
    uint32_t *order = resize(code, NULL, 0, order_size);
    char *copy = order ? resize(code, NULL, 0, size) : NULL;
    if (copy) {
        for (uint32_t i = 0; i < count; i++)
            order[i] = i;
        lapse_sort(order, count, less, items);
        memcpy(copy, items, size);
        for (uint32_t i = 0; i < count; i++)
            memcpy((char *)items + i * item, copy + order[i] * item, item);
        resize(code, copy, size, 0);
    }
    if (order)
        resize(code, order, order_size, 0);
    return copy ? 0 : -ENOMEM;
}

static bool line_less(void *context, uint32_t a, uint32_t b)
{
    const struct lapse_jit_line *lines = context;
    return lines[a].address != lines[b].address ? lines[a].address < lines[b].address : a < b;
}

int lapse_jit_code_sort_lines(struct lapse_jit_code *code, uint32_t first, uint32_t count)
{
    if (!count)
        return 0;
    struct lapse_jit_line *lines = code->lines + first;
    for (uint32_t i = 1; i < count; i++)
        if (lines[i].address < lines[i - 1].address)
            return arrange(code, lines, count, sizeof *lines, line_less);
    return 0;
}

static bool load_less(void *context, uint32_t a, uint32_t b)
{
    const struct lapse_jit_load *loads = context;
    return loads[a].start != loads[b].start ? loads[a].start < loads[b].start
                                            : loads[a].order < loads[b].order;
}

int lapse_jit_code_settle(struct lapse_jit_code *code)
{
    uint64_t reach = 0;
    if (code->load_count && arrange(code, code->loads, code->load_count, sizeof *code->loads, load_less))
        return -ENOMEM;
    for (uint32_t i = 0; i < code->load_count; i++) {
        uint64_t end = code->loads[i].start + code->loads[i].size;
        reach = end > reach ? end : reach;
        code->loads[i].reach = reach;
    }
    return 0;
}

/* Number of loads that start below `end`. */
static uint32_t below(const struct lapse_jit_code *code, uint64_t end)
{
    uint32_t low = 0, high = code->load_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (code->loads[middle].start < end)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_later(const struct lapse_jit_load *a, const struct lapse_jit_load *b)
{
    return a->from_ns != b->from_ns ? a->from_ns > b->from_ns : a->order > b->order;
}

uint64_t lapse_jit_code_until(const struct lapse_jit_code *code, const struct lapse_jit_load *load)
{
    uint64_t until = load->end_ns;
    uint32_t i = below(code, load->start + load->size);
    for (; i > 0 && code->loads[i - 1].reach > load->start; i--) {
        const struct lapse_jit_load *other = &code->loads[i - 1];
        if (other->start + other->size > load->start && is_later(other, load) &&
            (!until || other->from_ns < until))
            until = other->from_ns;
    }
    return until;
}

void lapse_jit_code_part(const struct lapse_jit_code *code, const struct lapse_jit_load *load,
                         uint64_t address, uint64_t *start, uint64_t *end)
{
    *start = load->start;
    *end = load->start + load->size;
    for (uint32_t i = below(code, *end); i > 0 && code->loads[i - 1].reach > load->start; i--) {
        const struct lapse_jit_load *other = &code->loads[i - 1];
        uint64_t other_end = other->start + other->size;
        if (other->from_ns || !is_later(other, load) || other_end <= load->start)
            continue;
        if (other->start > address && other->start < *end)
            *end = other->start;
        else if (other_end <= address && other_end > *start)
            *start = other_end;
    }
}

uint32_t lapse_jit_code_all(const struct lapse_jit_code *code, uint64_t address,
                            struct lapse_jit_load **loads, uint32_t max)
{
    uint32_t count = 0;
    for (uint32_t i = below(code, address + 1); i > 0 && code->loads[i - 1].reach > address; i--) {
        struct lapse_jit_load *load = &code->loads[i - 1];
        uint32_t at = count;
        if (load->start + load->size <= address)
            continue;
        for (; at > 0 && is_later(loads[at - 1], load); at--)
            if (at < max)
                loads[at] = loads[at - 1];
        if (at < max) {
            loads[at] = load;
            count += count < max;
        }
    }
    return count;
}

const struct lapse_jit_load *lapse_jit_code_find(const struct lapse_jit_code *code, uint64_t address,
                                                 uint64_t time_ns, uint64_t *until_ns)
{
    const struct lapse_jit_load *found = NULL;
    *until_ns = 0;
    for (uint32_t i = below(code, address + 1); i > 0 && code->loads[i - 1].reach > address; i--) {
        const struct lapse_jit_load *load = &code->loads[i - 1];
        if (load->start + load->size > address && load->from_ns <= time_ns &&
            (!found || is_later(load, found)))
            found = load;
    }
    if (!found)
        return NULL;
    *until_ns = lapse_jit_code_until(code, found);
    return *until_ns && *until_ns <= time_ns ? NULL : found;
}

const struct lapse_jit_line *lapse_jit_code_line(const struct lapse_jit_code *code,
                                                 const struct lapse_jit_load *load, uint64_t address)
{
    uint32_t low = 0, high = load->line_count;
    if (!high)
        return NULL;
    const struct lapse_jit_line *lines = code->lines + load->first_line;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (lines[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &lines[low - 1] : NULL;
}

bool lapse_is_run_time_code(const char *path)
{
    static const char *const starts[] = { "[anon", "/memfd:", "/dev/zero", "/SYSV" };
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (!strncmp(path, starts[i], strlen(starts[i])))
            return true;
    return false;
}

void lapse_jit_code_free(struct lapse_jit_code *code)
{
    for (struct lapse_jit_texts *texts = code->texts, *next; texts; texts = next) {
        next = texts->next;
        resize(code, texts, sizeof *texts + texts->size, 0);
    }
    if (code->loads)
        resize(code, code->loads, code->load_capacity * sizeof *code->loads, 0);
    if (code->lines)
        resize(code, code->lines, code->line_capacity * sizeof *code->lines, 0);
    code->texts = NULL;
    code->loads = NULL;
    code->lines = NULL;
    code->load_count = code->load_capacity = code->line_count = code->line_capacity = 0;
}
