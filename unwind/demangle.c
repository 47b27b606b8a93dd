/* SPDX-License-Identifier: MIT */
/* Readable names of C++, Rust and D functions, by libiberty. symbols.h is the interface.
 *
 * C++ and Rust go through libiberty's callbacks, which allocate nothing but stack: up to some
 * hundred KiB for a name of the greatest length, so the caller needs a stack of 512 KiB or more.
 * Names can be made that expand without end: what does not fit any more ends the work at once.
 * D has no such form: its demangler calls malloc (inside liblapse.so that is the arena) and cannot
 * be stopped, so D names with many back references stay as they are. */
#include <libiberty/demangle.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbols.h"

/* Libiberty itself gives up on C++ names that need more than 2,048 parts, at two for each byte. */
enum { NAME_BYTES_MAX = 1024, D_NAME_BYTES_MAX = 512, D_BACK_REFERENCES_MAX = 12, ARGUMENTS_MAX = 32 };

struct output {
    char *to;
    uint32_t size, length;
    void *full[5]; /* where to go on when there is no room left */
};

static int append(struct output *output, const char *text, size_t length)
{
    size_t room = output->size - 1 - output->length;
    size_t fits = length < room ? length : room;
    memcpy(output->to + output->length, text, fits);
    output->length += (uint32_t)fits;
    return fits == length;
}

/* For libiberty, which holds nothing but stack when it calls. */
static void append_piece(const char *text, size_t length, void *opaque)
{
    struct output *output = opaque;
    if (!append(output, text, length))
        __builtin_longjmp(output->full, 1);
}

/* End the text, not inside a UTF-8 sequence. */
static uint32_t finish(struct output *output)
{
    uint32_t length = output->length, back = 0;
    const uint8_t *bytes = (const uint8_t *)output->to;
    if (length == output->size - 1) {
        while (back < 4 && back < length && (bytes[length - 1 - back] & 0xc0) == 0x80)
            back++;
        if (back < length && bytes[length - 1 - back] >= 0xc0) {
            uint8_t lead = bytes[length - 1 - back];
            uint32_t wanted = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
            if (back < wanted)
                length -= back + 1;
        }
    }
    output->to[length] = 0;
    return length;
}

static uint32_t copy(char *to, uint32_t size, const char *name)
{
    struct output output = { .to = to, .size = size };
    append(&output, name, strlen(name));
    return finish(&output);
}

static int demangle_d(struct output *output, const char *name)
{
    unsigned back_references = 0;
    for (const char *at = name; *at; at++)
        back_references += *at == 'Q';
    if (strlen(name) > D_NAME_BYTES_MAX || back_references > D_BACK_REFERENCES_MAX)
        return 0;
    char *readable = dlang_demangle(name, DMGL_DLANG);
    if (!readable)
        return 0;
    append(output, readable, strlen(readable));
    free(readable);
    return 1;
}

/* Rust's older names are C++ ones that end in 17h and sixteen hexadecimal digits, which the Rust
 * demangler knows; it is asked first, and says no to everything else. */
__attribute__((noinline)) static int demangle(struct output *output, const char *name,
                                              enum lapse_demangle style)
{
    int options = style == LAPSE_DEMANGLE_FULL ? DMGL_PARAMS | DMGL_ANSI : DMGL_ANSI;
    if (name[0] != '_')
        return 0;
    if (name[1] == 'D')
        return demangle_d(output, name);
    if (name[1] != 'R' && name[1] != 'Z')
        return 0;
    if (__builtin_setjmp(output->full))
        return 1; /* as much as there is room for */
    if (rust_demangle_callback(name, DMGL_ANSI, append_piece, output))
        return 1;
    output->length = 0;
    return name[1] == 'Z' && cplus_demangle_v3_callback(name, options, append_piece, output);
}

/* What compilers and linkers add behind a name: `.constprop.0`, `.cold`, `@@GLIBC_2.14`. */
static size_t without_suffixes(const char *name, size_t length)
{
    static const char *const words[] = { "constprop", "isra", "part", "cold", "clone", "lto_priv",
                                         "localalias", "llvm" };
    const char *version = memchr(name, '@', length);
    if (version && version > name)
        length = (size_t)(version - name);
    for (;;) {
        size_t end = length;
        while (end > 1 && name[end - 1] >= '0' && name[end - 1] <= '9')
            end--;
        end = end < length && name[end - 1] == '.' ? end - 1 : length; /* before `.0` */
        int found = 0;
        for (size_t i = 0; i < sizeof words / sizeof *words && !found; i++) {
            size_t size = strlen(words[i]);
            found = end > size + 1 && name[end - size - 1] == '.' && !memcmp(name + end - size, words[i], size);
            if (found)
                length = end - size - 1;
        }
        if (!found)
            return length;
    }
}

static int is_operator(const char *text, size_t at)
{
    static const char word[] = "operator";
    size_t size = sizeof word - 1;
    while (at > 0 && (text[at - 1] == '<' || text[at - 1] == '-'))
        at--;
    return at >= size && !memcmp(text + at - size, word, size);
}

/* The `>` that ends the arguments that begin at `at`; 0 when there is none. */
static size_t arguments_end(const char *text, size_t length, size_t at)
{
    unsigned depth = 0, round = 0;
    for (; at < length; at++) {
        round += text[at] == '(';
        round -= text[at] == ')' && round;
        if (round)
            continue;
        depth += text[at] == '<';
        if (text[at] == '>' && text[at - 1] != '-' && !--depth)
            return at;
    }
    return 0;
}

/* Template arguments that are longer than a name need be become `<...>`. */
static void shorten_arguments(struct output *output)
{
    char *text = output->to;
    size_t length = output->length, kept = 0;
    for (size_t at = 0; at < length; at++) {
        text[kept++] = text[at];
        size_t end = text[at] == '<' && at && text[at - 1] != ' ' && text[at - 1] != ':' &&
                             !is_operator(text, kept - 1) ? arguments_end(text, length, at) : 0;
        if (!end || end - at - 1 <= ARGUMENTS_MAX)
            continue;
        memcpy(text + kept, "...>", 4);
        kept += 4;
        at = end;
    }
    output->length = (uint32_t)kept;
}

uint32_t lapse_demangle(char *to, uint32_t size, const char *name, enum lapse_demangle style)
{
    static const char plt[] = "@plt";
    char stem[NAME_BYTES_MAX + 1];
    struct output output = { .to = to, .size = size };
    size_t length = strlen(name);
    if (!size)
        return 0;
    if (style == LAPSE_DEMANGLE_NONE || length > NAME_BYTES_MAX)
        return copy(to, size, name);
    int is_plt = length > sizeof plt - 1 && !strcmp(name + length - (sizeof plt - 1), plt);
    if (is_plt)
        length -= sizeof plt - 1;
    if (style == LAPSE_DEMANGLE_SIMPLE)
        length = without_suffixes(name, length);
    memcpy(stem, name, length);
    stem[length] = 0;
    if (!demangle(&output, stem, style)) {
        output.length = 0;
        append(&output, stem, length);
    } else if (style == LAPSE_DEMANGLE_SIMPLE) {
        shorten_arguments(&output);
    }
    if (is_plt)
        append(&output, plt, sizeof plt - 1);
    return finish(&output);
}
