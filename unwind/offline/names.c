/* SPDX-License-Identifier: MIT */
/* Strings in blocks, found through an open-addressed table; an entry remembers its demangled form.
 */
#include "names.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 16, LONGEST = 1 << 16 };

struct block {
    struct block *next;
    char bytes[];
};
struct entry {
    char *text, *shown;
    uint32_t hash;
};

struct lapse_names {
    enum lapse_demangle style;
    struct block *blocks;
    char *at, *end; /* what is left of the first block */
    struct entry *entries;
    size_t count, capacity; /* capacity is a power of two */
    char scratch[LONGEST];
};

struct lapse_names *lapse_names_create(enum lapse_demangle style)
{
    struct lapse_names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    names->style = style;
    names->capacity = 1024;
    names->entries = calloc(names->capacity, sizeof *names->entries);
    if (!names->entries) {
        free(names);
        return NULL;
    }
    return names;
}

void lapse_names_destroy(struct lapse_names *names)
{
    if (!names)
        return;
    for (struct block *block = names->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    free(names->entries);
    free(names);
}

static char *keep(struct lapse_names *names, const char *text, size_t size)
{
    if ((size_t)(names->end - names->at) < size) {
        size_t room = size > BLOCK ? size : BLOCK;
        struct block *block = malloc(sizeof *block + room);
        if (!block)
            return NULL;
        block->next = names->blocks;
        names->blocks = block;
        names->at = block->bytes;
        names->end = block->bytes + room;
    }
    char *kept = memcpy(names->at, text, size);
    names->at += size;
    return kept;
}

static bool grow(struct lapse_names *names)
{
    size_t capacity = names->capacity * 2;
    struct entry *entries = calloc(capacity, sizeof *entries);
    if (!entries)
        return false;
    for (size_t i = 0; i < names->capacity; i++) {
        if (!names->entries[i].text)
            continue;
        size_t at = names->entries[i].hash & (capacity - 1);
        while (entries[at].text)
            at = (at + 1) & (capacity - 1);
        entries[at] = names->entries[i];
    }
    free(names->entries);
    names->entries = entries;
    names->capacity = capacity;
    return true;
}

static struct entry *intern(struct lapse_names *names, const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    size_t size = 0;
    for (; text[size]; size++)
        hash = (hash ^ (uint8_t)text[size]) * 16777619u;
    if (names->count * 4 >= names->capacity * 3 && !grow(names))
        return NULL;
    size_t at = hash & (names->capacity - 1);
    for (; names->entries[at].text; at = (at + 1) & (names->capacity - 1))
        if (names->entries[at].hash == hash && !strcmp(names->entries[at].text, text))
            return &names->entries[at];
    char *kept = keep(names, text, size + 1);
    if (!kept)
        return NULL;
    names->entries[at] = (struct entry){ kept, NULL, hash };
    names->count++;
    return &names->entries[at];
}

char *lapse_names_text(struct lapse_names *names, const char *text)
{
    struct entry *entry = intern(names, text);
    return entry ? entry->text : NULL;
}

char *lapse_names_path(struct lapse_names *names, const char *directory, const char *name)
{
    if (name[0] == '/' || !directory || !*directory)
        return lapse_names_text(names, name);
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/')
        length--;
    if (length + strlen(name) + 2 > sizeof names->scratch)
        return lapse_names_text(names, name);
    memcpy(names->scratch, directory, length);
    names->scratch[length] = '/';
    strcpy(names->scratch + length + (directory[length - 1] != '/'), name);
    return lapse_names_text(names, names->scratch);
}

struct lapse_shown_name lapse_names_symbol(struct lapse_names *names, const char *system_name)
{
    struct entry *entry = intern(names, system_name);
    if (!entry)
        return (struct lapse_shown_name){ 0 };
    if (!entry->shown) {
        char *text = entry->text;
        uint32_t length = lapse_demangle(names->scratch, sizeof names->scratch - 1, text,
                                         names->style);
        names->scratch[length] = '\0';
        /* Interning may move the table, so the entry is looked up again afterwards. */
        char *shown = lapse_names_text(names, names->scratch);
        entry = intern(names, text);
        if (!shown || !entry)
            return (struct lapse_shown_name){ text, NULL };
        entry->shown = shown;
    }
    return (struct lapse_shown_name){ entry->shown,
                                      entry->shown == entry->text ? NULL : entry->text };
}
