/* SPDX-License-Identifier: MIT */
/* Unit tests of export/html.c: the page's data are decoded here, apart from the page's own reader,
 * and compared with the profile. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "format.h"
#include "make_recording.h"
#include "page.h"
#include "page_samples.h"
#include "profile.h"
#include "wire.h"

struct text { char *bytes; size_t size; };

static struct text written(struct lapse_profile *profile)
{
    struct text page;
    char error[256] = "";
    FILE *file = open_memstream(&page.bytes, &page.size);
    const struct lapse_export_options options = { 0 };
    cr_assert_eq(lapse_write_html(profile, file, &options, error, sizeof error), 0, "%s", error);
    fclose(file);
    return page;
}

static int letter(char c)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(letters, c);
    return c && at ? (int)(at - letters) : -1;
}

/* Base64 and deflate undone; the caller frees. */
static struct text decoded(const char *base64, size_t size)
{
    uint8_t *packed = malloc(size);
    size_t packed_size = 0;
    uint32_t bits = 0;
    unsigned count = 0;
    cr_assert_eq(size % 4, 0);
    for (size_t i = 0; i < size && base64[i] != '='; i++) {
        cr_assert_geq(letter(base64[i]), 0);
        bits = bits << 6 | (uint32_t)letter(base64[i]);
        if (++count % 4 != 1)
            packed[packed_size++] = (uint8_t)(bits >> (3 - (count - 1) % 4) * 2);
    }
    uLongf plain_size = 64u << 20;
    struct text plain = { malloc(plain_size), 0 };
    cr_assert_eq(uncompress((Bytef *)plain.bytes, &plain_size, packed, packed_size), Z_OK);
    plain.size = plain_size;
    free(packed);
    return plain;
}

static struct text data_of(const struct text *page)
{
    cr_assert_gt(page->size, lapse_page_head_size + lapse_page_tail_size);
    cr_assert_eq(memcmp(page->bytes, lapse_page_head, lapse_page_head_size), 0);
    cr_assert_eq(memcmp(page->bytes + page->size - lapse_page_tail_size, lapse_page_tail,
                        lapse_page_tail_size), 0);
    return decoded(page->bytes + lapse_page_head_size,
                   page->size - lapse_page_head_size - lapse_page_tail_size);
}

static uint64_t number(struct lapse_wire_reader *reader)
{
    uint64_t value;
    cr_assert_eq(lapse_wire_read_varint(reader, &value), 0);
    return value;
}

static void expect_text(struct lapse_wire_reader *reader, const char *text)
{
    uint64_t size = number(reader);
    cr_assert_eq(size, strlen(text), "%s", text);
    cr_assert_eq(memcmp(reader->at, text, size), 0, "%s", text);
    reader->at += size;
}

static void skip_text(struct lapse_wire_reader *reader)
{
    uint64_t size = number(reader);
    reader->at += size;
}

static struct lapse_profile *opened(const char *path)
{
    struct lapse_profile *profile;
    char error[256] = "";
    const struct lapse_profile_options options = { 0 };
    cr_assert_eq(lapse_profile_open(&profile, &path, 1, &options, error, sizeof error), 0, "%s", error);
    return profile;
}

Test(html, hostile_names_are_data)
{
    char path[] = "/tmp/lapse-html-XXXXXX";
    int fd = mkstemp(path);
    static const char folded[] = "main;</script><script>alert(1)</script> 3\nmain;\"a'&b 2\n";
    cr_assert_eq(write(fd, folded, sizeof folded - 1), (ssize_t)sizeof folded - 1);
    close(fd);
    struct lapse_profile *profile = opened(path);
    struct text page = written(profile), data = data_of(&page);
    cr_assert_null(memmem(page.bytes, page.size, "alert(1)", 8));
    cr_assert_not_null(memmem(data.bytes, data.size, "</script><script>alert(1)</script>", 34));
    struct lapse_wire_reader reader = { (const uint8_t *)data.bytes,
                                        (const uint8_t *)data.bytes + data.size };
    expect_text(&reader, "lapse-page-1");
    skip_text(&reader); /* title */
    skip_text(&reader); /* writer */
    cr_assert_eq(number(&reader), profile->weight_unit == LAPSE_WEIGHT_COUNT);
    free(page.bytes);
    free(data.bytes);
    lapse_profile_close(profile);
    unlink(path);
}

/* The samples' columns of a page of their own. */
struct columns { uint64_t time, weight, number, labels, samples, even; }; /* even: weight of every other leaf */

static void read_block(struct lapse_wire_reader *reader, uint64_t size, uint64_t *last_time,
                       uint64_t *last_weight, struct columns *sums)
{
    uint32_t *threads = malloc(size * sizeof *threads);
    bool *even = malloc(size * sizeof *even);
    for (int column = 0; column < 3; column++) {
        for (uint64_t at = 0; at < size;) {
            uint64_t run = number(reader), value = number(reader);
            cr_assert(run && run <= size - at);
            if (column == 1)
                sums->labels += run * value;
            if (column == 2)
                sums->number += run * value;
            for (; run; run--, at++)
                if (column == 0)
                    threads[at] = (uint32_t)value;
        }
    }
    for (uint64_t i = 0; i < size; i++)
        sums->time += last_time[threads[i]] += (uint64_t)lapse_wire_unzigzag(number(reader));
    for (uint64_t i = 0; i < size; i++)
        even[i] = number(reader) % 2 == 0;
    for (uint64_t i = 0; i < size; i++) {
        uint64_t weight = last_weight[threads[i]] += (uint64_t)lapse_wire_unzigzag(number(reader));
        sums->weight += weight;
        sums->even += even[i] ? weight : 0;
    }
    sums->samples += size;
    free(threads);
    free(even);
}

