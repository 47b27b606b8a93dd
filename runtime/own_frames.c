/* SPDX-License-Identifier: MIT */
/* See own_frames.h. */
#include "own_frames.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include "walk.h"

struct lapse_own_code lapse_own_code_find(void)
{
    static const char name[] = "liblapse.so";
    struct lapse_own_code own = { 0, 0 };
    struct dl_find_object object;
    if (_dl_find_object((void *)(uintptr_t)lapse_own_code_find, &object))
        return own;
    const char *path = object.dlfo_link_map->l_name;
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (path && !strncmp(slash ? slash + 1 : path, name, sizeof name - 1)) {
        own.start = (uintptr_t)object.dlfo_map_start;
        own.end = (uintptr_t)object.dlfo_map_end;
    }
    return own;
}

uint32_t lapse_own_frames_strip(const struct lapse_own_code *own, uint64_t *pcs, uint32_t depth)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < depth; i++) {
        uint64_t address = pcs[i] & ~LAPSE_PC_GUESSED;
        if (address >= own->start && address < own->end)
            continue;
        /* A leaf's name is looked up at its pc, a return address may be the next function's. */
        pcs[kept] = !kept && i ? pcs[i] - 1 : pcs[i];
        kept++;
    }
    return kept;
}
