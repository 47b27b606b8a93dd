/* SPDX-License-Identifier: MIT */
/* The build id in a stretch of ELF notes, mapped or from a file. Used by modules.c and elf_file.c. */
#ifndef LAPSE_UNWIND_BUILD_ID_H
#define LAPSE_UNWIND_BUILD_ID_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LAPSE_BUILD_ID_MAX 32

/* Returns its size, 0 when there is none. Longer ones are cut. */
static inline uint32_t lapse_build_id_parse(const uint8_t *notes, size_t size, uint8_t *build_id)
{
    Elf64_Nhdr note;
    for (size_t at = 0; size - at >= sizeof note;) {
        memcpy(&note, notes + at, sizeof note);
        at += sizeof note;
        size_t name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
        size_t content = ((size_t)note.n_descsz + 3) & ~(size_t)3;
        if (name > size - at || note.n_descsz > size - at - name)
            return 0;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && !memcmp(notes + at, "GNU", 4)) {
            uint32_t length =
                note.n_descsz < LAPSE_BUILD_ID_MAX ? note.n_descsz : LAPSE_BUILD_ID_MAX;
            memcpy(build_id, notes + at + name, length);
            return length;
        }
        if (content > size - at - name)
            return 0;
        at += name + content;
    }
    return 0;
}

#endif