static struct columns columns_of(struct lapse_profile *profile, uint64_t base_ns, uint32_t thinned)
{
    struct text base64;
    struct lapse_output output;
    static struct lapse_page_stream stream;
    struct lapse_page_samples samples;
    FILE *file = open_memstream(&base64.bytes, &base64.size);
    cr_assert_eq(lapse_output_init(&output, file), 0);
    cr_assert_eq(lapse_page_stream_init(&stream, &output), 0);
    uint64_t *bases = calloc(profile->thread_count, sizeof *bases);
    for (uint32_t i = 0; i < profile->thread_count; i++)
        bases[i] = base_ns;
    cr_assert_eq(lapse_page_samples_init(&samples, &stream, profile->thread_count, bases, thinned), 0);
    cr_assert_eq(lapse_profile_each_sample(profile, lapse_page_samples_add, &samples), 0);
    lapse_page_samples_finish(&samples);
    lapse_page_samples_fini(&samples);
    free(bases);
    cr_assert_eq(lapse_page_stream_fini(&stream), 0);
    cr_assert_eq(lapse_output_finish(&output), 0);
    lapse_output_fini(&output);
    fclose(file);
    struct text data = decoded(base64.bytes, base64.size);
    struct lapse_wire_reader reader = { (const uint8_t *)data.bytes,
                                        (const uint8_t *)data.bytes + data.size };
    uint64_t *last = calloc(profile->thread_count, 2 * sizeof *last);
    struct columns sums = { 0 };
    for (uint64_t size; (size = number(&reader)) != 0;)
        read_block(&reader, size, last, last + profile->thread_count, &sums);
    cr_assert_eq(reader.at, reader.end);
    free(last);
    free(data.bytes);
    free(base64.bytes);
    return sums;
}

static int sum(void *context, const struct lapse_profile_sample *sample)
{
    struct columns *sums = context;
    sums->time += sample->time_ns - sums->samples;
    sums->weight += sample->weight_ns;
    sums->labels += sample->labels;
    sums->even += sample->leaf % 2 ? 0 : sample->weight_ns;
    sums->number++;
    return 0;
}

static void check_samples(bool labels)
{
    char path[] = "/tmp/lapse-html-XXXXXX";
    close(mkstemp(path));
    unlink(path);
    /* More than two blocks, so that state is carried from one to the next. */
    const struct lapse_test_recording numbers = { .threads = 5, .samples = 40000, .labels = labels };
    lapse_test_make_recording(path, &numbers);
    struct lapse_profile *profile = opened(path);
    uint64_t base_ns = profile->first_ns;
    struct columns truth = { .samples = base_ns }; /* here: what times are relative to */
    cr_assert_eq(lapse_profile_each_sample(profile, sum, &truth), 0);
    struct columns all = columns_of(profile, base_ns, 1);
    cr_assert_eq(all.samples, truth.number);
    cr_assert_eq(all.number, truth.number);
    cr_assert_eq(all.weight, truth.weight);
    cr_assert_eq(all.time, truth.time);
    cr_assert_eq(all.labels, truth.labels);
    cr_assert_eq(all.even, truth.even);

    /* One stands for seven: the weight is the same, that of half the stacks within six standard deviations. */
    struct columns thinned = columns_of(profile, base_ns, 7);
    cr_assert_geq(thinned.samples * 7, truth.number);
    cr_assert_lt(thinned.samples * 7, truth.number + 5 * 7);
    cr_assert_eq(thinned.weight, truth.weight);
    double mean = (double)truth.weight / (double)thinned.samples;
    double off = (double)thinned.even - (double)truth.even;
    cr_assert_gt(truth.even, 100 * mean);
    cr_assert_lt(off * off, 36 * mean * (double)truth.even);
    lapse_profile_close(profile);
    unlink(path);
}

Test(html, samples_come_back_exactly) { check_samples(false); }
Test(html, labelled_samples_come_back_exactly) { check_samples(true); }

Test(html, equal_profiles_are_equal_pages)
{
    char path[] = "/tmp/lapse-html-XXXXXX";
    close(mkstemp(path));
    unlink(path);
    const struct lapse_test_recording numbers = { .processes = 2, .spans = true, .lines = true };
    lapse_test_make_recording(path, &numbers);
    struct lapse_profile *one = opened(path), *two = opened(path);
    struct text first = written(one), second = written(two);
    cr_assert_eq(first.size, second.size);
    cr_assert_eq(memcmp(first.bytes, second.bytes, first.size), 0);
    free(first.bytes);
    free(second.bytes);
    lapse_profile_close(one);
    lapse_profile_close(two);
    unlink(path);
}
