/* SPDX-License-Identifier: MIT */
/* lapse symbolize: the recording's own bytes, then chunks with names and lines for everything in
 * it. The result comes to its place when it is whole. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "name_source.h"
#include "new_file.h"
#include "symbolize.h"

static const char help[] =
    "usage: lapse symbolize [-o FILE] RECORDING\n"
    "\n"
    "Puts names, files, lines and inlined functions of all addresses into the recording, so that "
    "it can\n"
    "be read on a machine without the programs and their debug information. Run it where the "
    "program\n"
    "ran. A program or library that has changed since is refused, and named.\n"
    "\n"
    "  -o, --output=FILE  a new file instead of replacing RECORDING; it must not exist.\n"
    "                     `-` is standard output\n"
    "      --symfs=DIR    look for programs and libraries below DIR\n"
    "      --debug-dir=DIR  look there for debug files before /usr/lib/debug\n"
    "      --demangle=full|simple|none\n"
    "  -h, --help         this text\n"
    "\n"
    "Debug files are also asked for from the servers in DEBUGINFOD_URLS.\n";

static int copy_recording(const char *path, FILE *to)
{
    char bytes[1 << 16];
    FILE *from = fopen(path, "rbe");
    int error = from ? 0 : -errno;
    for (size_t got; !error && (got = fread(bytes, 1, sizeof bytes, from));)
        if (fwrite(bytes, 1, got, to) != got)
            error = errno ? -errno : -EIO;
    if (!error && ferror(from))
        error = -EIO;
    if (from)
        fclose(from);
    return error;
}

static int write_all(const char *path, FILE *to, struct lapse_symbolize *symbolize)
{
    int error = copy_recording(path, to);
    symbolize->to = to;
    if (!error)
        error = lapse_symbolize_sessions(symbolize);
    if (!error && fflush(to))
        error = -errno;
    return error;
}

/* Whole, then in place: of the recording, or where nothing is yet. */
static int write_file(const char *path, const char *output, struct lapse_symbolize *symbolize)
{
    struct lapse_new_file file;
    struct stat status;
    if (stat(path, &status))
        return -errno;
    if (output && !faccessat(AT_FDCWD, output, F_OK, AT_SYMLINK_NOFOLLOW))
        return -EEXIST;
    int error = lapse_new_file_create(&file, output ? output : path);
    if (error)
        return error;
    file.must_be_new = output != NULL;
    error = fchmod(fileno(file.file), status.st_mode & 0777) ? -errno : 0;
    if (!error)
        error = write_all(path, file.file, symbolize);
    if (!error && fsync(fileno(file.file)))
        error = -errno;
    int closed = lapse_new_file_close(&file, !error);
    return error ? error : closed;
}

/* What is known now that was not before. */
static void say_what_is_named(const struct lapse_symbolize *symbolize, bool replaced)
{
    fprintf(stderr,
            "lapse symbolize: %" PRIu64 " addresses: names of %" PRIu64 " (%" PRIu64
            " before), lines of %" PRIu64 " (%" PRIu64 " before)%s\n",
            symbolize->addresses, symbolize->named, symbolize->named_before, symbolize->lines,
            symbolize->lines_before, replaced ? "; recording replaced" : "");
}

static int symbolize_file(const char *path, const char *output)
{
    char error[PATH_MAX + 256] = "";
    struct lapse_symbolize symbolize = { .offline = lapse_name_source(),
                                         .progress = isatty(STDERR_FILENO) };
    if (!symbolize.offline)
        return lapse_complain("symbolize", "%s", strerror(ENOMEM));
    int result = lapse_recording_open(&symbolize.recording, path, error, sizeof error);
    if (result)
        return lapse_complain("symbolize", "%s", *error ? error : strerror(-result));
    bool to_stdout = output && !strcmp(output, "-");
    result = to_stdout ? write_all(path, stdout, &symbolize) : write_file(path, output, &symbolize);
    lapse_name_source_notes("symbolize");
    lapse_recording_close(symbolize.recording);
    if (result)
        return lapse_complain("symbolize", "%s: %s", to_stdout ? "standard output" : output ? output : path,
                              result == -EEXIST ? "is already there" : strerror(-result));
    say_what_is_named(&symbolize, !output);
    return 0;
}

int lapse_command_symbolize(int argc, char **argv)
{
    static const struct option options[] = {
        { "output", required_argument, NULL, 'o' },
        { "help", no_argument, NULL, 'h' },
        { 0 },
    };
    const char *output = NULL;
    for (int option; (option = getopt_long(argc, argv, "o:h", options, NULL)) != -1;) {
        if (option == 'h')
            return lapse_show_help("symbolize", help);
        if (option != 'o')
            return LAPSE_STATUS_BAD;
        output = optarg;
    }
    struct stat status;
    if (argc - optind != 1 || !strcmp(argv[optind], "-") ||
        (!stat(argv[optind], &status) && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)))
        return lapse_complain("symbolize", "one recording is needed, as a file");
    return symbolize_file(argv[optind], output);
}
