/* SPDX-License-Identifier: MIT */
/* Standard error of the command: names of files, options and programs come from anywhere, and what steers a
 * terminal in them is shown as \xNN. Stands between stdio and the descriptor, so that getopt's words pass
 * through it too. Called once by main.c. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

enum { PIECE = 1024, ESCAPE = 4 };

/* Is this byte, after the one before it, a control character? C1 is two bytes in UTF-8. */
static bool is_control(unsigned char before, unsigned char byte)
{
    return (byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f ||
           (before == 0xc2 && byte >= 0x80 && byte < 0xa0);
}

static bool write_all(const char *bytes, size_t size)
{
    while (size) {
        ssize_t written = write(STDERR_FILENO, bytes, size);
        if (written < 0 && errno != EINTR)
            return false;
        if (written > 0) {
            bytes += written;
            size -= (size_t)written;
        }
    }
    return true;
}

/* One message a call: the stream has no buffer. Lines of progress begin with the one sequence of our own. */
static ssize_t write_shown(void *cookie, const char *bytes, size_t size)
{
    static const char clear[] = "\r\033[K";
    static unsigned char before; /* a character may be cut by two calls */
    char piece[PIECE];
    size_t used = 0, at = 0;
    (void)cookie;
    if (size && bytes[0] == '\r')
        at = size >= sizeof clear - 1 && !memcmp(bytes, clear, sizeof clear - 1) ? sizeof clear - 1 : 1;
    memcpy(piece, bytes, at);
    for (used = at; at < size; at++) {
        unsigned char byte = (unsigned char)bytes[at];
        if (is_control(before, byte))
            used += (size_t)snprintf(piece + used, ESCAPE + 1, "\\x%02x", byte);
        else
            piece[used++] = bytes[at];
        before = byte;
        if (used + ESCAPE < sizeof piece)
            continue;
        if (!write_all(piece, used))
            return 0;
        used = 0;
    }
    return write_all(piece, used) ? (ssize_t)size : 0;
}

void lapse_guard_error_stream(void)
{
    FILE *stream = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = write_shown });
    if (!stream)
        return;
    setvbuf(stream, NULL, _IONBF, 0);
    stderr = stream;
}
