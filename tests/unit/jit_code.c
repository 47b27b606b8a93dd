/* SPDX-License-Identifier: MIT */
/* Unit tests of export/jit_code.h: perf maps and jitdump files, whole, cut and contradictory. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heap.h"
#include "jit_code.h"

struct file { FILE *to; };

static struct file make(void)
{
    return (struct file){ tmpfile() };
}

static void put32(struct file *file, uint32_t value)
{
    fwrite(&value, sizeof value, 1, file->to);
}

static void put64(struct file *file, uint64_t value)
{
    fwrite(&value, sizeof value, 1, file->to);
}

static void put_header_of(struct file *file, uint64_t flags, uint32_t machine)
{
    put32(file, 0x4a695444);
    put32(file, 1);
    put32(file, 40);
    put32(file, machine);
    put32(file, 0);
    put32(file, 7);
    put64(file, 0);
    put64(file, flags);
}

static void put_header(struct file *file, uint64_t flags)
{
    put_header_of(file, flags, 62);
}

static void put_record(struct file *file, uint32_t id, uint32_t body, uint64_t time_ns)
{
    put32(file, id);
    put32(file, 16 + body);
    put64(file, time_ns);
}

static void put_load(struct file *file, uint64_t time_ns, uint64_t start, uint64_t size, uint64_t index,
                     const char *name)
{
    put_record(file, 0, (uint32_t)(40 + strlen(name) + 1 + size), time_ns);
    put64(file, 7);
    put64(file, start);
    put64(file, start);
    put64(file, size);
    put64(file, index);
    fwrite(name, strlen(name) + 1, 1, file->to);
    for (uint64_t i = 0; i < size; i++)
        fputc(0xcc, file->to);
}

static void put_move(struct file *file, uint64_t time_ns, uint64_t from, uint64_t to, uint64_t size,
                     uint64_t index)
{
    put_record(file, 1, 48, time_ns);
    put64(file, 7);
    put64(file, from);
    put64(file, from);
    put64(file, to);
    put64(file, size);
    put64(file, index);
}

static void put_lines(struct file *file, uint64_t start, uint64_t first, const char *name)
{
    put_record(file, 2, (uint32_t)(16 + 16 + strlen(name) + 1 + 16 + 2), 0);
    put64(file, start);
    put64(file, 2);
    put64(file, first + 8);
    put32(file, 12);
    put32(file, 0);
    fwrite(name, strlen(name) + 1, 1, file->to);
    put64(file, first);
    put32(file, 11);
    put32(file, 0);
    fwrite("\xff", 2, 1, file->to); /* the file of the one before */
}

static int read_dump(struct file *file, struct lapse_jit_code *code)
{
    int fd = fileno(file->to);
    struct lapse_jit_source source = lapse_jit_file(&fd);
    *code = (struct lapse_jit_code){ .allocator = &lapse_heap };
    fflush(file->to);
    int result = lapse_jit_code_read_dump(code, &source);
    fclose(file->to);
    return result;
}

static int read_map(const char *text, struct lapse_jit_code *code)
{
    FILE *file = tmpfile();
    int fd = fileno(file);
    struct lapse_jit_source source = lapse_jit_file(&fd);
    *code = (struct lapse_jit_code){ .allocator = &lapse_heap };
    fputs(text, file);
    fflush(file);
    int result = lapse_jit_code_read_map(code, &source);
    fclose(file);
    return result;
}

static const char *name_at(struct lapse_jit_code *code, uint64_t address, uint64_t time_ns, uint64_t *until)
{
    const struct lapse_jit_load *load = lapse_jit_code_find(code, address, time_ns, until);
    return load ? load->name : "";
}

Test(jit_code, map_lines_that_come_later_win)
{
    static const char text[] = "1000 20 first\n1010 20 second one\nnonsense\n0x3000 10 third\n4000 0 empty\n"
                               "5000 10 \nfffffffffffffff0 20 wraps\n6000 10 unfinished";
    struct lapse_jit_code code;
    uint64_t until;
    cr_assert_eq(read_map(text, &code), 0);
    cr_assert_eq(code.load_count, 3);
    cr_assert_str_eq(name_at(&code, 0x1030 - 1, 5, &until), "second one");
    cr_assert_str_eq(name_at(&code, 0x1010, 5, &until), "second one");
    cr_assert_str_eq(name_at(&code, 0x3000, 0, &until), "third");
    cr_assert_str_eq(name_at(&code, 0x1030, 5, &until), "");
    cr_assert_str_eq(name_at(&code, 0xfff, 5, &until), "");
    lapse_jit_code_free(&code);
}

/* What stands in a part of a function's place takes that part alone, and what is wanted decides only
 * about what is kept. */
