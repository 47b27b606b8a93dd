/* SPDX-License-Identifier: MIT */
/* lapse record in parts: record.c reads options and tells the story, record_check.c looks at the
 * command before it runs, record_run.c runs it, record_series.c runs it or two in turn as often as
 * asked, record_collect.c makes one recording of the spools. */
#ifndef LAPSE_CLI_RECORD_H
#define LAPSE_CLI_RECORD_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>

/* Why a command cannot be profiled, though it can run. */
enum lapse_obstacle {
    LAPSE_OBSTACLE_NONE,
    LAPSE_OBSTACLE_STATIC,   /* no dynamic loader, so no LD_PRELOAD */
    LAPSE_OBSTACLE_CLASS,    /* another machine or word size */
    LAPSE_OBSTACLE_SETUID,   /* the loader ignores LD_PRELOAD */
};

/* Find the command as execvp would. Returns 0 and its path, or 126/127 (the shell's statuses) after a
 * message. */
int lapse_record_find(const char *command, char path[PATH_MAX]);
/* Look at the file (a script's interpreter for a script). `subject` is the file that was judged. */
enum lapse_obstacle lapse_record_obstacle(const char *path, char subject[PATH_MAX]);
/* liblapse.so: beside this executable, in ../lib or where it was installed. Returns false after a
 * message. */
bool lapse_record_library(char path[PATH_MAX]);

struct lapse_record_place;

struct lapse_record_run {
    char *const *arguments; /* of the command */
    const char *path;
    char **environment;     /* for the command */
    int status;             /* as the shell would give it: 0-255, 128+N */
    bool signalled;
    int signal;
    struct rusage usage;    /* CPU time of the command and all children that were waited for */
    double seconds;         /* it took */
    const struct lapse_record_place *place; /* its spools get names of run-time code at the end */
};

/* Run it and wait for its end; signals sent to us are passed on. Returns 0 or a negative errno when
 * it could not be started. */
int lapse_record_run(struct lapse_record_run *run);

/* While there are folders of ours and no command runs, signals wait: one that ended us would leave the
 * folders, and in them what was recorded. A command that runs gets them. */
void lapse_record_hold_signals(void);
/* One that came meanwhile, or 0: nothing more is to be run. */
int lapse_record_held_signal(void);
/* What waits comes now. */
void lapse_record_release_signals(void);

struct lapse_record_place {
    char folder[PATH_MAX];  /* where the recording goes */
    char spools[PATH_MAX];  /* the private folder of this run */
    char rings[PATH_MAX];   /* and that of its processes' rings; empty: they are private memory */
    char base[NAME_MAX + 1]; /* of the recording without `.lapse` */
    char path[PATH_MAX];    /* of the recording, when it is there */
    uint32_t spool_count;   /* spools with something in them */
    uint64_t bytes;
    uint64_t tree_ns;       /* CPU time of all runs that are kept; 0: not known */
    uint8_t (*living)[16];  /* sessions of processes that still run: what they record stays here */
    uint32_t living_count;
    uint64_t rescued;       /* samples found in the rings of processes that were killed */
};

/* Make the private folder; nothing is run when that fails. `output` may have `.lapse` at its end.
 * Returns 0, or a negative errno after a message. */
int lapse_record_place_make(struct lapse_record_place *place, const char *output);
/* All spools become one recording, never in place of another file. Returns 0 (spool_count 0: nothing
 * was sampled and there is no file) or a negative errno after a message; spools then stay. */
int lapse_record_collect(struct lapse_record_place *place);
/* A folder that a run has left behind (lapse recover). Returns 0, or -ENOTDIR when it is none. */
int lapse_record_place_find(struct lapse_record_place *place, const char *folder, const char *output);
/* The private folders and all in them; those of living processes stay. */
void lapse_record_place_remove(struct lapse_record_place *place);
/* One line about processes that still run, if there are any. */
void lapse_record_tell_living(const struct lapse_record_place *place, const char *command);

/* record_rings.c: the folder of the rings, its memory if there is room. Without one, rings are
 * private and what a killed process recorded last is lost. */
void lapse_record_rings_make(struct lapse_record_place *place);
/* What killed processes left in their rings goes into their spools; the living are noted. Returns 0
 * or a negative errno; rings that could not be read or written stay. */
int lapse_record_rings_take(struct lapse_record_place *place);
void lapse_record_rings_remove(struct lapse_record_place *place);

/* When the session of a spool started and which it is, from the header in its first chunk. Zero when it
 * has none. */
struct lapse_spool_mark { uint64_t start_ns; uint8_t session_id[16]; };
struct lapse_spool_mark lapse_record_spool_mark(int fd);
struct lapse_spool_mark lapse_record_mark_of(const uint8_t *chunk, size_t size); /* with its head; may be cut short */
/* Only regular files with one name: root's folder may be written to by others. -1: no. */
struct stat;
int lapse_record_open_spool(int folder, const char *name, int flags, struct stat *status);

/* record_shared.c: the spools that short processes share. Set where the runtime finds that of a run. */
void lapse_record_shared_set(const struct lapse_record_place *place, const char *prefix);
/* Processes that live on may end while their recording is made: those that do from now on begin another
 * file, and what is in the one that was there is whole. */
void lapse_record_shared_take(const struct lapse_record_place *place);
bool lapse_record_is_shared(const char *name);
/* One process's part of it, from *at on. False: there is none any more. */
struct lapse_shared_part { struct lapse_spool_mark mark; uint64_t offset, bytes; };
bool lapse_record_shared_next(int fd, uint64_t *at, struct lapse_shared_part *part);
bool lapse_record_shared_has(int fd, const uint8_t session_id[16]);

struct lapse_record_command {
    char **arguments;
    char path[PATH_MAX];
};
struct lapse_record_sum { uint32_t runs; double cpu_mean, cpu_squares, seconds; };

/* Runs of one command, or of two in turn. */
struct lapse_record_series {
    struct lapse_record_command commands[2]; /* the first is the base, variant 0 */
    uint32_t command_count;
    uint32_t repeat, warmup;
    const char *out_folder; /* of the spools, as LAPSE_OUT wants it */
    /* Afterwards: */
    struct lapse_record_run last;
    struct lapse_record_sum sums[2]; /* of the runs that are kept */
    double cpu_seconds;
    bool started;           /* at least one run could be started */
};

/* Words of a command line; a shell for one that needs it. `line` is kept and changed. Returns 0 or an
 * exit status after a message. */
int lapse_record_split(struct lapse_record_command *command, char *line);
/* Warm-ups, then the runs: A B A B. Ends with the first run that fails; its spools and those of
 * warm-ups are removed (but for a single plain run, which is kept whatever its status). Returns that
 * status or 0. */
int lapse_record_series_run(struct lapse_record_series *series, const struct lapse_record_place *place);
/* A line for each command: CPU time per run with its interval. */
void lapse_record_series_tell(const struct lapse_record_series *series, FILE *to);
double lapse_record_cpu_seconds(const struct rusage *usage);

#endif
