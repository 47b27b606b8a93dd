/* SPDX-License-Identifier: MIT */
/* Folded text through the reader, the profile's builder and the merge. Values add up everywhere; merging
 * the result again changes nothing; tiny parts that spill give the same bytes. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "folded_merge.h"
#include "folded_reader.h"
#include "profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Merge all good lines; values are made small so that sums stay in range. */
static void merge(const char *bytes, size_t size, struct lapse_folded_merge_options options,
                  struct lapse_output *output, uint64_t *sum)
{
    struct lapse_folded_merge *merge;
    struct lapse_folded_line line;
    struct lapse_lines lines;
    const char *cause;
    char *copy = malloc(size + 1);
    int status;
    check(copy && !lapse_folded_merge_create(&merge, &options));
    memcpy(copy, bytes, size);
    lapse_lines_memory(&lines, copy, size);
    while ((status = lapse_folded_next(&lines, &line, &cause))) {
        if (status < 0)
            continue;
        line.value &= 0xffffffff;
        *sum += line.value;
        check(!lapse_folded_merge_stack(merge, line.stack, line.size, line.value));
    }
    check(!lapse_output_init(output, NULL));
    check(!lapse_folded_merge_write(merge, output));
    lapse_folded_merge_destroy(merge);
    free(copy);
}

/* The same text as a profile: what commands take it for. */
static void check_profile(const char *bytes, size_t size, uint64_t sum)
{
    static const struct lapse_profile_options options = { 0 };
    struct lapse_profile *profile;
    char path[32], error[256];
    const char *paths[] = { path };
    uint64_t weight = 0;
    int file = memfd_create("folded", MFD_CLOEXEC);
    check(file >= 0 && write(file, bytes, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (!lapse_profile_open(&profile, paths, 1, &options, error, sizeof error)) {
        for (uint32_t i = 0; i < profile->leaf_count; i++)
            weight += profile->leaves[i].weight_ns;
        for (uint32_t i = 1; i < profile->node_count; i++)
            check(profile->nodes[i].parent < i);
        check(weight == sum && profile->weight_ns == sum);
        lapse_profile_close(profile);
    } /* else its first bytes look like another format's */
    close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct lapse_folded_merge_options cut = { .depth = 1 + size % 5 };
    struct lapse_output once, again, spilled, shallow;
    uint64_t sum = 0, sum_again = 0, other = 0;
    merge((const char *)bytes, size, (struct lapse_folded_merge_options){ 0 }, &once, &sum);
    merge(once.bytes, once.size, (struct lapse_folded_merge_options){ 0 }, &again, &sum_again);
    if (sum < UINT32_MAX) { /* else the second round made values small once more */
        check(sum == sum_again && once.size == again.size);
        check(!once.size || !memcmp(once.bytes, again.bytes, once.size));
        check_profile(once.bytes, once.size, sum);
    }
    if (size < 400) {
        merge((const char *)bytes, size, (struct lapse_folded_merge_options){ .part_bytes = 40 },
              &spilled, &other);
        check(once.size == spilled.size);
        check(!once.size || !memcmp(once.bytes, spilled.bytes, once.size));
        lapse_output_fini(&spilled);
    }
    merge((const char *)bytes, size, cut, &shallow, &other);
    lapse_output_fini(&once);
    lapse_output_fini(&again);
    lapse_output_fini(&shallow);
    return 0;
}
