/* SPDX-License-Identifier: MIT */
/* Names, lines and inlined functions for the command line: `struct lapse_symbolizer` on libdw.
 *
 * A module of a recording is opened by path *and* build id: another file at its path is refused,
 * and a note says so. Debug information is looked for in this order: in the file, .build-id
 * folders, .gnu_debuglink (checksum compared), debuginfod when DEBUGINFOD_URLS is set;
 * .gnu_debugdata adds symbols. Nothing is read before the first address of a module is asked for;
 * the tables of a unit are built at its first address, and the least used are dropped beyond a
 * limit: feed addresses in order where many are to be named. Offline only; one owner; not
 * thread-safe. */
#ifndef LAPSE_OFFLINE_H
#define LAPSE_OFFLINE_H

#include "profile.h"
#include "symbols.h"

struct lapse_offline;

struct lapse_offline_options {
    const char *symfs;             /* modules are looked for below this folder; NULL: none */
    const char *const *debug_dirs; /* searched before /usr/lib/debug */
    uint32_t debug_dir_count;
    enum lapse_demangle demangle;
    bool no_debuginfod; /* never ask, whatever DEBUGINFOD_URLS says */
    /* Called with a line of text while something takes long ("reading libx.so", a download with
     * done and total bytes, 0 unknown). May be NULL. */
    void (*progress)(void *context, const char *what, uint64_t done, uint64_t total);
    void *progress_context;
    size_t cache_bytes; /* limit of built tables; 0: 256 MiB */
};

/* `options` and its strings must outlive the symbolizer. Returns 0 or -ENOMEM. */
int lapse_offline_create(struct lapse_offline **offline,
                         const struct lapse_offline_options *options);
void lapse_offline_destroy(struct lapse_offline *offline);

/* Valid as long as `offline`. */
const struct lapse_symbolizer *lapse_offline_symbolizer(struct lapse_offline *offline);

/* What was refused or not found, one line each, each said once. */
uint32_t lapse_offline_note_count(const struct lapse_offline *offline);
const char *lapse_offline_note(const struct lapse_offline *offline, uint32_t index);

/* The function that covers an address of a session. */
struct lapse_offline_function {
    uint64_t start, size;
    char *name, *system_name, *file; /* system_name and file may be NULL */
    uint32_t line;                   /* of its declaration, 0 unknown */
};
bool lapse_offline_find_function(struct lapse_offline *offline, const struct lapse_session *session,
                                 uint64_t pc, uint64_t time_ns,
                                 struct lapse_offline_function *function);

/* One file outside any recording, by its absolute path, at addresses as linked. `build_id` is lower-case hex, "" or NULL:
 * any. Frames: a single one without a name says that only a line is known; 0 or a negative errno. */
int lapse_offline_file_frames(struct lapse_offline *offline, const char *path, const char *build_id,
                              uint64_t address, struct lapse_inline_frame *frames, uint32_t max,
                              uint32_t *count);
bool lapse_offline_file_function(struct lapse_offline *offline, const char *path, const char *build_id,
                                 uint64_t address, struct lapse_offline_function *function);
/* Where its code can be read (for a disassembler), NULL when it was refused or is gone. */
const char *lapse_offline_file_code(struct lapse_offline *offline, const char *path, const char *build_id);

#endif
