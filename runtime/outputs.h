/* SPDX-License-Identifier: MIT */
/* Names and text files at the end of a session. Context: the drain thread (or the thread that
 * finishes in its place), raw system calls, memory from the store's arena. */
#ifndef LAPSE_RUNTIME_OUTPUTS_H
#define LAPSE_RUNTIME_OUTPUTS_H

#include "jit_code.h"
#include "store.h"

#define LAPSE_WRITER_SIZE 65536u

/* A text file in the making. After the first error nothing more is written. */
struct lapse_writer {
    struct lapse_store *store;
    char path[LAPSE_PATH_MAX];
    char *bytes;
    size_t size;
    uint64_t offset;
    int fd, error;
};

void lapse_writer_open(struct lapse_writer *writer, struct lapse_store *store, const char *suffix);
void lapse_writer_bytes(struct lapse_writer *writer, const char *bytes, size_t size);
void lapse_writer_string(struct lapse_writer *writer, const char *string);
void lapse_writer_number(struct lapse_writer *writer, uint64_t number);
void lapse_writer_close(struct lapse_writer *writer); /* says what went wrong, once */

/* The names of all functions of the tree, ascending by address. */
struct lapse_names {
    struct lapse_store *store;
    struct lapse_function_name *functions;
    uint32_t count;
    struct lapse_jit_code code; /* made at run time */
};
/* A function's name in the store's memory, demangled; what it has already stays. */
void lapse_names_set(struct lapse_names *names, uint32_t i, const char *system_name);

/* run_time_names.c: perf maps and jitdump files, for the functions marked `run_time`. Returns 0, or
 * -ETIME past the deadline: then nothing is named. */
int lapse_run_time_names_find(struct lapse_names *names, uint64_t deadline_ns);
/* What was found, with times and lines, into the chunk under construction. */
void lapse_run_time_names_write(struct lapse_names *names);
void lapse_run_time_names_free(struct lapse_names *names);
/* Never NULL; pseudo-functions have names in brackets. */
const char *lapse_names_of(const struct lapse_names *names, uint64_t function);

/* events.c */
void lapse_events_write(const struct lapse_names *names);

#endif
