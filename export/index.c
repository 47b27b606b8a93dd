/* SPDX-License-Identifier: MIT */
/* Open addressing with linear probing, at most half full. See index.h. */
#include "index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_CAPACITY 64u
#define BLOCK_BYTES 65536u

struct lapse_strings_block {
    struct lapse_strings_block *next;
    size_t size, capacity;
    char bytes[];
};

/* The finisher of MurmurHash3 (public domain): every input bit reaches every output bit. */
uint64_t lapse_hash(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) + 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
    hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
    return hash ^ hash >> 33;
}

static uint64_t word_at(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Of 1 to 7 bytes, without a call of memcpy. */
static uint64_t short_word(const char *at, size_t size)
{
    uint32_t low, high;
    if (size < 4)
        return (uint64_t)(unsigned char)at[0] << 16 | (uint64_t)(unsigned char)at[size / 2] << 8 |
               (unsigned char)at[size - 1];
    memcpy(&low, at, sizeof low);
    memcpy(&high, at + size - 4, sizeof high);
    return (uint64_t)high << 32 | low;
}

/* Both halves of the product: one multiplication mixes two words. */
static uint64_t multiply(uint64_t a, uint64_t b)
{
    __extension__ typedef unsigned __int128 product;
    product both = (product)a * b;
    return (uint64_t)both ^ (uint64_t)(both >> 64);
}

uint64_t lapse_hash_bytes(const void *bytes, size_t size)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u, other = 0xc2b2ae3d27d4eb4fu;
    const char *at = bytes;
    uint64_t hash = size * odd, left = 0, right = 0;
    for (; size > 16; size -= 16, at += 16)
        hash = multiply(word_at(at) ^ odd, word_at(at + 8) ^ hash);
    if (size >= 8) { /* the two words may overlap */
        left = word_at(at);
        right = word_at(at + size - 8);
    } else if (size) {
        left = short_word(at, size);
    }
    return multiply(left ^ other, multiply(right ^ hash, odd) ^ hash);
}

uint32_t lapse_index_find(const struct lapse_index *index, uint64_t hash, lapse_index_equal *equal,
                          const void *context, const void *key)
{
    uint32_t mask = index->capacity - 1;
    if (!index->capacity)
        return LAPSE_INDEX_NONE;
    for (uint32_t at = (uint32_t)hash & mask;; at = (at + 1) & mask) {
        const struct lapse_index_slot *slot = &index->slots[at];
        if (slot->id == LAPSE_INDEX_NONE)
            return LAPSE_INDEX_NONE;
        if (slot->hash == (uint32_t)hash && equal(context, slot->id, key))
            return slot->id;
    }
}

static void index_place(struct lapse_index_slot *slots, uint32_t mask, uint32_t hash, uint32_t id)
{
    uint32_t at = hash & mask;
    while (slots[at].id != LAPSE_INDEX_NONE)
        at = (at + 1) & mask;
    slots[at] = (struct lapse_index_slot){ hash, id };
}

static int index_grow(struct lapse_index *index)
{
    uint32_t capacity = index->capacity ? index->capacity * 2 : FIRST_CAPACITY;
    struct lapse_index_slot *slots = NULL;
    size_t size = capacity * sizeof *slots;
    if (capacity)
        slots = lapse_array_scattered(malloc(size), size);
    if (!slots)
        return -ENOMEM;
    memset(slots, 0xff, size);
    for (uint32_t i = 0; i < index->capacity; i++)
        if (index->slots[i].id != LAPSE_INDEX_NONE)
            index_place(slots, capacity - 1, index->slots[i].hash, index->slots[i].id);
    free(index->slots);
    index->slots = slots;
    index->capacity = capacity;
    return 0;
}

int lapse_index_add(struct lapse_index *index, uint64_t hash, uint32_t id)
{
    if (index->count >= index->capacity / 2 && index_grow(index))
        return -ENOMEM;
    index_place(index->slots, index->capacity - 1, (uint32_t)hash, id);
    index->count++;
    return 0;
}

void lapse_index_free(struct lapse_index *index)
{
    free(index->slots);
    *index = (struct lapse_index){ 0 };
}

static struct lapse_map_slot *map_slot(struct lapse_map_slot *slots, uint32_t capacity, uint64_t key)
{
    uint32_t at = (uint32_t)lapse_hash(0, key) & (capacity - 1);
    while (slots[at].used && slots[at].key != key)
        at = (at + 1) & (capacity - 1);
    return &slots[at];
}

bool lapse_map_get(const struct lapse_map *map, uint64_t key, uint32_t *value)
{
    const struct lapse_map_slot *slot;
    if (!map->capacity)
        return false;
    slot = map_slot(map->slots, map->capacity, key);
    if (slot->used)
        *value = slot->value;
    return slot->used;
}

