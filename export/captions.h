/* SPDX-License-Identifier: MIT */
/* What the exporters call things: titles, threads, modules; ids that are unique in a file; the zero
 * of its times. Offline only. */
#ifndef LAPSE_EXPORT_CAPTIONS_H
#define LAPSE_EXPORT_CAPTIONS_H

#include "format.h"

/* The title of the options, or the programs' names joined. */
void lapse_caption_title(char *to, size_t size, const struct lapse_profile *profile,
                         const struct lapse_export_options *options);
/* The thread's name, its process's when it has none. */
const char *lapse_caption_thread(const struct lapse_profile *profile, uint32_t thread);
/* Last part of a module's path. */
const char *lapse_module_name(const struct lapse_profile_module *module);

/* Earliest moment the profile knows: times in files count from here. */
uint64_t lapse_profile_zero(const struct lapse_profile *profile);
/* That moment in UTC, ns since the epoch; 0 unknown. */
uint64_t lapse_profile_zero_utc(const struct lapse_profile *profile);
/* Latest moment. */
uint64_t lapse_profile_end(const struct lapse_profile *profile);

/* Numbers of processes and threads as viewers key them: the kernel's, but where two processes of
 * several recordings share one, the later gets a number beyond what the kernel gives out. */
struct lapse_ids { uint32_t *processes, *threads; };
int lapse_ids_init(struct lapse_ids *ids, const struct lapse_profile *profile);
void lapse_ids_fini(struct lapse_ids *ids);

/* Kinds of code, for colours and categories. */
enum lapse_code_kind {
    LAPSE_CODE_USER, LAPSE_CODE_LIBRARY, LAPSE_CODE_LIBC, LAPSE_CODE_KERNEL_ENTRY, LAPSE_CODE_JIT,
    LAPSE_CODE_PSEUDO, LAPSE_CODE_KINDS,
};
enum lapse_code_kind lapse_code_kind(const struct lapse_profile *profile, uint32_t function);

/* Losses, each under its name, those that are not zero; `each` is called in a fixed order. */
void lapse_each_loss(const struct lapse_profile *profile, void *context,
                     void (*each)(void *context, const char *name, uint64_t value));

/* The line of a failed writer. */
void lapse_export_failed(char *error, size_t size, const char *format, int result);

#endif
