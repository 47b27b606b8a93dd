/* SPDX-License-Identifier: MIT */
/* unwind/symbols, plt, demangle: names of this process's own functions, and what is no
 * symbol table at all. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "plt.h"
#include "symbols.h"

static void *resize(void *context, void *old, size_t old_size, size_t new_size)
{
    (void)context, (void)old_size;
    if (new_size)
        return realloc(old, new_size);
    free(old);
    return NULL;
}

static const struct lapse_allocator allocator = { resize, NULL };

/* Symbols of the test itself. */
void symbols_test_global(void);
__attribute__((noinline)) static void only_local(void) { __asm__ volatile(""); }
__attribute__((noinline, used)) void symbols_test_global(void) { __asm__ volatile("nop"); }
__attribute__((alias("symbols_test_global"))) void symbols_test_g(void);
__attribute__((weak, alias("symbols_test_global"))) void symbols_w(void);
__asm__(".text\n.global symbols_test_unsized\n.type symbols_test_unsized, @function\n"
        "symbols_test_unsized:\n nop\n nop\n nop\n ret\n .balign 16\n");
void symbols_test_unsized(void);

static struct lapse_symbol_request find_one(uint64_t address)
{
    struct lapse_modules modules;
    struct lapse_symbol_request request = { .address = address };
    cr_assert_eq(lapse_modules_read(&modules, &allocator), 0);
    const struct lapse_mapped_module *module = lapse_modules_find(&modules, address);
    cr_assert(module);
    cr_assert_eq(lapse_symbols_find(module, &request, 1, &allocator), 0);
    lapse_modules_free(&modules);
    return request;
}

static void expect(uint64_t address, const char *name, uint64_t start)
{
    struct lapse_symbol_request request = find_one(address);
    cr_assert(request.system_name, "no name for %s", name);
    cr_assert_str_eq(request.system_name, name);
    if (start)
        cr_assert_eq(request.start, start);
    cr_assert(address - request.start < request.size);
    free((char *)request.system_name);
}

Test(symbols, local_function)
{
    only_local();
    expect((uintptr_t)only_local, "only_local", (uintptr_t)only_local);
}

Test(symbols, aliases_global_before_weak_then_shortest)
{
    expect((uintptr_t)symbols_test_global, "symbols_test_g", (uintptr_t)symbols_test_global);
}

Test(symbols, without_a_size_reaches_to_the_next)
{
    expect((uintptr_t)symbols_test_unsized + 3, "symbols_test_unsized",
           (uintptr_t)symbols_test_unsized);
}

Test(symbols, stripped_library_has_its_exports)
{
    struct lapse_symbol_request request = find_one((uintptr_t)lfind);
    cr_assert_str_eq(request.system_name, "lfind");
    free((char *)request.system_name);
}

Test(symbols, vdso_is_read_from_memory)
{
    uint64_t base = getauxval(AT_SYSINFO_EHDR);
    void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
    void *function = vdso ? dlvsym(vdso, "__vdso_clock_gettime", "LINUX_2.6") : NULL;
    if (!base || !function)
        cr_skip_test("no vDSO");
    struct lapse_symbol_request request = find_one((uintptr_t)function + 1);
    cr_assert(request.system_name);
    cr_assert(strstr(request.system_name, "clock_gettime"), "%s", request.system_name);
    free((char *)request.system_name);
}

/* A call in this program to a library function goes through an entry whose address is found by
 * decoding the call. */
Test(symbols, linkage_table_entry)
{
    uint64_t entry = 0;
    const uint8_t *code = (const uint8_t *)find_one;
    struct lapse_symbol_request request;
    for (unsigned i = 0; i < 400 && !entry; i++)
        if (code[i] == 0xe8) {
            int32_t displacement;
            memcpy(&displacement, code + i + 1, 4);
            uint64_t target = (uint64_t)code + i + 5 + (uint64_t)(int64_t)displacement;
            if (displacement < -(1 << 20) || displacement > 1 << 20)
                continue; /* not a call after all */
            request = find_one(target);
            if (request.system_name && strstr(request.system_name, "@plt"))
                entry = target;
            free((char *)request.system_name);
        }
    if (!entry)
        cr_skip_test("this build calls libraries without a linkage table");
}

