/* SPDX-License-Identifier: MIT */
/* Hash tables of the offline half: an index finds the number of a thing that lies in an array of the
 * caller, a map goes from one number to another, a string set keeps every text once.
 * All zero is empty. One owner at a time; memory from malloc. */
#ifndef LAPSE_EXPORT_INDEX_H
#define LAPSE_EXPORT_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LAPSE_INDEX_NONE = 0xffffffffu };

struct lapse_index {
    struct lapse_index_slot { uint32_t hash, id; } *slots; /* id LAPSE_INDEX_NONE: free */
    uint32_t count, capacity;                              /* capacity: 0 or a power of two */
};

typedef bool lapse_index_equal(const void *context, uint32_t id, const void *key);

/* Number of the thing that `equal` finds equal to `key`, or LAPSE_INDEX_NONE. */
uint32_t lapse_index_find(const struct lapse_index *index, uint64_t hash, lapse_index_equal *equal,
                          const void *context, const void *key);
/* Add a number that find did not give. Returns 0 or -ENOMEM. */
int lapse_index_add(struct lapse_index *index, uint64_t hash, uint32_t id);
void lapse_index_free(struct lapse_index *index);

uint64_t lapse_hash(uint64_t hash, uint64_t value); /* mixes one more value in; start with 0 */
uint64_t lapse_hash_bytes(const void *bytes, size_t size);

struct lapse_map {
    struct lapse_map_slot { uint64_t key; uint32_t value; bool used; } *slots;
    uint32_t count, capacity;
};

bool lapse_map_get(const struct lapse_map *map, uint64_t key, uint32_t *value);
int lapse_map_put(struct lapse_map *map, uint64_t key, uint32_t value); /* 0 or -ENOMEM */
void lapse_map_free(struct lapse_map *map);

struct lapse_strings {
    struct lapse_index index;
    const char **texts; /* by number, in order of first sight */
    uint32_t *sizes;
    uint32_t count;
    struct lapse_strings_block *blocks;
};

/* The one copy of a text, or NULL without memory. It lives as long as the set. */
const char *lapse_strings_keep(struct lapse_strings *strings, const char *text);
const char *lapse_strings_keep_bytes(struct lapse_strings *strings, const char *text, size_t size);
/* The same by number; LAPSE_INDEX_NONE without memory. */
uint32_t lapse_strings_number(struct lapse_strings *strings, const char *text, size_t size);
void lapse_strings_free(struct lapse_strings *strings);

/* Room for one more in an array that holds `count`: doubled at powers of two. Returns the array,
 * perhaps moved, or NULL (the old one stays). The array needs no record of its capacity. */
void *lapse_array_grow(void *array, uint32_t count, size_t item_size);
/* An array (or NULL) of which here and there a place is looked at: a large one gets pages of 2 MiB where
 * the system has some, or most looks wait for the page tables too. Returns the array. */
void *lapse_array_scattered(void *array, size_t size);

#endif
