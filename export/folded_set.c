/* SPDX-License-Identifier: MIT */
/* Folded lines in memory: entries point into one block of bytes. See folded_set.h. */
#include "folded_set.h"

#include <errno.h>
#include <stdlib.h>

struct key { const char *stack; size_t size; };

static bool same_stack(const void *context, uint32_t id, const void *wanted)
{
    const struct lapse_folded_set *set = context;
    const struct key *key = wanted;
    const struct lapse_folded_entry *entry = &set->entries[id];
    return entry->size == key->size && !memcmp(set->bytes + entry->at, key->stack, key->size);
}

static int make_room(struct lapse_folded_set *set, size_t size)
{
    if (set->count == set->capacity) {
        uint32_t capacity = set->capacity ? set->capacity * 2 : 1024;
        void *entries = capacity ? realloc(set->entries, capacity * sizeof *set->entries) : NULL;
        if (!entries)
            return -ENOMEM;
        set->entries = entries;
        set->capacity = capacity;
    }
    if (set->byte_capacity - set->size < size) {
        size_t capacity = (set->byte_capacity + size) * 2;
        char *bytes = realloc(set->bytes, capacity);
        if (!bytes)
            return -ENOMEM;
        set->bytes = bytes;
        set->byte_capacity = capacity;
    }
    return 0;
}

int lapse_folded_set_add(struct lapse_folded_set *set, const char *stack, size_t size,
                         uint64_t value)
{
    struct key key = { stack, size };
    uint64_t hash = lapse_hash_bytes(stack, size);
    uint32_t id = lapse_index_find(&set->index, hash, same_stack, set, &key);
    if (id != LAPSE_INDEX_NONE)
        return __builtin_add_overflow(set->entries[id].value, value, &set->entries[id].value)
                   ? -EOVERFLOW : 0;
    if (size > UINT32_MAX || make_room(set, size) ||
        lapse_index_add(&set->index, hash, set->count))
        return -ENOMEM;
    if (size)
        memcpy(set->bytes + set->size, stack, size);
    set->entries[set->count++] = (struct lapse_folded_entry){ set->size, (uint32_t)size, value };
    set->size += size;
    return 0;
}

static int by_stack(const void *left, const void *right, void *context)
{
    const struct lapse_folded_entry *a = left, *b = right;
    const char *bytes = context;
    return lapse_folded_compare(bytes + a->at, a->size, bytes + b->at, b->size);
}

void lapse_folded_set_sort(struct lapse_folded_set *set)
{
    if (set->count)
        qsort_r(set->entries, set->count, sizeof *set->entries, by_stack, set->bytes);
}

void lapse_folded_write_line(struct lapse_output *output, const char *stack, size_t size,
                             uint64_t value)
{
    char *to = lapse_output_room(output, size + 22);
    if (!to)
        return;
    memcpy(to, stack, size);
    to[size] = ' ';
    size += 1 + lapse_decimal(to + size + 1, value);
    to[size] = '\n';
    output->size += size + 1;
}

void lapse_folded_set_write(const struct lapse_folded_set *set, struct lapse_output *output)
{
    for (uint32_t i = 0; i < set->count; i++)
        lapse_folded_write_line(output, set->bytes + set->entries[i].at, set->entries[i].size,
                                set->entries[i].value);
}

size_t lapse_folded_set_weight(const struct lapse_folded_set *set)
{
    return set->size + set->count * (sizeof *set->entries + 4 * sizeof *set->index.slots);
}

void lapse_folded_set_clear(struct lapse_folded_set *set)
{
    set->count = 0;
    set->size = 0;
    set->index.count = 0;
    if (set->index.slots)
        memset(set->index.slots, 0xff, set->index.capacity * sizeof *set->index.slots);
}

void lapse_folded_set_free(struct lapse_folded_set *set)
{
    free(set->entries);
    free(set->bytes);
    lapse_index_free(&set->index);
    *set = (struct lapse_folded_set){ 0 };
}