Test(symbols, many_at_once_agree_with_one_at_a_time)
{
    enum { COUNT = 500 };
    static struct lapse_symbol_request requests[COUNT];
    struct lapse_modules modules;
    cr_assert_eq(lapse_modules_read(&modules, &allocator), 0);
    const struct lapse_mapped_module *module = lapse_modules_find(&modules, (uintptr_t)lfind);
    uint64_t start = module->text[0].start, step = (module->text[0].end - start) / COUNT;
    for (unsigned i = 0; i < COUNT; i++)
        requests[i].address = start + i * step;
    cr_assert_eq(lapse_symbols_find(module, requests, COUNT, &allocator), 0);
    unsigned named = 0;
    for (unsigned i = 0; i < COUNT; i += 10) {
        struct lapse_symbol_request one = find_one(requests[i].address);
        cr_assert_eq(one.start, requests[i].start);
        cr_assert_eq(!one.system_name, !requests[i].system_name);
        if (one.system_name) {
            named++;
            cr_assert_str_eq(one.system_name, requests[i].system_name);
        }
        free((char *)one.system_name);
    }
    cr_assert_gt(named, 5);
    for (unsigned i = 0; i < COUNT; i++)
        free((char *)requests[i].system_name);
    lapse_modules_free(&modules);
}

/* Files in place of the module. */
static char directory[64];

static void make_directory(void)
{
    strcpy(directory, "/tmp/lapse-symbols-XXXXXX");
    cr_assert(mkdtemp(directory));
}

static void remove_directory(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", directory);
    cr_assert_eq(system(command), 0);
}

TestSuite(symbols_hostile, .init = make_directory, .fini = remove_directory);

static void expect_nothing(const char *path, int with_build_id)
{
    struct stat status = { 0 };
    stat(path, &status);
    struct lapse_mapped_module module = { .path = (char *)path, .start = 0x10000, .end = 0x20000,
                                          .device = status.st_dev, .inode = status.st_ino };
    struct lapse_symbol_request request = { .address = 0x10100 };
    if (with_build_id) {
        module.build_id_size = 20;
        memset(module.build_id, 7, 20);
    }
    cr_assert_eq(lapse_symbols_find(&module, &request, 1, &allocator), 0);
    cr_assert_null(request.system_name);
}

Test(symbols_hostile, not_a_file)
{
    char path[128];
    expect_nothing("/dev/zero", 0);
    expect_nothing(directory, 0);
    snprintf(path, sizeof path, "%s/fifo", directory);
    cr_assert_eq(mkfifo(path, 0600), 0);
    expect_nothing(path, 0);
    expect_nothing("/nonexistent/module", 0);
}

Test(symbols_hostile, another_file_than_was_mapped)
{
    expect_nothing("/proc/self/exe", 1);
}

/* The test program itself with bytes of its headers, section table and symbol tables changed. */
Test(symbols_hostile, damaged_elf_files)
{
    unsigned seed = 20240607;
    char path[128], *image;
    FILE *file = fopen("/proc/self/exe", "rb");
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    image = malloc(size);
    cr_assert_eq(fread(image, 1, size, file), size);
    fclose(file);
    snprintf(path, sizeof path, "%s/module", directory);
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    cr_log_info("seed %u", seed);
    for (unsigned round = 0; round < 300; round++) {
        char *copy = malloc(size);
        memcpy(copy, image, size);
        size_t length = round % 3 ? size : (size_t)rand_r(&seed) % size;
        for (unsigned i = 0; i < 8; i++) {
            size_t at = round & 1 ? (size_t)rand_r(&seed) % sizeof header
                                  : header.e_shoff + (size_t)rand_r(&seed) %
                                                         (header.e_shnum * sizeof(Elf64_Shdr));
            if (at >= 4) /* keep the magic, else nothing is reached */
                copy[at] = (char)rand_r(&seed);
        }
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        cr_assert_eq(write(fd, copy, length), (ssize_t)length);
        close(fd);
        free(copy);
        struct stat status;
        stat(path, &status);
        struct lapse_mapped_module module = { .path = path,
                                              .start = 0,
                                              .end = 1 << 20,
                                              .device = status.st_dev,
                                              .inode = status.st_ino };
        struct lapse_symbol_request requests[16];
        for (unsigned i = 0; i < 16; i++)
            requests[i].address = 0x1000 + i * 0x1234;
        cr_assert_eq(lapse_symbols_find(&module, requests, 16, &allocator), 0);
        for (unsigned i = 0; i < 16; i++)
            free((char *)requests[i].system_name);
    }
    free(image);
}