static int map_grow(struct lapse_map *map)
{
    uint32_t capacity = map->capacity ? map->capacity * 2 : FIRST_CAPACITY;
    struct lapse_map_slot *slots = NULL;
    if (capacity)
        slots = calloc(capacity, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->slots[i].used)
            *map_slot(slots, capacity, map->slots[i].key) = map->slots[i];
    free(map->slots);
    map->slots = slots;
    map->capacity = capacity;
    return 0;
}

int lapse_map_put(struct lapse_map *map, uint64_t key, uint32_t value)
{
    struct lapse_map_slot *slot;
    if (map->count >= map->capacity / 2 && map_grow(map))
        return -ENOMEM;
    slot = map_slot(map->slots, map->capacity, key);
    map->count += !slot->used;
    *slot = (struct lapse_map_slot){ key, value, true };
    return 0;
}

void lapse_map_free(struct lapse_map *map)
{
    free(map->slots);
    *map = (struct lapse_map){ 0 };
}

struct text_key { const char *text; size_t size; };

static bool text_equal(const void *context, uint32_t id, const void *key)
{
    const struct lapse_strings *strings = context;
    const struct text_key *wanted = key;
    return strings->sizes[id] == wanted->size &&
           !memcmp(strings->texts[id], wanted->text, wanted->size);
}

static char *strings_room(struct lapse_strings *strings, size_t size)
{
    struct lapse_strings_block *block = strings->blocks;
    if (!block || block->capacity - block->size < size) {
        size_t capacity = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        block = malloc(sizeof *block + capacity);
        if (!block)
            return NULL;
        *block = (struct lapse_strings_block){ .next = strings->blocks, .capacity = capacity };
        strings->blocks = block;
    }
    block->size += size;
    return block->bytes + block->size - size;
}

static int strings_grow(struct lapse_strings *strings)
{
    const char **texts = lapse_array_grow(strings->texts, strings->count, sizeof *texts);
    if (texts)
        strings->texts = texts;
    uint32_t *sizes = lapse_array_grow(strings->sizes, strings->count, sizeof *sizes);
    if (sizes)
        strings->sizes = sizes;
    return texts && sizes ? 0 : -ENOMEM;
}

uint32_t lapse_strings_number(struct lapse_strings *strings, const char *text, size_t size)
{
    struct text_key key = { text, size };
    uint64_t hash = lapse_hash_bytes(text, size);
    uint32_t id = lapse_index_find(&strings->index, hash, text_equal, strings, &key);
    if (id != LAPSE_INDEX_NONE)
        return id;
    char *copy = size < UINT32_MAX && !strings_grow(strings) ? strings_room(strings, size + 1) : NULL;
    if (!copy || lapse_index_add(&strings->index, hash, strings->count))
        return LAPSE_INDEX_NONE;
    memcpy(copy, text, size);
    copy[size] = 0;
    strings->texts[strings->count] = copy;
    strings->sizes[strings->count] = (uint32_t)size;
    return strings->count++;
}

const char *lapse_strings_keep_bytes(struct lapse_strings *strings, const char *text, size_t size)
{
    uint32_t id = lapse_strings_number(strings, text, size);
    return id == LAPSE_INDEX_NONE ? NULL : strings->texts[id];
}

const char *lapse_strings_keep(struct lapse_strings *strings, const char *text)
{
    return lapse_strings_keep_bytes(strings, text, strlen(text));
}

void lapse_strings_free(struct lapse_strings *strings)
{
    while (strings->blocks) {
        struct lapse_strings_block *next = strings->blocks->next;
        free(strings->blocks);
        strings->blocks = next;
    }
    lapse_index_free(&strings->index);
    free(strings->texts);
    free(strings->sizes);
    *strings = (struct lapse_strings){ 0 };
}

void *lapse_array_scattered(void *array, size_t size)
{
    enum { LARGE_PAGE = 2 << 20, PAGE = 4096 };
    uintptr_t start = ((uintptr_t)array + PAGE - 1) & -(uintptr_t)PAGE;
    if (array && size >= 2 * LARGE_PAGE)
        madvise((void *)start, ((uintptr_t)array + size - start) & -(size_t)PAGE, MADV_HUGEPAGE);
    return array;
}

void *lapse_array_grow(void *array, uint32_t count, size_t item_size)
{
    enum { FIRST_ITEMS = 8 };
    if (!count)
        return realloc(array, FIRST_ITEMS * item_size);
    if (count < FIRST_ITEMS || (count & (count - 1)))
        return array;
    if (count >= LAPSE_INDEX_NONE / 2)
        return NULL;
    size_t size = (size_t)count * 2 * item_size;
    return lapse_array_scattered(realloc(array, size), size);
}
