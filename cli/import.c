/* SPDX-License-Identifier: MIT */
/* lapse import: other profilers' files become a recording. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "chunk_file.h"
#include "command.h"
#include "importer.h"
#include "input.h"
#include "new_file.h"

enum { HEAD_BYTES = 4096 };

static const char help[] =
    "usage: lapse import [--from=FORMAT] [--period=NS] [-o FILE] INPUT...\n"
    "\n"
    "Turns profiles of other tools into a recording that report, diff, merge and export read. Each\n"
    "INPUT becomes a session; `-` is standard input. Times are kept where the input has them, else they\n"
    "follow from the weights and a note says so.\n"
    "\n"
    "      --from=FORMAT  folded, pprof, perf (text of `perf script`) or speedscope; without it the\n"
    "                     first bytes decide\n"
    "      --period=NS    nanoseconds that one count stands for where the input has only counts\n"
    "                     [10000000]\n"
    "  -o, --output=FILE  the recording [INPUT.lapse]; `-` is standard output\n"
    "  -h, --help         this text\n";

static const struct { const char *name; lapse_import_reader *read; } readers[] = {
    { "folded", lapse_import_folded },
    { "pprof", lapse_import_pprof },
    { "perf", lapse_import_perf },
    { "speedscope", lapse_import_speedscope },
};

static lapse_import_reader *find_reader(const char *name)
{
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (!strcmp(name, readers[i].name))
            return readers[i].read;
    return NULL;
}

/* The first line that is no comment tells. */
static lapse_import_reader *guess_text(char *text)
{
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (line[strspn(line, " \t\r")] && line[0] != '#')
            return lapse_import_is_perf(line) ? lapse_import_perf : lapse_import_folded;
    }
    return lapse_import_folded;
}

/* What the first bytes of a gzip file hold takes their place. Returns how many there are now. */
static size_t unpack_head(char head[HEAD_BYTES], size_t size)
{
    char packed[HEAD_BYTES];
    z_stream stream = { .next_in = (Bytef *)packed, .avail_in = (uInt)size,
                        .next_out = (Bytef *)head, .avail_out = HEAD_BYTES - 1 };
    memcpy(packed, head, size);
    if (inflateInit2(&stream, 15 + 16) != Z_OK)
        return 0;
    inflate(&stream, Z_SYNC_FLUSH);
    inflateEnd(&stream);
    return HEAD_BYTES - 1 - stream.avail_out;
}

static lapse_import_reader *guess_reader(FILE *from)
{
    char head[HEAD_BYTES];
    size_t size = fread(head, 1, sizeof head - 1, from);
    rewind(from);
    head[size] = 0;
    bool packed = size >= 2 && !memcmp(head, "\x1f\x8b", 2);
    if (packed)
        size = unpack_head(head, size);
    for (size_t i = 0; i < size; i++) {
        if (head[i] == '{')
            return lapse_import_speedscope;
        if (!isspace((unsigned char)head[i]))
            break;
    }
    if (packed)
        return lapse_import_pprof;
    /* A profile begins with one of its messages; no text begins with a newline and a control byte. */
    bool is_text = memchr(head, 0, size) == NULL;
    for (size_t i = 0; i < size && is_text; i++)
        is_text = (unsigned char)head[i] >= 0x20 || isspace((unsigned char)head[i]);
    return is_text ? guess_text(head) : lapse_import_pprof;
}

static bool is_recording(FILE *from)
{
    char head[4];
    size_t size = fread(head, 1, sizeof head, from);
    rewind(from);
    return lapse_recording_is(head, size);
}

struct import { const char *output; lapse_import_reader *reader; uint64_t period_ns; };

static int import_one(const struct import *import, const char *path, FILE *to)
{
    char error[512] = "";
    struct lapse_importer *importer;
    const char *slash = strrchr(path, '/');
    int fd = lapse_open_seekable(path);
    FILE *from = fd < 0 ? NULL : fdopen(fd, "r");
    if (!from)
        return lapse_complain("import", "%s: %s", path, strerror(fd < 0 ? -fd : errno));
    struct lapse_import_input input = {
        .from = from, .period_ns = import->period_ns,
        .name = !strcmp(path, "-") ? "standard input" : slash && slash[1] ? slash + 1 : path,
    };
    if (is_recording(from)) {
        fclose(from);
        return lapse_complain("import", "%s: is a lapse recording already", path);
    }
    bool is_empty = fgetc(from) == EOF;
    rewind(from);
    if (is_empty) {
        fclose(from);
        return lapse_complain("import", "%s: the file is empty", path);
    }
    lapse_import_reader *reader = import->reader ? import->reader : guess_reader(from);
    int result = lapse_importer_create(&importer, to);
    if (!result) {
        result = reader(importer, &input, error, sizeof error);
        if (!result)
            result = lapse_importer_finish(importer);
        lapse_importer_destroy(importer);
    }
    fclose(from);
    if (result)
        return *error ? lapse_complain("import", "%s", error)
                      : lapse_complain("import", "%s: %s", path, strerror(-result));
    return 0;
}

static int import_all(const struct import *import, int count, char **paths)
{
    bool is_stdout = !strcmp(import->output, "-");
    struct lapse_new_file file = { .file = stdout };
    int error = is_stdout ? 0 : lapse_new_file_create(&file, import->output);
    if (error)
        return lapse_complain("import", "%s: %s", import->output, strerror(-error));
    int status = 0;
    for (int i = 0; i < count && !status; i++)
        status = import_one(import, paths[i], file.file);
    if (!is_stdout)
        error = lapse_new_file_close(&file, !status);
    else if (fflush(stdout))
        error = -errno;
    if (error && !status)
        status = lapse_complain("import", "%s: %s", is_stdout ? "standard output" : import->output,
                                strerror(-error));
    return status;
}

static const char *default_output(const char *path)
{
    char *name = NULL;
    const char *slash = strrchr(path, '/');
    if (!strcmp(path, "-"))
        return "import.lapse";
    return asprintf(&name, "%s.lapse", slash && slash[1] ? slash + 1 : path) < 0 ? NULL : name;
}

int lapse_command_import(int argc, char **argv)
{
    static const struct option options[] = {
        { "from", required_argument, NULL, 'f' }, { "period", required_argument, NULL, 'p' },
        { "output", required_argument, NULL, 'o' }, { "help", no_argument, NULL, 'h' }, { 0 },
    };
    struct import import = { .period_ns = 10000000 };
    int option;
    while ((option = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
        switch (option) {
        case 'f':
            import.reader = find_reader(optarg);
            if (!import.reader)
                return lapse_complain("import", "no format '%s'; `--help` lists them", optarg);
            break;
        case 'p':
            if (!lapse_option_number("import", "--period", optarg, &import.period_ns))
                return LAPSE_STATUS_BAD;
            break;
        case 'o': import.output = optarg; break;
        case 'h': return lapse_show_help("import", help);
        default: return LAPSE_STATUS_BAD;
        }
    }
    if (optind == argc || !import.period_ns)
        return lapse_complain("import", optind == argc ? "no input; `--help` tells how"
                                                       : "--period must not be 0");
    if (!import.output)
        import.output = default_output(argv[optind]);
    if (!import.output)
        return lapse_complain("import", "out of memory");
    const char *const *inputs = (const char *const *)argv + optind;
    if (!lapse_inputs_differ("import", inputs, argc - optind) ||
        lapse_output_is_input("import", import.output, inputs, argc - optind))
        return LAPSE_STATUS_BAD;
    return import_all(&import, argc - optind, argv + optind);
}