/* Tables as linkers make them; what is no table stays whole. */
Test(plt, entry_of_a_table_in_memory)
{
    static const struct { uint8_t code[16]; uint64_t at, entry; } cases[] = {
        { { 0xff, 0x35, 1, 2, 3, 4, 0xff, 0x25, 1, 2, 3, 4, 0x0f, 0x1f, 0x40, 0 }, 0x36, 0x30 },
        { { 0xff, 0x35, 1, 2, 3, 4, 0xf2, 0xff, 0x25, 1, 2, 3, 4, 0x0f, 0x1f, 0 }, 0x36, 0x30 },
        { { 0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 1, 2, 3, 4, 0x0f, 0x1f, 0x44, 0, 0 }, 0x1f, 0x10 },
        { { 0xff, 0x25, 1, 2, 3, 4, 0x66, 0x90, 0xff, 0x25 }, 0x0e, 0x08 },
        { { 0xff, 0x25, 1, 2, 3, 4, 0x68, 0, 0, 0, 0, 0xe9 }, 0x2f, 0x20 },
        { { 0x55, 0x48, 0x89, 0xe5, 0xff, 0x25 }, 0x36, 0 },
        { { 0xff, 0x35, 1, 2, 3, 4, 0x58, 0xc3 }, 0x36, 0 },
    };
    alignas(16) uint8_t code[16];
    uint64_t start = (uintptr_t)code;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(code, cases[i].code, sizeof code);
        cr_assert_eq(lapse_plt_entry(start, start + cases[i].at), start + cases[i].entry, "case %zu", i);
    }
    cr_assert_eq(lapse_plt_entry(8, 0x100), 8, "memory that is not there");
}

static void demangles(const char *name, enum lapse_demangle style, const char *expected)
{
    char text[256];
    uint32_t length = lapse_demangle(text, sizeof text, name, style);
    cr_assert_str_eq(text, expected);
    cr_assert_eq(length, strlen(expected));
}

Test(demangle, languages_and_styles)
{
    demangles("main", LAPSE_DEMANGLE_FULL, "main");
    demangles("_Z3fooi", LAPSE_DEMANGLE_FULL, "foo(int)");
    demangles("_Z3fooi", LAPSE_DEMANGLE_SIMPLE, "foo");
    demangles("_Z3fooi", LAPSE_DEMANGLE_NONE, "_Z3fooi");
    demangles("_Z3fooi@plt", LAPSE_DEMANGLE_FULL, "foo(int)@plt");
    demangles("_ZN12_GLOBAL__N_11fEv", LAPSE_DEMANGLE_FULL, "(anonymous namespace)::f()");
    demangles("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", LAPSE_DEMANGLE_FULL,
              "core::fmt::Write::write_fmt");
    demangles("_RNvCs1234_7mycrate3foo", LAPSE_DEMANGLE_FULL, "mycrate::foo");
    demangles("_D3std5stdio7writelnFZv", LAPSE_DEMANGLE_FULL, "std.stdio.writeln()");
    demangles("_Z", LAPSE_DEMANGLE_FULL, "_Z");
    demangles("", LAPSE_DEMANGLE_FULL, "");
}

Test(demangle, cut_between_characters_and_bounded)
{
    char text[8];
    cr_assert_eq(lapse_demangle(text, 6, "abcd\xc3\xa9", LAPSE_DEMANGLE_FULL), 4);
    cr_assert_eq(lapse_demangle(text, 7, "abcd\xc3\xa9", LAPSE_DEMANGLE_FULL), 6);
    cr_assert_eq(lapse_demangle(text, 8, "_Z11abcdefghijkv", LAPSE_DEMANGLE_FULL), 7);
    cr_assert_str_eq(text, "abcdefg");
    cr_assert_eq(lapse_demangle(text, 1, "abc", LAPSE_DEMANGLE_FULL), 0);
    cr_assert_eq(lapse_demangle(text, 0, "abc", LAPSE_DEMANGLE_FULL), 0);
}

