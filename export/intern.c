/* SPDX-License-Identifier: MIT */
/* See intern.h. */
#include "intern.h"

#include <stdlib.h>
#include <string.h>

static bool is_key(const void *context, uint32_t id, const void *key)
{
    return !memcmp(&((const struct lapse_key *)context)[id], key, sizeof(struct lapse_key));
}

uint32_t lapse_intern(struct lapse_intern *intern, struct lapse_key key, bool *is_new)
{
    uint64_t hash = 0;
    for (int i = 0; i < 4; i++)
        hash = lapse_hash(hash, key.word[i]);
    uint32_t number = lapse_index_find(&intern->index, hash, is_key, intern->keys, &key);
    if (is_new)
        *is_new = number == LAPSE_INDEX_NONE;
    if (number != LAPSE_INDEX_NONE)
        return number;
    struct lapse_key *keys = lapse_array_grow(intern->keys, intern->count, sizeof *keys);
    if (!keys)
        return LAPSE_INDEX_NONE;
    intern->keys = keys;
    keys[intern->count] = key;
    if (lapse_index_add(&intern->index, hash, intern->count))
        return LAPSE_INDEX_NONE;
    return intern->count++;
}

void lapse_intern_fini(struct lapse_intern *intern)
{
    lapse_index_free(&intern->index);
    free(intern->keys);
    *intern = (struct lapse_intern){ 0 };
}
