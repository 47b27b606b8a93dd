/* SPDX-License-Identifier: MIT */
#include "source_text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "index.h"

enum { SOURCE_BYTES_MAX = 64 << 20 };

static char *read_whole(const char *path)
{
    struct stat status;
    /* A recording may name anything as a source file. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *bytes = NULL;
    if (fd < 0)
        return NULL;
    if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size <= SOURCE_BYTES_MAX
        && (bytes = malloc((size_t)status.st_size + 1))) {
        ssize_t got = read(fd, bytes, (size_t)status.st_size);
        bytes[got > 0 ? got : 0] = '\0';
    }
    close(fd);
    return bytes;
}

static void open_source(struct lapse_source_text *source, const char *path)
{
    lapse_source_text_free(source);
    source->path = strdup(path);
    source->bytes = read_whole(path);
    for (char *at = source->bytes, *end; at && *at; at = end) {
        char **lines = lapse_array_grow(source->lines, source->line_count, sizeof *lines);
        if (!lines)
            return;
        source->lines = lines;
        lines[source->line_count++] = at;
        end = at + strcspn(at, "\n");
        if (*end)
            *end++ = '\0';
        at[strcspn(at, "\r")] = '\0';
    }
}

const char *lapse_source_line(struct lapse_source_text *source, const char *path, uint32_t line)
{
    if (!path || !line)
        return NULL;
    if (!source->path || strcmp(source->path, path))
        open_source(source, path);
    return line <= source->line_count ? source->lines[line - 1] : NULL;
}

void lapse_source_text_free(struct lapse_source_text *source)
{
    free(source->path);
    free(source->bytes);
    free(source->lines);
    *source = (struct lapse_source_text){ 0 };
}