Test(demangle, names_that_double_at_every_step_end)
{
    /* Each pair<S, S> holds the one before twice: 2^30 names if nothing stopped it. */
    char name[1024] = "_Z1f1aIiiE", text[512];
    for (int i = 0; i < 30; i++) {
        char part[32];
        snprintf(part, sizeof part, i ? "1aIS%c_S%c_E" : "1aIS_S_E",
                 i < 11 ? '0' + i - 1 : 'A' + i - 11, i < 11 ? '0' + i - 1 : 'A' + i - 11);
        strcat(name, part);
    }
    time_t begin = time(NULL);
    lapse_demangle(text, sizeof text, name, LAPSE_DEMANGLE_FULL);
    cr_assert_leq(time(NULL) - begin, 2);
}

Test(symbols, no_time_left_names_nothing_and_a_lost_file_is_told)
{
    struct lapse_modules modules;
    uint64_t address = (uint64_t)(uintptr_t)only_local;
    struct lapse_symbol_request request = { .address = address };
    only_local();
    cr_assert_eq(lapse_modules_read(&modules, &allocator), 0);
    struct lapse_mapped_module module = *lapse_modules_find(&modules, address);
    cr_assert_eq(lapse_symbols_find_until(&module, &request, 1, &allocator, 1), -ETIME);
    cr_assert_null(request.system_name);
    module.build_id_size = 0;
    module.inode++;
    cr_assert_eq(lapse_symbols_find_until(&module, &request, 1, &allocator, UINT64_MAX), -ESTALE);
    module.path = (char *)"/nowhere/at/all";
    cr_assert_eq(lapse_symbols_find_until(&module, &request, 1, &allocator, UINT64_MAX), -ESTALE);
    cr_assert_eq(lapse_symbols_find(&module, &request, 1, &allocator), 0);
    lapse_modules_free(&modules);
}

Test(demangle, simple_drops_what_compilers_and_linkers_add)
{
    static const struct { const char *name, *simple; } cases[] = {
        { "work.constprop.0", "work" }, { "work.isra.0", "work" }, { "work.cold", "work" },
        { "work.part.1.constprop.2", "work" }, { "memcpy@@GLIBC_2.14", "memcpy" },
        { "memcpy@GLIBC_2.2.5", "memcpy" }, { "_ZN4shop4till5countEi.cold", "shop::till::count" },
        { "_ZN4shop4till5countEi", "shop::till::count" }, { "plain", "plain" },
    };
    char text[2048];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text[lapse_demangle(text, sizeof text - 1, cases[i].name, LAPSE_DEMANGLE_SIMPLE)] = 0;
        cr_assert_str_eq(text, cases[i].simple, "%s: %s", cases[i].name, text);
        text[lapse_demangle(text, sizeof text - 1, cases[i].name, LAPSE_DEMANGLE_NONE)] = 0;
        cr_assert_str_eq(text, cases[i].name);
    }
    text[lapse_demangle(text, sizeof text - 1, "_ZN4shop4till5countEi.cold", LAPSE_DEMANGLE_FULL)] = 0;
    cr_assert_str_eq(text, "shop::till::count(int) [clone .cold]");
    /* std::map<std::string, std::vector<std::string>>::find(...): its arguments are long */
    static const char long_name[] =
        "_ZNSt3mapINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEES"
        "t6vectorIS5_SaIS5_EESt4lessIS5_ESaISt4pairIKS5_S8_EEE4findERSC_";
    uint32_t full = lapse_demangle(text, sizeof text - 1, long_name, LAPSE_DEMANGLE_FULL);
    uint32_t simple = lapse_demangle(text, sizeof text - 1, long_name, LAPSE_DEMANGLE_SIMPLE);
    text[simple] = 0;
    cr_assert_lt(simple, full / 2, "%s", text);
    cr_assert_not_null(strstr(text, "::find"));
    cr_assert_null(strchr(text, '('));
    demangles("_ZlsRSoRK3one", LAPSE_DEMANGLE_SIMPLE, "operator<<");
    demangles("_Z3getIiEvT_", LAPSE_DEMANGLE_SIMPLE, "get<int>");
    demangles("work.constprop.0@plt", LAPSE_DEMANGLE_SIMPLE, "work@plt");
    demangles("main.work", LAPSE_DEMANGLE_SIMPLE, "main.work");
    demangles(".cold", LAPSE_DEMANGLE_SIMPLE, ".cold");
}