Test(jit_code, map_parts)
{
    static const char text[] = "1000 100 first\n1080 100 second\n1040 10 third\n9000 10 far\n";
    static const uint64_t wanted[] = { 0x1030, 0x1060, 0x11ff };
    struct lapse_jit_code code;
    struct lapse_jit_load *loads[4];
    uint64_t start, end, until;
    cr_assert_eq(read_map(text, &code), 0);
    cr_assert_eq(lapse_jit_code_all(&code, 0x1030, loads, 4), 1);
    lapse_jit_code_part(&code, loads[0], 0x1030, &start, &end);
    cr_assert_eq(start, 0x1000);
    cr_assert_eq(end, 0x1040);
    lapse_jit_code_part(&code, loads[0], 0x1060, &start, &end);
    cr_assert_eq(start, 0x1050);
    cr_assert_eq(end, 0x1080);
    cr_assert_eq(lapse_jit_code_all(&code, 0x1090, loads, 4), 2);
    lapse_jit_code_part(&code, loads[1], 0x1090, &start, &end);
    cr_assert_str_eq(loads[1]->name, "second");
    cr_assert_eq(start, 0x1080);
    cr_assert_eq(end, 0x1180);
    lapse_jit_code_free(&code);
    code.wanted = wanted;
    code.wanted_count = 3;
    int fd = memfd_create("map", MFD_CLOEXEC);
    struct lapse_jit_source source = lapse_jit_file(&fd);
    cr_assert_eq(write(fd, text, sizeof text - 1), (ssize_t)sizeof text - 1);
    cr_assert_eq(lapse_jit_code_read_map(&code, &source), 0);
    cr_assert_eq(code.load_count, 1);
    cr_assert_str_eq(name_at(&code, 0x1060, 1, &until), "first");
    lapse_jit_code_free(&code);
    close(fd);
}

static long fail_behind(void *context, void *to, size_t size, uint64_t offset)
{
    uint64_t *limit = context;
    memset(to, '\n', size);
    return offset >= *limit ? -ETIME : (long)size;
}

/* Half a file may give the wrong names. */
Test(jit_code, ends_with_the_sources_error_and_at_its_bounds)
{
    struct lapse_jit_code code = { .allocator = &lapse_heap };
    uint64_t limit = 1 << 20;
    struct lapse_jit_source source = { fail_behind, &limit, 1 << 21 };
    cr_assert_eq(lapse_jit_code_read_map(&code, &source), -ETIME);
    limit = 0;
    cr_assert_eq(lapse_jit_code_read_dump(&code, &source), -ETIME);
    limit = UINT64_MAX;
    cr_assert_eq(lapse_jit_code_read_map(&code, &source), -EFBIG);
    lapse_jit_code_free(&code);
    FILE *file = tmpfile();
    int fd = fileno(file);
    for (int i = 0; i < 200; i++)
        fprintf(file, "%x 10 name\n", 0x1000 + i * 16);
    fflush(file);
    source = lapse_jit_file(&fd);
    code.items_max = 100;
    cr_assert_eq(lapse_jit_code_read_map(&code, &source), -E2BIG);
    fclose(file);
    lapse_jit_code_free(&code);
}

Test(jit_code, dump_names_by_time)
{
    struct lapse_jit_code code;
    struct file file = make();
    uint64_t until;
    put_header(&file, 0);
    put_load(&file, 100, 0x1000, 64, 1, "old");
    put_record(&file, 77, 5, 120); /* of a kind that is not known */
    fwrite("abcde", 5, 1, file.to);
    put_load(&file, 200, 0x1020, 64, 2, "new");
    cr_assert_eq(read_dump(&file, &code), 0);
    cr_assert_str_eq(name_at(&code, 0x1030, 99, &until), "");
    cr_assert_str_eq(name_at(&code, 0x1030, 150, &until), "old");
    cr_assert_eq(until, 200);
    cr_assert_str_eq(name_at(&code, 0x1030, 200, &until), "new");
    cr_assert_eq(until, 0);
    cr_assert_str_eq(name_at(&code, 0x1000, 300, &until), "", "what was overwritten in part is gone");
    lapse_jit_code_free(&code);
}

Test(jit_code, dump_moves)
{
    struct lapse_jit_code code;
    struct file file = make();
    struct lapse_jit_load *loads[4];
    uint64_t until;
    put_header(&file, 0);
    put_load(&file, 100, 0x1000, 64, 5, "moving");
    put_move(&file, 150, 0x1000, 0x9000, 64, 6); /* another one's number */
    put_move(&file, 200, 0x1000, 0x2000, 64, 5);
    put_move(&file, 300, 0x2000, 0x1000, 64, 5);
    cr_assert_eq(read_dump(&file, &code), 0);
    cr_assert_str_eq(name_at(&code, 0x1001, 199, &until), "moving");
    cr_assert_eq(until, 200);
    cr_assert_str_eq(name_at(&code, 0x1001, 250, &until), "");
    cr_assert_str_eq(name_at(&code, 0x2001, 250, &until), "moving");
    cr_assert_str_eq(name_at(&code, 0x9001, 250, &until), "");
    cr_assert_str_eq(name_at(&code, 0x1001, 300, &until), "moving");
    cr_assert_eq(lapse_jit_code_all(&code, 0x1001, loads, 4), 2);
    cr_assert_eq(loads[0]->from_ns, 100);
    cr_assert_eq(loads[1]->from_ns, 300);
    lapse_jit_code_free(&code);
}

