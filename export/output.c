/* SPDX-License-Identifier: MIT */
/* See output.h. */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define BUFFER_SIZE (256u * 1024)

int lapse_output_init(struct lapse_output *output, FILE *file)
{
    *output = (struct lapse_output){
        .bytes = malloc(BUFFER_SIZE), .capacity = BUFFER_SIZE, .file = file,
    };
    if (!output->bytes) {
        output->capacity = 0;
        output->error = -ENOMEM;
    }
    return output->error;
}

/* A long output goes to the disk as it comes, and what has arrived there leaves the page cache, but for
 * its end: the kernel goes on with the same pages instead of taking new ones for each GiB from
 * everybody else, which cost more than making the text. These are hints; on a pipe they do nothing. */
static void let_go(const struct lapse_output *output, uint64_t before)
{
    const uint64_t stride = 8u << 20, kept = 256u << 20, end = output->total / stride * stride;
    if (before >= end || end <= kept)
        return;
    int fd = fileno(output->file);
    sync_file_range(fd, (off_t)(end - stride), (off_t)stride, SYNC_FILE_RANGE_WRITE);
    posix_fadvise(fd, 0, (off_t)(end - kept), POSIX_FADV_DONTNEED);
}

/* Hand the buffer to the file. After a failure the buffer is emptied all the same. */
static void hand_on(struct lapse_output *output)
{
    if (!output->error && fwrite(output->bytes, 1, output->size, output->file) != output->size)
        output->error = errno ? -errno : -EIO;
    uint64_t before = output->total;
    output->total += output->size;
    let_go(output, before);
    output->size = 0;
}

int lapse_output_finish(struct lapse_output *output)
{
    if (output->file)
        hand_on(output);
    return output->error;
}

void lapse_output_fini(struct lapse_output *output)
{
    free(output->bytes);
    output->bytes = NULL;
    output->size = output->capacity = 0;
}

int lapse_output_make_room(struct lapse_output *output, size_t size)
{
    if (output->file)
        hand_on(output);
    if (size <= output->capacity - output->size)
        return 1;
    size_t capacity = output->capacity ? output->capacity : 64;
    while (size > capacity - output->size) {
        if (capacity > SIZE_MAX / 2)
            goto no_memory;
        capacity *= 2;
    }
    char *bytes = realloc(output->bytes, capacity);
    if (!bytes)
        goto no_memory;
    output->bytes = bytes;
    output->capacity = capacity;
    return 1;
no_memory:
    if (!output->error)
        output->error = -ENOMEM;
    return 0;
}

/* log10(2) is 1233 / 4096, nearly: the bits of a number tell its digits up to one. */
static size_t count_digits(uint64_t value)
{
    static const uint64_t powers[] = {
        0, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000,
        100000000000, 1000000000000, 10000000000000, 100000000000000, 1000000000000000,
        10000000000000000, 100000000000000000, 1000000000000000000, 10000000000000000000u,
    };
    size_t low = (size_t)(64 - __builtin_clzll(value | 1)) * 1233 >> 12;
    return low + (value >= powers[low]);
}

size_t lapse_decimal(char *to, uint64_t value)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    size_t size = count_digits(value), at = size;
    for (; at > 2; value /= 100)
        memcpy(to + (at -= 2), pairs + 2 * (value % 100), 2);
    if (at == 2)
        memcpy(to, pairs + 2 * value, 2);
    else
        *to = (char)('0' + value);
    return size;
}

void lapse_output_uint(struct lapse_output *output, uint64_t value)
{
    char *to = lapse_output_room(output, 20);
    if (to)
        output->size += lapse_decimal(to, value);
}

static void put_scaled(struct lapse_output *output, uint64_t value, uint64_t scale, int places)
{
    char *to = lapse_output_room(output, 32);
    if (!to)
        return;
    size_t size = lapse_decimal(to, value / scale);
    uint64_t rest = value % scale;
    if (rest) {
        to[size++] = '.';
        for (int i = places - 1; i >= 0; i--, rest /= 10)
            to[size + (size_t)i] = (char)('0' + rest % 10);
        size += (size_t)places;
        while (to[size - 1] == '0')
            size--;
    }
    output->size += size;
}

void lapse_output_thousandths(struct lapse_output *output, uint64_t value)
{
    put_scaled(output, value, 1000, 3);
}

void lapse_output_millionths(struct lapse_output *output, uint64_t value)
{
    put_scaled(output, value, 1000000, 6);
}
