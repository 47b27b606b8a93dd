/* SPDX-License-Identifier: MIT */
/* The table of code made at run time (jit_code.h): sorted once after reading, looked up by address and
 * time. Loads overlap where memory was used again. */
#include "jit_code.h"

#include <errno.h>
#include <stdlib.h>

int lapse_jit_code_add(struct lapse_jit_code *code, const struct lapse_jit_load *load, const char *name,
                       uint32_t name_size)
{
    if (!load->size || load->start + load->size < load->start || !name_size)
        return 0;
    struct lapse_jit_load *loads = lapse_array_grow(code->loads, code->load_count, sizeof *loads);
    if (!loads)
        return -ENOMEM;
    code->loads = loads;
    code->settled = false;
    loads[code->load_count] = *load;
    loads[code->load_count].order = code->load_count;
    loads[code->load_count].name = lapse_strings_keep_bytes(&code->strings, name, name_size);
    return loads[code->load_count++].name ? 0 : -ENOMEM;
}

static int by_start(const void *a, const void *b)
{
    const struct lapse_jit_load *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

static void settle(struct lapse_jit_code *code)
{
    uint64_t reach = 0;
    if (code->load_count)
        qsort(code->loads, code->load_count, sizeof *code->loads, by_start);
    for (uint32_t i = 0; i < code->load_count; i++) {
        uint64_t end = code->loads[i].start + code->loads[i].size;
        reach = end > reach ? end : reach;
        code->loads[i].reach = reach;
    }
    code->settled = true;
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

uint64_t lapse_jit_code_until(struct lapse_jit_code *code, const struct lapse_jit_load *load)
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

uint32_t lapse_jit_code_all(struct lapse_jit_code *code, uint64_t address,
                            const struct lapse_jit_load **loads, uint32_t max)
{
    uint32_t count = 0;
    if (!code->settled)
        settle(code);
    for (uint32_t i = below(code, address + 1); i > 0 && code->loads[i - 1].reach > address; i--) {
        const struct lapse_jit_load *load = &code->loads[i - 1];
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

const struct lapse_jit_load *lapse_jit_code_find(struct lapse_jit_code *code, uint64_t address,
                                                 uint64_t time_ns, uint64_t *until_ns)
{
    const struct lapse_jit_load *found = NULL;
    *until_ns = 0;
    if (!code->settled)
        settle(code);
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
    const struct lapse_jit_line *lines = code->lines + load->first_line;
    uint32_t low = 0, high = load->line_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (lines[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &lines[low - 1] : NULL;
}

void lapse_jit_code_free(struct lapse_jit_code *code)
{
    free(code->loads);
    free(code->lines);
    lapse_strings_free(&code->strings);
    *code = (struct lapse_jit_code){ 0 };
}
