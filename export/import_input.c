/* SPDX-License-Identifier: MIT */
/* Inputs of import that are taken whole: read to the end and unpacked, both up to a bound, so that a
 * small file cannot ask for all memory. Called by the readers of pprof and speedscope. Offline only. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "importer.h"

#define INPUT_MAX (1ull << 31)

/* The whole of a file as it is. */
static int read_all(FILE *from, char **bytes, size_t *size)
{
    size_t capacity = 1u << 16, used = 0, got;
    char *text = malloc(capacity + 1);
    while (text && (got = fread(text + used, 1, capacity - used, from)) > 0) {
        used += got;
        if (used == INPUT_MAX) {
            free(text);
            return -EFBIG;
        }
        if (used == capacity) {
            char *grown = realloc(text, capacity * 2 + 1);
            if (!grown)
                free(text);
            text = grown;
            capacity *= 2;
        }
    }
    if (!text)
        return -ENOMEM;
    text[used] = 0;
    *bytes = text;
    *size = used;
    return ferror(from) ? -EIO : 0;
}

/* Unpack gzip members, one after the other. */
static int double_room(char **out, size_t *capacity)
{
    char *grown = *capacity < INPUT_MAX ? realloc(*out, *capacity * 2 + 1) : NULL;
    if (!grown)
        return *capacity < INPUT_MAX ? -ENOMEM : -EFBIG;
    *out = grown;
    *capacity *= 2;
    return 0;
}

static int unpack(char **bytes, size_t *size)
{
    z_stream stream = { .next_in = (Bytef *)*bytes, .avail_in = (uInt)*size };
    size_t capacity = *size * 4 + 4096, used = 0;
    char *out = malloc(capacity + 1);
    int state = out ? inflateInit2(&stream, 15 + 16) : Z_MEM_ERROR;
    int error = state == Z_OK ? 0 : -ENOMEM;
    while (!error && stream.avail_in) {
        stream.next_out = (Bytef *)out + used;
        stream.avail_out = (uInt)(capacity - used < UINT_MAX ? capacity - used : UINT_MAX);
        size_t room = stream.avail_out;
        state = inflate(&stream, Z_NO_FLUSH);
        used += room - stream.avail_out;
        if (state == Z_STREAM_END && stream.avail_in)
            inflateReset(&stream);
        else if (state == Z_STREAM_END)
            break;
        else if (state != Z_OK)
            error = -EBADMSG;
        if (!error && used == capacity)
            error = double_room(&out, &capacity);
    }
    if (!error && state != Z_STREAM_END)
        error = -EBADMSG; /* cut */
    inflateEnd(&stream);
    if (error) {
        free(out);
        return error;
    }
    out[used] = 0;
    free(*bytes);
    *bytes = out;
    *size = used;
    return 0;
}

int lapse_import_slurp(FILE *from, char **bytes, size_t *size)
{
    *bytes = NULL;
    int error = read_all(from, bytes, size);
    if (!error && *size > 2 && !memcmp(*bytes, "\x1f\x8b", 2))
        error = unpack(bytes, size);
    if (error) {
        free(*bytes);
        *bytes = NULL;
    }
    return error;
}
