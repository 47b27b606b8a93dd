/* SPDX-License-Identifier: MIT */
/* Names for every text form: they fit, they are clean, the escaped form reads back. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char *name = malloc(size + 1), *to = malloc(4 * size + 16);
    check(name && to);
    memcpy(name, bytes, size);
    name[size] = 0;
    size_t length = strlen(name), used = lapse_escaped_name(to, 4 * size + 16, name);
    for (size_t i = 0; i < used; i++)
        check((unsigned char)to[i] >= 0x20);
    used = lapse_unescape_name(to, used);
    check(used == length && !memcmp(to, name, length));
    used = lapse_folded_name(to, 4 * size + 16, name);
    check(used && to[0] != ' ' && to[used - 1] != ' ' && to[0] != '#');
    for (size_t i = 0; i < used; i++)
        check((unsigned char)to[i] >= 0x20 && to[i] != ';');
    used = lapse_terminal_name(to, 4 * size + 16, name);
    for (size_t i = 0; i < used; i++)
        check((unsigned char)to[i] >= 0x20);
    for (size_t room = 0; room < 9; room++) { /* never beyond the room */
        char *exact = malloc(room + 1);
        check(exact && lapse_folded_name(exact, room, name) <= room);
        check(lapse_escaped_name(exact, room, name) <= room);
        check(lapse_terminal_name(exact, room, name) <= room);
        free(exact);
    }
    memcpy(to, bytes, size);
    check(lapse_unescape_name(to, size) <= size);
    free(name);
    free(to);
    return 0;
}
