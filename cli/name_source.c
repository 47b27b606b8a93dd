/* SPDX-License-Identifier: MIT */
#include "name_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "text.h"

enum { DEBUG_DIRS_MAX = 16, TEXT_BYTES = 4096 };

static struct {
    struct lapse_offline_options options;
    const char *debug_dirs[DEBUG_DIRS_MAX];
    struct lapse_offline *offline;
    uint32_t notes_said;
    time_t start;
    bool shown; /* a line of progress is on the terminal */
} source;

/* The value of `--name=VALUE` or `--name VALUE`; *at then is on the last argument used. */
static const char *value_of(const char *name, int argc, char **argv, int *at)
{
    size_t size = strlen(name);
    if (strncmp(argv[*at], name, size))
        return NULL;
    if (argv[*at][size] == '=')
        return argv[*at] + size + 1;
    return !argv[*at][size] && *at + 1 < argc ? argv[++*at] : NULL;
}

static bool read_style(const char *command, const char *text)
{
    static const char *const styles[] = { "full", "simple", "none" };
    for (int i = 0; i < 3; i++) {
        if (!strcmp(text, styles[i])) {
            source.options.demangle = (enum lapse_demangle)i;
            return true;
        }
    }
    lapse_complain(command, "--demangle: '%s' is not full, simple or none", text);
    return false;
}

static bool is_option(const char *word)
{
    return !strcmp(word, "--symfs") || !strcmp(word, "--debug-dir") || !strcmp(word, "--demangle");
}

bool lapse_name_source_options(const char *command, int *argc, char **argv)
{
    int kept = 1, at = 1;
    for (; at < *argc && strcmp(argv[at], "--"); at++) {
        const char *text;
        if ((text = value_of("--symfs", *argc, argv, &at))) {
            source.options.symfs = text;
        } else if ((text = value_of("--debug-dir", *argc, argv, &at))) {
            if (source.options.debug_dir_count == DEBUG_DIRS_MAX) {
                lapse_complain(command, "--debug-dir: more than %d", DEBUG_DIRS_MAX);
                return false;
            }
            source.debug_dirs[source.options.debug_dir_count++] = text;
        } else if ((text = value_of("--demangle", *argc, argv, &at))) {
            if (!read_style(command, text))
                return false;
        } else if (is_option(argv[at])) { /* the last word: nothing follows */
            lapse_complain(command, "option '%s' requires an argument", argv[at]);
            return false;
        } else {
            argv[kept++] = argv[at];
        }
    }
    while (at < *argc)
        argv[kept++] = argv[at++];
    argv[kept] = NULL;
    *argc = kept;
    return true;
}

static void show(void *context, const char *what, uint64_t done, uint64_t total)
{
    char name[TEXT_BYTES];
    (void)context;
    if (time(NULL) - source.start < 1)
        return;
    name[lapse_terminal_name(name, sizeof name - 1, what)] = '\0';
    source.shown = true;
    if (total)
        fprintf(stderr, "\r\033[K%s: %3u %%", name,
                (unsigned)(100.0 * (double)done / (double)total));
    else
        fprintf(stderr, "\r\033[Kreading %s", name);
}

static void end(void)
{
    lapse_offline_destroy(source.offline);
}

struct lapse_offline *lapse_name_source(void)
{
    if (source.offline)
        return source.offline;
    source.start = time(NULL);
    source.options.debug_dirs = source.debug_dirs;
    if (isatty(STDERR_FILENO))
        source.options.progress = show;
    if (lapse_offline_create(&source.offline, &source.options))
        return NULL;
    atexit(end);
    return source.offline;
}

void lapse_name_source_notes(const char *command)
{
    char text[TEXT_BYTES];
    if (source.shown)
        fputs("\r\033[K", stderr);
    source.shown = false;
    for (; source.offline && source.notes_said < lapse_offline_note_count(source.offline);
         source.notes_said++) {
        const char *note = lapse_offline_note(source.offline, source.notes_said);
        text[lapse_terminal_name(text, sizeof text - 1, note)] = '\0';
        fprintf(stderr, "lapse %s: %s\n", command, text);
    }
}
