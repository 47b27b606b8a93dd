/* SPDX-License-Identifier: MIT */
/* The reader of recordings, the profile and the view on hostile bytes. An input that begins with the
 * magic is a file as it is; any other is bodies (two bytes of size, then that many), which get right
 * heads and checksums here, since no fuzzer finds a checksum. Whatever comes: no crash, and samples,
 * leaves and functions add up. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "format.h"
#include "view.h"
#include "wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void put(int fd, const void *bytes, size_t size)
{
    check(write(fd, bytes, size) == (ssize_t)size);
}

static void put_chunks(int fd, const uint8_t *bytes, size_t size)
{
    while (size > 2) {
        uint8_t head[LAPSE_CHUNK_HEAD];
        size_t body = bytes[0] | (size_t)bytes[1] << 8;
        bytes += 2;
        size -= 2;
        body = body < size ? body : size;
        lapse_chunk_head(head, bytes, (uint32_t)body);
        put(fd, head, sizeof head);
        put(fd, bytes, body);
        bytes += body;
        size -= body;
    }
}

struct sums { const struct lapse_profile *profile; uint64_t count, weight_ns; };

static int add(void *context, const struct lapse_profile_sample *sample)
{
    struct sums *sums = context;
    check(sample->leaf < sums->profile->leaf_count && sample->thread < sums->profile->thread_count);
    check(sample->labels < sums->profile->label_set_count);
    sums->count++;
    sums->weight_ns += sample->weight_ns;
    return 0;
}

static void check_profile(struct lapse_profile *profile)
{
    static const struct lapse_export_options options = { .threads = true, .labels = true };
    struct sums sums = { .profile = profile };
    struct lapse_view *view;
    char error[256];
    for (uint32_t i = 1; i < profile->node_count; i++)
        check(profile->nodes[i].parent < i && profile->nodes[i].function < profile->function_count);
    if (profile->has_times) {
        check(!lapse_profile_each_sample(profile, add, &sums));
        check(sums.count == profile->count && sums.weight_ns == profile->weight_ns);
    }
    check(!lapse_view_create(&view, profile, NULL));
    uint64_t self = view->nodes[0].self_ns;
    for (uint32_t i = 0; i < view->function_count; i++)
        self += view->functions[i].self_ns;
    check(self == view->weight_ns && view->nodes[0].total_ns == view->weight_ns);
    lapse_view_destroy(view);
    FILE *nowhere = fopen("/dev/null", "w");
    check(nowhere && !lapse_write_folded(profile, nowhere, &options, error, sizeof error));
    if (profile->has_times)
        lapse_write_events(profile, nowhere, &options, error, sizeof error);
    fclose(nowhere);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct lapse_profile_options lines = { .lines = size % 2 };
    struct lapse_profile *profile;
    char path[32], error[256];
    const char *paths[] = { path };
    int fd = memfd_create("recording", MFD_CLOEXEC);
    check(fd >= 0);
    if (lapse_recording_is(bytes, size))
        put(fd, bytes, size);
    else
        put_chunks(fd, bytes, size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (!lapse_profile_open(&profile, paths, 1, &lines, error, sizeof error)) {
        check_profile(profile);
        lapse_profile_close(profile);
    }
    close(fd);
    return 0;
}
