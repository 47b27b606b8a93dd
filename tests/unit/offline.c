/* SPDX-License-Identifier: MIT */
/* unwind/offline piece by piece: range maps, lines, symbols and their aliases, names of debug
 * information entries (on this program's own file), files that become shorter while they are read. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "offline.h"
#include "offline/line_table.h"
#include "offline/range_map.h"
#include "offline/symbol_table.h"

static inline __attribute__((always_inline)) int inner_step(int x)
{
    __asm__ volatile("nop");
    return x * 3;
}

__attribute__((noinline, used)) static int outer_step(int x)
{
    x = inner_step(x);
    __asm__ volatile("");
    return x + 1;
}

static int first_object(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uint64_t *)bias = info->dlpi_addr;
    return 1;
}

static uint64_t as_linked(const void *function)
{
    uint64_t bias = 0;
    dl_iterate_phdr(first_object, &bias);
    return (uint64_t)(uintptr_t)function - bias;
}

Test(range_map, higher_values_win_where_ranges_overlap)
{
    struct lapse_address_range ranges[] = { { 10, 100, 0 }, { 20, 50, 1 }, { 30, 40, 2 }, { 90, 120, 1 } };
    struct lapse_range_map map;
    cr_assert_eq(lapse_range_map_build(&map, ranges, 4), 0);
    const struct { uint64_t address; uint32_t value; } expected[] = {
        { 9, LAPSE_RANGE_NONE }, { 10, 0 }, { 19, 0 }, { 20, 1 }, { 30, 2 }, { 39, 2 }, { 40, 1 },
        { 50, 0 }, { 90, 1 }, { 119, 1 }, { 120, LAPSE_RANGE_NONE },
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        cr_assert_eq(lapse_range_map_find(&map, expected[i].address), expected[i].value);
    lapse_range_map_free(&map);
    cr_assert_eq(lapse_range_map_build(&map, NULL, 0), 0);
    cr_assert_eq(lapse_range_map_find(&map, 5), LAPSE_RANGE_NONE);
    lapse_range_map_free(&map);
}

static void push(struct lapse_symbol_table *table, uint64_t start, uint64_t end, const char *name,
                 uint8_t rank, bool sized)
{
    cr_assert_eq(lapse_symbol_table_push(table, (struct lapse_table_symbol){
        .start = start, .end = end, .name = name, .rank = rank, .sized = sized }), 0);
}

static const char *name_at(const struct lapse_symbol_table *table, uint64_t address)
{
    const struct lapse_table_symbol *symbol = lapse_symbol_table_find(table, address);
    return symbol ? symbol->name : "";
}

Test(symbol_table, choice_among_aliases)
{
    struct lapse_symbol_table table = { 0 };
    push(&table, 0x100, 0x110, "local", 2, true);
    push(&table, 0x100, 0x110, "weak", 1, true);
    push(&table, 0x100, 0x110, "global_long", 0, true);
    push(&table, 0x100, 0x110, "global_b", 0, true);
    push(&table, 0x100, 0x110, "global_a", 0, true);
    push(&table, 0x100, 0x200, "g", 0, false);       /* no size: only when there is nothing else */
    push(&table, 0x104, 0x200, "label", 0, false);   /* inside a function: names nothing */
    push(&table, 0x120, 0x200, "unsized", 2, false); /* reaches to the next */
    push(&table, 0x140, 0x150, "next", 3, true);
    cr_assert_eq(lapse_symbol_table_order(&table), 0);
    cr_assert_str_eq(name_at(&table, 0x100), "global_a");
    cr_assert_str_eq(name_at(&table, 0x108), "global_a");
    cr_assert_str_eq(name_at(&table, 0x110), "", "between functions nothing is named");
    cr_assert_str_eq(name_at(&table, 0x13f), "unsized");
    cr_assert_str_eq(name_at(&table, 0x140), "next");
    cr_assert_str_eq(name_at(&table, 0x150), "");
    lapse_symbol_table_free(&table);
}

static bool everything_is_code(const void *context, uint64_t address)
{
    (void)context;
    return address >= 0x1000;
}

/* Version 2 program: one file, rows at 0x1000 (line 1), 0x1004 (line 4), end at 0x1010. */
static const uint8_t program[] = {
    0x37, 0, 0, 0, 2, 0, 28, 0, 0, 0, /* length, version, header length */
    1, 1, 0xfb, 14, 13,               /* least instruction, is_stmt, line base -5, range 14, 13 opcodes */
    0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, /* their arguments */
    'd', 0, 0,                        /* folders */
    'a', '.', 'c', 0, 1, 0, 0, 0,     /* files: a.c in folder 1 */
    0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0, /* set address 0x1000 */
    1,                                /* a row */
    13 + 5 + 3 + 14 * 4,              /* 4 bytes and 3 lines on, a row */
    2, 12,                            /* 12 bytes on */
    0, 1, 1,                          /* end of the sequence */
};

