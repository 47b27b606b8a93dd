/* SPDX-License-Identifier: MIT */
/* The readers of other tools' profiles on hostile bytes; the first byte chooses the reader. Whatever comes:
 * no crash, an error has a line of text, and what is taken is a recording without damage that export
 * reads: its leaves add up to its samples, and folded text of it comes out. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format.h"
#include "importer.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static lapse_import_reader *const readers[] = {
    lapse_import_folded, lapse_import_pprof, lapse_import_perf, lapse_import_speedscope,
};

/* A few bytes may stand for millions of samples, which are all alike. */
enum { EXPAND_MAX = 1000 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Returns whether the input was taken. */
static bool import(lapse_import_reader *reader, const uint8_t *bytes, size_t size, FILE *to)
{
    struct lapse_importer *importer = NULL;
    char error[256] = "";
    FILE *from = fmemopen((void *)(uintptr_t)bytes, size, "r");
    struct lapse_import_input input = { .from = from, .name = "input", .period_ns = 10000000 };
    check(from && !lapse_importer_create(&importer, to));
    lapse_importer_expand(importer, EXPAND_MAX);
    int result = reader(importer, &input, error, sizeof error);
    check(!result || *error);
    if (!result)
        result = lapse_importer_finish(importer);
    lapse_importer_destroy(importer);
    fclose(from);
    return !result;
}

static void check_recording(const char *path)
{
    const struct lapse_profile_options lines = { .lines = true };
    struct lapse_profile *profile;
    uint64_t count = 0, weight_ns = 0;
    char error[256];
    check(!lapse_profile_open(&profile, &path, 1, &lines, error, sizeof error));
    check(!profile->damage.bad_chunks && !profile->damage.skipped_bytes);
    check(!profile->damage.cut_bytes && !profile->damage.bad_references);
    for (uint32_t i = 0; i < profile->leaf_count; i++) {
        count += profile->leaves[i].count;
        weight_ns += profile->leaves[i].weight_ns;
    }
    check(count == profile->count && weight_ns == profile->weight_ns);
    FILE *nowhere = fopen("/dev/null", "w");
    check(nowhere && !lapse_write_folded(profile, nowhere, &(struct lapse_export_options){ 0 }, error,
                                         sizeof error));
    fclose(nowhere);
    lapse_profile_close(profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char path[32];
    if (size < 2)
        return 0;
    int fd = memfd_create("import", MFD_CLOEXEC);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    check(to);
    bool taken = import(readers[bytes[0] % 4], bytes + 1, size - 1, to);
    check(!fflush(to));
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (taken)
        check_recording(path);
    fclose(to);
    return 0;
}
