/* SPDX-License-Identifier: MIT */
/* An environment without us: LAPSE_FOLLOW=0 gives children a copy in which LD_PRELOAD names every
 * library that it named, but liblapse.so. The host's own environment is never written to.
 * Called by interpose_exec.c, also in vfork children: works in the caller's memory. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "interpose_state.h"

#define PRELOAD "LD_PRELOAD="
static const size_t preload_size = sizeof PRELOAD - 1;

static bool is_preload(const char *variable)
{
    return strncmp(variable, PRELOAD, preload_size) == 0;
}

/* Entries are separated by colons and blanks, as the loader reads them. */
static bool separates(char c)
{
    return c == ':' || c == ' ';
}

static bool names_lapse(const char *entry, size_t size)
{
    static const char own[] = "liblapse.so";
    size_t start = size;
    while (start > 0 && entry[start - 1] != '/')
        start--;
    return size - start >= sizeof own - 1 && memcmp(entry + start, own, sizeof own - 1) == 0;
}

size_t lapse_environment_size(char *const *environment, size_t *text_size)
{
    size_t count = 1;
    *text_size = 0;
    for (; *environment; environment++, count++)
        if (is_preload(*environment))
            *text_size += strlen(*environment) + 1;
    return count;
}

/* Writes the entries of `value` that are not ours; the number of bytes written, without the end. */
static size_t copy_entries(const char *value, char *text)
{
    size_t written = 0;
    while (*value) {
        size_t size = 0;
        while (value[size] && !separates(value[size]))
            size++;
        if (size && !names_lapse(value, size)) {
            if (written)
                text[written++] = ':';
            memcpy(text + written, value, size);
            written += size;
        }
        value += size;
        while (separates(*value))
            value++;
    }
    text[written] = '\0';
    return written;
}

void lapse_environment_copy(char *const *environment, char **copy, char *text)
{
    for (; *environment; environment++) {
        if (!is_preload(*environment)) {
            *copy++ = *environment;
            continue;
        }
        memcpy(text, PRELOAD, preload_size);
        size_t size = copy_entries(*environment + preload_size, text + preload_size);
        if (!size)
            continue; /* it named nothing but us */
        *copy++ = text;
        text += preload_size + size + 1;
    }
    *copy = NULL;
}