Test(line_table, rows_of_a_program)
{
    uint8_t bytes[sizeof program];
    memcpy(bytes, program, sizeof program);
    bytes[0] = sizeof program - 4;
    struct lapse_line_sections sections = { .line = { bytes, sizeof bytes } };
    struct lapse_line_table table = { 0 };
    struct lapse_names *names = lapse_names_create(LAPSE_DEMANGLE_FULL);
    cr_assert_eq(lapse_line_table_read(&table, &sections, 0, "/src", false, everything_is_code, NULL), 0);
    cr_assert_null(lapse_line_table_find(&table, 0xfff));
    cr_assert_eq(lapse_line_table_find(&table, 0x1003)->line, 1);
    const struct lapse_line_row *row = lapse_line_table_find(&table, 0x1004);
    cr_assert_eq(row->line, 4);
    cr_assert_str_eq(lapse_line_table_file(&table, row->file, names), "/src/d/a.c");
    cr_assert_eq(lapse_line_table_find(&table, 0x100f)->line, 4);
    cr_assert_null(lapse_line_table_find(&table, 0x1010));
    cr_assert_null(lapse_line_table_file(&table, 99, names));
    lapse_line_table_free(&table);
    /* Every cut and every changed byte: an answer or an error, within the bytes. */
    for (size_t size = 0; size < sizeof bytes; size++) {
        uint8_t *cut = malloc(size ? size : 1);
        memcpy(cut, bytes, size);
        sections.line = (struct lapse_bytes){ cut, size };
        table = (struct lapse_line_table){ 0 };
        lapse_line_table_read(&table, &sections, 0, "", false, everything_is_code, NULL);
        lapse_line_table_free(&table);
        free(cut);
    }
    for (size_t at = 0; at < sizeof bytes; at++) {
        uint8_t was = bytes[at];
        bytes[at] ^= 0xff;
        sections.line = (struct lapse_bytes){ bytes, sizeof bytes };
        table = (struct lapse_line_table){ 0 };
        lapse_line_table_read(&table, &sections, 0, "", false, everything_is_code, NULL);
        lapse_line_table_free(&table);
        bytes[at] = was;
    }
    lapse_names_destroy(names);
}

Test(offline, own_functions_with_what_is_inlined)
{
    struct lapse_offline_options options = { .no_debuginfod = true };
    struct lapse_offline *offline;
    struct lapse_inline_frame frames[8];
    uint64_t start = as_linked((void *)outer_step);
    uint32_t count = 0;
    bool inlined = false;
    outer_step(1);
    cr_assert_eq(lapse_offline_create(&offline, &options), 0);
    for (uint64_t at = start; at < start + 16; at++) {
        cr_assert_eq(lapse_offline_file_frames(offline, "/proc/self/exe", NULL, at, frames, 8, &count), 0);
        if (!count || !frames[0].name || strcmp(frames[0].name, "outer_step"))
            break;
        cr_assert(frames[0].line > 0 && strstr(frames[0].file, "offline.c"));
        inlined |= count == 2 && !strcmp(frames[1].name, "inner_step");
    }
    cr_assert(inlined, "inner_step is nowhere in outer_step");
    struct lapse_offline_function function;
    cr_assert(lapse_offline_file_function(offline, "/proc/self/exe", NULL, start + 1, &function));
    cr_assert_str_eq(function.name, "outer_step");
    cr_assert_eq(function.start, start);
    lapse_offline_destroy(offline);
}

static void copy_self(const char *path)
{
    char bytes[65536];
    int from = open("/proc/self/exe", O_RDONLY), to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0700);
    for (ssize_t got; (got = read(from, bytes, sizeof bytes)) > 0;)
        cr_assert_eq(write(to, bytes, (size_t)got), got);
    close(from);
    close(to);
}

Test(offline, a_file_that_is_cut_while_it_is_read)
{
    struct lapse_offline_options options = { .no_debuginfod = true };
    struct lapse_offline *offline;
    struct lapse_inline_frame frames[8];
    char path[] = "/tmp/lapse-offline-XXXXXX";
    uint32_t count = 0;
    uint64_t start = as_linked((void *)outer_step);
    close(mkstemp(path));
    for (off_t size = 0; size <= 64 << 10; size = size ? size * 4 : 4096) {
        copy_self(path);
        cr_assert_eq(lapse_offline_create(&offline, &options), 0);
        /* Opened, and nothing of its debug information read yet. */
        cr_assert_not_null(lapse_offline_file_code(offline, path, NULL));
        cr_assert_eq(truncate(path, size), 0);
        cr_assert_eq(lapse_offline_file_frames(offline, path, NULL, start, frames, 8, &count), 0);
        cr_assert_eq(count, 0, "named from %ld bytes", (long)size);
        cr_assert_eq(lapse_offline_note_count(offline), 1);
        cr_assert_not_null(strstr(lapse_offline_note(offline, 0), "became shorter"));
        lapse_offline_destroy(offline);
    }
    unlink(path);
}
