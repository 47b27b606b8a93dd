/* SPDX-License-Identifier: MIT */
/* Opening profiles; see input.h. */
#include "input.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "chunk_file.h"
#include "command.h"
#include "name_source.h"

#define ERROR_BYTES 4096

/* What takes no second is not worth a line. A profile calls for progress as long as it is open, in every
 * pass over its samples: so this outlives the opening, and is one for all profiles of the command. */
static struct progress { const char *command; time_t start; bool shown; } progress;

static void show(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    if (!total || time(NULL) - progress.start < 1)
        return;
    progress.shown = done < total;
    fprintf(stderr, done < total ? "\rlapse %s: reading, %3u %%" : "\r\033[K", progress.command,
            (unsigned)(100.0 * (double)done / (double)total));
}

void lapse_input_hide_progress(void)
{
    if (progress.shown)
        fputs("\r\033[K", stderr);
    progress.shown = false;
}

int lapse_input_open(const char *command, struct lapse_profile **profile, char *const *paths,
                     int count, const struct lapse_input_options *options)
{
    char error[ERROR_BYTES] = "";
    struct lapse_profile_options how = { .lines = options->lines,
                                         .no_inlines = options->no_inlines };
    if (count <= 0)
        return lapse_complain(command, "no file given; `-` is standard input");
    if (!lapse_inputs_differ(command, (const char *const *)paths, count))
        return LAPSE_STATUS_BAD;
    struct lapse_offline *names = options->no_symbols ? NULL : lapse_name_source();
    how.symbolizer = names ? lapse_offline_symbolizer(names) : NULL;
    progress = (struct progress){ command, time(NULL), false };
    if (!options->quiet && isatty(STDERR_FILENO))
        how.progress = show;
    int result = lapse_profile_open(profile, (const char *const *)paths, (uint32_t)count, &how,
                                    error, sizeof error);
    lapse_input_hide_progress();
    lapse_name_source_notes(command);
    if (!result)
        return 0;
    return lapse_complain(command, "%s", *error ? error : strerror(-result));
}

void lapse_input_close(struct lapse_profile *profile)
{
    lapse_profile_close(profile);
}

int lapse_input_spool(struct lapse_lines *lines, char path[LAPSE_SPOOL_PATH], int *fd)
{
    *fd = lapse_copy_to_temporary(lines->bytes + lines->at, lines->end - lines->at, lines->fd);
    lines->at = lines->end;
    snprintf(path, LAPSE_SPOOL_PATH, "/proc/self/fd/%d", *fd);
    return *fd < 0 ? *fd : 0;
}

bool lapse_inputs_differ(const char *command, const char *const *paths, int count)
{
    int standard = 0;
    for (int i = 0; i < count; i++)
        standard += !strcmp(paths[i], "-");
    if (standard > 1)
        lapse_complain(command, "standard input is named %d times, but can be read once", standard);
    return standard < 2;
}

bool lapse_output_is_input(const char *command, const char *output, const char *const *paths,
                           int count)
{
    struct stat to, from;
    if (!output || stat(output, &to) || !S_ISREG(to.st_mode))
        return false;
    for (int i = 0; i < count; i++) {
        int failed = strcmp(paths[i], "-") ? stat(paths[i], &from) : fstat(STDIN_FILENO, &from);
        if (failed || from.st_dev != to.st_dev || from.st_ino != to.st_ino)
            continue;
        lapse_complain(command, "%s: is an input, and would be overwritten", output);
        return true;
    }
    return false;
}
