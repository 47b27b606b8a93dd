/* SPDX-License-Identifier: MIT */
/* One ELF file that the offline symbolizer reads: opened without trust (a FIFO, a device, a sparse
 * or a cut file is refused or read within its bounds), mapped privately. Offline only; one owner.
 */
#ifndef LAPSE_OFFLINE_OBJECT_FILE_H
#define LAPSE_OFFLINE_OBJECT_FILE_H

#include <elfutils/libdw.h>
#include <gelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct lapse_build_id {
    uint8_t bytes[32];
    uint32_t size;
};

struct lapse_object_file {
    char *path;
    uint8_t *bytes;
    size_t size;
    bool mapped; /* else allocated */
    volatile bool cut; /* became shorter while it was read: what it says is not to be believed */
    struct lapse_object_file *next; /* all mapped ones, for the handler of SIGBUS */
    Elf *elf;
    struct lapse_build_id build_id;
    dev_t device;
    ino_t inode;
    uint64_t modified_ns; /* real time */
};

/* Returns 0 or a negative errno: -ENOEXEC for what is no x86-64 ELF file, -ENOTSUP for what is no
 * regular file. */
int lapse_object_file_open(struct lapse_object_file **file, const char *path);
/* A file image in memory; takes over `bytes` (allocated), also on failure. */
int lapse_object_file_adopt(struct lapse_object_file **file, const char *path, uint8_t *bytes,
                            size_t size);
void lapse_object_file_close(struct lapse_object_file *file);

/* A section by name with its contents (decompressed); NULL when missing or without contents. */
Elf_Scn *lapse_object_file_section(const struct lapse_object_file *file, const char *name,
                                   GElf_Shdr *header);
Elf_Data *lapse_object_file_data(const struct lapse_object_file *file, const char *name);

/* Is a section there that libelf cannot unpack (zstd, before 0.189)? */
bool lapse_object_file_is_packed(const struct lapse_object_file *file, const char *name);

/* Let go of the pages behind a stretch of the file's bytes; reading brings them back. */
void lapse_object_file_forget(const struct lapse_object_file *file, const void *start, size_t size);

bool lapse_build_id_equal(const struct lapse_build_id *a, const struct lapse_build_id *b);
/* Lower-case hex into text[65]. */
void lapse_build_id_text(const struct lapse_build_id *id, char text[65]);

#endif
