/* SPDX-License-Identifier: MIT */
/* Lines of a text file: one buffer that is refilled, and grown when a line is longer than it. */
#include "line_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chunk_file.h"

enum { FIRST_CAPACITY = 128 * 1024, PEEK = 64 };

int lapse_lines_attach(struct lapse_lines *lines, int fd, const char *path)
{
    *lines = (struct lapse_lines){ .path = path, .fd = fd, .capacity = FIRST_CAPACITY };
    lines->bytes = malloc(FIRST_CAPACITY);
    return lines->bytes ? 0 : -ENOMEM;
}

int lapse_lines_open(struct lapse_lines *lines, const char *path)
{
    bool standard = !strcmp(path, "-");
    int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    *lines = (struct lapse_lines){ .fd = -1 };
    if (fd < 0)
        return -errno;
    struct stat status;
    int error = lapse_lines_attach(lines, fd, path);
    lines->owned = !standard;
    if (!error && !fstat(fd, &status) && lapse_is_endless(fd, &status))
        error = -ENOTSUP;
    if (error)
        lapse_lines_close(lines);
    return error;
}

void lapse_lines_memory(struct lapse_lines *lines, char *bytes, size_t size)
{
    *lines = (struct lapse_lines){ .path = "memory", .fd = -1, .bytes = bytes, .end = size,
                                   .ended = true };
}

void lapse_lines_close(struct lapse_lines *lines)
{
    if (lines->capacity)
        free(lines->bytes);
    if (lines->owned)
        close(lines->fd);
    *lines = (struct lapse_lines){ .fd = -1, .ended = true };
}

/* Read more behind what is left, which moves to the front. */
static int refill(struct lapse_lines *lines)
{
    size_t left = lines->end - lines->at;
    if (lines->at) {
        memmove(lines->bytes, lines->bytes + lines->at, left);
        lines->at = 0;
        lines->end = left;
    }
    if (left == lines->capacity) {
        char *grown = realloc(lines->bytes, lines->capacity * 2);
        if (!grown)
            return -ENOMEM;
        lines->bytes = grown;
        lines->capacity *= 2;
    }
    for (;;) {
        ssize_t got = read(lines->fd, lines->bytes + left, lines->capacity - left);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        lines->end += (size_t)got;
        lines->ended = !got;
        return 0;
    }
}

int lapse_lines_peek(struct lapse_lines *lines, const char **bytes, size_t *size)
{
    int error = 0;
    while (!error && !lines->ended && lines->end - lines->at < PEEK)
        error = refill(lines);
    *bytes = lines->bytes + lines->at;
    *size = lines->end - lines->at;
    return error;
}

int lapse_lines_next(struct lapse_lines *lines, char **line, size_t *size)
{
    size_t searched = 0;
    char *newline = NULL;
    for (;;) {
        size_t left = lines->end - lines->at;
        if (left > searched)
            newline = memchr(lines->bytes + lines->at + searched, '\n', left - searched);
        if (newline || lines->ended)
            break;
        searched = left;
        int error = refill(lines);
        if (error)
            return error;
    }
    size_t length = newline ? (size_t)(newline - lines->bytes) - lines->at : lines->end - lines->at;
    if (!newline && !length)
        return 0;
    *line = lines->bytes + lines->at;
    lines->at += length + (newline != NULL);
    lines->number++;
    if (length && (*line)[length - 1] == '\r')
        length--;
    *size = length;
    return 1;
}
