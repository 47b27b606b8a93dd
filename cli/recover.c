/* SPDX-License-Identifier: MIT */
/* lapse recover: what a killed process or a killed `lapse record` left behind becomes outputs, with
 * words about what is missing. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "format.h"
#include "input.h"
#include "record.h"
#include "table.h"

static const char help[] =
    "usage: lapse recover [-o NAME] FILE...\n"
    "       lapse recover [-o NAME] FOLDER\n"
    "\n"
    "Reads spools as far as they go and writes NAME.folded and NAME.events (default: the first FILE\n"
    "without `.lapse`; an existing file is never overwritten, a number is added). Says on standard\n"
    "error what is missing. A FILE is a recording, however it ends. A FOLDER (.lapse-run-...) is what a\n"
    "`lapse record` that was killed left, or one whose processes ran on: it becomes NAME.lapse (default:\n"
    "recovered.lapse) with what was in the memory of killed processes, then the outputs are written.\n"
    "\n"
    "  -o, --output=NAME  of the outputs\n"
    "  -h, --help         this text\n";

enum { NUMBERS = 10000 };

static FILE *create(char path[PATH_MAX], const char *stem, const char *suffix)
{
    int fd = -1;
    for (int number = 0; number < NUMBERS && fd < 0; number++) {
        int size = number ? snprintf(path, PATH_MAX, "%s.%d.%s", stem, number, suffix)
                          : snprintf(path, PATH_MAX, "%s.%s", stem, suffix);
        if (size >= PATH_MAX)
            errno = ENAMETOOLONG;
        else
            fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    return fd < 0 ? NULL : fdopen(fd, "w");
}

static int write_output(struct lapse_profile *profile, const char *stem, const char *format_name)
{
    const struct lapse_export_format *format = lapse_export_format_find(format_name);
    const struct lapse_export_options options = { 0 };
    char path[PATH_MAX], error[512] = "";
    FILE *file = create(path, stem, format->extension);
    if (!file)
        return lapse_complain("recover", "%s: %s", path, strerror(errno));
    int result = format->write(profile, file, &options, error, sizeof error);
    bool failed = fflush(file) || ferror(file);
    if (fclose(file) || failed || result) {
        unlink(path);
        return lapse_complain("recover", "%s: %s", path, *error ? error : "cannot be written");
    }
    fprintf(stderr, "%s\n", path);
    return 0;
}

static int write_outputs(struct lapse_profile *profile, const char *stem)
{
    struct lapse_view *view;
    int error = lapse_view_create(&view, profile, NULL);
    if (error)
        return lapse_complain("recover", "%s", strerror(-error));
    const struct lapse_table table = { .profile = profile, .view = view, .to = stderr };
    lapse_table_summary(&table);
    lapse_view_destroy(view);
    if (!profile->count)
        return lapse_complain("recover", "there are no samples in it"), 1;
    int status = write_output(profile, stem, "folded");
    return status || !profile->has_times ? status : write_output(profile, stem, "events");
}

/* A run's folder becomes a recording. Returns 0 and its path, or the exit status. */
static int recover_folder(char *folder, const char *output, char path[PATH_MAX])
{
    struct lapse_record_place place;
    int error = lapse_record_place_find(&place, folder, output ? output : "recovered");
    if (error)
        return lapse_complain("recover", "%s: %s", folder, error == -ENOTDIR ? "not the folder of a run"
                                                                              : strerror(-error));
    if (lapse_record_collect(&place))
        return 1;
    lapse_record_place_remove(&place);
    lapse_record_tell_living(&place, "recover");
    free(place.living);
    if (!place.spool_count)
        return lapse_complain("recover", "%s: there are no samples in it", folder), 1;
    fprintf(stderr, "%s\n", place.path);
    memcpy(path, place.path, PATH_MAX);
    return 0;
}

static bool is_folder(const char *path)
{
    struct stat status;
    return !stat(path, &status) && S_ISDIR(status.st_mode);
}

int lapse_command_recover(int argc, char **argv)
{
    static const struct option options[] = {
        { "output", required_argument, NULL, 'o' }, { "help", no_argument, NULL, 'h' }, { 0 },
    };
    const struct lapse_input_options how = { 0 };
    struct lapse_profile *profile;
    const char *output = NULL;
    char stem[PATH_MAX], path[PATH_MAX];
    for (int option; (option = getopt_long(argc, argv, "o:h", options, NULL)) != -1;) {
        if (option == 'h')
            return lapse_show_help("recover", help);
        if (option == '?')
            return LAPSE_STATUS_BAD;
        output = optarg;
    }
    if (argc - optind == 1 && is_folder(argv[optind])) {
        int status = recover_folder(argv[optind], output, path);
        if (status)
            return status;
        argv[optind] = path;
        output = NULL;
    }
    int status = lapse_input_open("recover", &profile, argv + optind, argc - optind, &how);
    if (status)
        return status;
    snprintf(stem, sizeof stem, "%s", output ? output : strcmp(argv[optind], "-") ? argv[optind] : "recovered");
    size_t size = strlen(stem);
    if (!output && size > 6 && !strcmp(stem + size - 6, ".lapse"))
        stem[size - 6] = 0;
    status = write_outputs(profile, stem);
    lapse_input_close(profile);
    return status;
}
