/* SPDX-License-Identifier: MIT */
/* See leftover_text.h. */
#include "leftover_text.h"

#include "../runtime/annotations.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_LABELS = 9, SET_ID = 1, SET_LABEL = 2, LABEL_KEY = 1, LABEL_VALUE = 2, LABEL_KEY_ADDRESS = 3,
       LABEL_VALUE_ADDRESS = 4, SPAN_NAME = 4, SPAN_NAME_ADDRESS = 5 };
#define TEXT_MOST 1024 /* as the runtime cuts them; a hostile spool has longer ones */

/* The newest text at an address is the one that the ring means. */
static int keep(struct lapse_leftover_text *text, uint64_t address, struct lapse_wire_reader bytes)
{
    size_t size = strnlen((const char *)bytes.at, (size_t)(bytes.end - bytes.at));
    size = size < TEXT_MOST ? size : TEXT_MOST;
    const char *known = lapse_leftover_text_at(text, address);
    if (!address || (known && strlen(known) == size && !memcmp(known, bytes.at, size)))
        return 0;
    char **texts = lapse_array_grow(text->texts, text->count, sizeof *texts);
    if (!texts)
        return -ENOMEM;
    text->texts = texts;
    char *copy = malloc(size + 1);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, bytes.at, size);
    copy[size] = 0;
    texts[text->count] = copy;
    return lapse_map_put(&text->by_address, address, text->count++);
}

/* A message with text in one field and its address in another. */
static int keep_field(struct lapse_leftover_text *text, struct lapse_wire_reader message, uint32_t text_field,
                      uint32_t address_field)
{
    static const uint8_t empty[1]; /* "" is left out */
    struct lapse_wire_reader body, found = { empty, empty };
    uint64_t value, address = 0;
    uint32_t field;
    while (lapse_wire_next(&message, &field, &value, &body) == 1)
        if (field == text_field)
            found = body;
        else if (field == address_field)
            address = value;
    return keep(text, address, found);
}

int lapse_leftover_text_labels(struct lapse_leftover_text *text, struct lapse_wire_reader set)
{
    struct lapse_wire_reader body;
    uint64_t value;
    uint32_t field;
    int error = 0;
    while (!error && lapse_wire_next(&set, &field, &value, &body) == 1)
        if (field == SET_ID && value > text->last_set && value < UINT32_MAX / 2) {
            text->last_set = (uint32_t)value;
        } else if (field == SET_LABEL) {
            error = keep_field(text, body, LABEL_KEY, LABEL_KEY_ADDRESS);
            if (!error)
                error = keep_field(text, body, LABEL_VALUE, LABEL_VALUE_ADDRESS);
        }
    return error;
}

int lapse_leftover_text_span(struct lapse_leftover_text *text, struct lapse_wire_reader span)
{
    return keep_field(text, span, SPAN_NAME, SPAN_NAME_ADDRESS);
}

const char *lapse_leftover_text_at(const struct lapse_leftover_text *text, uint64_t address)
{
    uint32_t at;
    return lapse_map_get(&text->by_address, address, &at) ? text->texts[at] : NULL;
}

static uint64_t hash_of(const struct lapse_record *record)
{
    uint64_t hash = record->label_count;
    for (uint32_t i = 0; i < 2 * record->label_count; i++)
        hash = (hash ^ record->labels[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
    return hash;
}

static uint32_t put_labels(const struct lapse_leftover_text *text, struct lapse_wire *chunk,
                           const struct lapse_record *record)
{
    uint32_t known = 0;
    for (uint32_t i = 0; i < record->label_count; i++) {
        const char *key = lapse_leftover_text_at(text, record->labels[2 * i]);
        const char *value = lapse_leftover_text_at(text, record->labels[2 * i + 1]);
        if (!key || !value)
            continue;
        size_t label = lapse_wire_begin(chunk, SET_LABEL);
        lapse_wire_string(chunk, LABEL_KEY, key);
        lapse_wire_string(chunk, LABEL_VALUE, value);
        lapse_wire_end(chunk, label);
        known++;
    }
    return known;
}

int lapse_leftover_text_set(struct lapse_leftover_text *text, struct lapse_wire *chunk,
                            const struct lapse_record *record, uint32_t *set)
{
    uint64_t hash = hash_of(record);
    *set = 0; /* a ring with more labels than a sample carries is hostile */
    if (!record->label_count || record->label_count > LAPSE_LABELS_MAX ||
        lapse_map_get(&text->sets, hash, set))
        return 0;
    size_t before = chunk->size, mark = lapse_wire_begin(chunk, CHUNK_LABELS);
    lapse_wire_uint(chunk, SET_ID, text->last_set + 1);
    if (put_labels(text, chunk, record)) {
        *set = ++text->last_set;
        lapse_wire_end(chunk, mark);
    } else {
        chunk->size = before;
    }
    return lapse_map_put(&text->sets, hash, *set);
}

void lapse_leftover_text_free(struct lapse_leftover_text *text)
{
    for (uint32_t i = 0; i < text->count; i++)
        free(text->texts[i]);
    free(text->texts);
    lapse_map_free(&text->by_address);
    lapse_map_free(&text->sets);
}
