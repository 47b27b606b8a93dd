/* SPDX-License-Identifier: MIT */
/* Every string that the offline symbolizer hands out: kept once, demangled once, alive as long as
 * the table. Offline only; one owner. */
#ifndef LAPSE_OFFLINE_NAMES_H
#define LAPSE_OFFLINE_NAMES_H

#include "symbols.h"

struct lapse_names;

struct lapse_shown_name {
    char *name;        /* as shown */
    char *system_name; /* as linked; NULL when the same */
};

struct lapse_names *lapse_names_create(enum lapse_demangle style);
void lapse_names_destroy(struct lapse_names *names);

/* The kept copy of a text; NULL when memory is short. */
char *lapse_names_text(struct lapse_names *names, const char *text);
/* `directory`/`name`, or `name` alone when it is absolute or the directory is empty. */
char *lapse_names_path(struct lapse_names *names, const char *directory, const char *name);
/* A linked name and its demangled form; name is NULL when memory is short. */
struct lapse_shown_name lapse_names_symbol(struct lapse_names *names, const char *system_name);

#endif