Test(jit_code, dump_lines)
{
    for (uint64_t shift = 0; shift <= 0x40; shift += 0x40) {
        struct lapse_jit_code code;
        struct file file = make();
        uint64_t until;
        put_header(&file, 0);
        put_lines(&file, 0x1000, 0x1000 + shift, "a.js");
        put_load(&file, 1, 0x1000, 64, 1, "with lines");
        put_load(&file, 1, 0x3000, 64, 2, "without");
        cr_assert_eq(read_dump(&file, &code), 0);
        const struct lapse_jit_load *load = lapse_jit_code_find(&code, 0x1004, 5, &until);
        cr_assert_eq(lapse_jit_code_line(&code, load, 0x1004)->line, 11);
        cr_assert_str_eq(lapse_jit_code_line(&code, load, 0x1004)->file, "a.js");
        cr_assert_eq(lapse_jit_code_line(&code, load, 0x1008)->line, 12);
        load = lapse_jit_code_find(&code, 0x3004, 5, &until);
        cr_assert_null(lapse_jit_code_line(&code, load, 0x3004));
        lapse_jit_code_free(&code);
    }
}

Test(jit_code, dump_lines_that_make_no_sense)
{
    static const char *const names[] = { "a\001.js", "", "\xfe\xfe" };
    for (size_t i = 0; i < 4; i++) {
        struct lapse_jit_code code;
        struct file file = make();
        uint64_t until;
        put_header(&file, 0);
        put_lines(&file, 0x1000, i < 3 ? 0x1000 : 0x5000, i < 3 ? names[i] : "elsewhere.js");
        put_load(&file, 1, 0x1000, 64, 1, "function");
        cr_assert_eq(read_dump(&file, &code), 0);
        const struct lapse_jit_load *load = lapse_jit_code_find(&code, 0x1004, 5, &until);
        cr_assert_str_eq(load->name, "function");
        cr_assert_null(lapse_jit_code_line(&code, load, 0x1004), "%zu", i);
        lapse_jit_code_free(&code);
    }
}

Test(jit_code, times_of_another_clock_are_no_times)
{
    struct lapse_jit_code code;
    struct file file = make();
    uint64_t until;
    put_header(&file, 1);
    put_load(&file, 1000000, 0x1000, 64, 1, "one");
    put_load(&file, 2000000, 0x1000, 64, 2, "two");
    cr_assert_eq(read_dump(&file, &code), 0);
    cr_assert_str_eq(name_at(&code, 0x1000, 5, &until), "two");
    lapse_jit_code_free(&code);
}

Test(jit_code, close_and_cuts_end_it)
{
    struct file file = make();
    struct lapse_jit_code code;
    put_header(&file, 0);
    put_load(&file, 100, 0x1000, 64, 1, "one");
    long whole = ftell(file.to);
    put_load(&file, 200, 0x2000, 64, 2, "two");
    long both = ftell(file.to);
    put_record(&file, 3, 0, 300);
    put_load(&file, 400, 0x3000, 64, 3, "after the end");
    fflush(file.to);
    char *bytes = malloc((size_t)both);
    cr_assert_eq(pread(fileno(file.to), bytes, (size_t)both, 0), both);
    cr_assert_eq(read_dump(&file, &code), 0);
    cr_assert_eq(code.load_count, 2);
    lapse_jit_code_free(&code);
    for (long size = 0; size < both; size++) {
        file = make();
        fwrite(bytes, (size_t)size, 1, file.to);
        cr_assert_eq(read_dump(&file, &code), size < 40 ? -EBADMSG : 0);
        cr_assert_eq(code.load_count, size < whole ? 0 : 1, "%ld bytes", size);
        lapse_jit_code_free(&code);
    }
    free(bytes);
}

Test(jit_code, machines)
{
    static const struct { uint32_t machine; int result; } cases[] = { { 62, 0 }, { 0, 0 }, { 183, -EBADMSG } };
    for (size_t i = 0; i < 3; i++) {
        struct lapse_jit_code code;
        struct file file = make();
        put_header_of(&file, 0, cases[i].machine);
        put_load(&file, 100, 0x1000, 64, 1, "one");
        cr_assert_eq(read_dump(&file, &code), cases[i].result, "machine %u", cases[i].machine);
        lapse_jit_code_free(&code);
    }
}

Test(jit_code, refuses_what_is_no_dump)
{
    struct lapse_jit_code code;
    struct file file = make();
    put_header(&file, 2);
    put_load(&file, 100, 0x1000, 64, 1, "flags that nobody knows");
    cr_assert_eq(read_dump(&file, &code), -EBADMSG);
    cr_assert_eq(code.load_count, 0);
    file = make();
    put_header(&file, 0);
    for (int i = 0; i < 100; i++)
        put64(&file, 0); /* records of no size */
    cr_assert_eq(read_dump(&file, &code), 0);
    cr_assert_eq(code.load_count, 0);
    file = make();
    put_header(&file, 0);
    fflush(file.to);
    cr_assert_eq(ftruncate(fileno(file.to), INT64_C(1) << 32), 0); /* sparse */
    cr_assert_eq(read_dump(&file, &code), 0);
    cr_assert_eq(code.load_count, 0);
}
