/* SPDX-License-Identifier: MIT */
/* The runtime's memory: sizes, reuse, limits, and that blocks never overlap. */
#include "arena.h"

#include <criterion/criterion.h>
#include <string.h>

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *old);

Test(arena, blocks_are_aligned_and_apart)
{
    static struct lapse_arena arena;
    enum { COUNT = 600 };
    unsigned char *blocks[COUNT];
    size_t sizes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        sizes[i] = (size_t)i * i / 3 + 1;
        blocks[i] = lapse_arena_resize(&arena, NULL, 0, sizes[i]);
        cr_assert(blocks[i]);
        cr_assert_eq((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], i & 0xff, sizes[i]);
    }
    for (int i = 0; i < COUNT; i++)
        for (size_t at = 0; at < sizes[i]; at++)
            cr_assert_eq(blocks[i][at], i & 0xff);
    lapse_arena_reset(&arena);
    cr_assert_eq(arena.mapped, 0);
}

Test(arena, growing_keeps_the_contents)
{
    static struct lapse_arena arena;
    unsigned char *block = NULL;
    size_t size = 0;
    for (size_t next = 1; next < 3000000; next += next / 2 + 1) {
        block = lapse_arena_resize(&arena, block, size, next);
        cr_assert(block);
        memset(block + size, 0x5a, next - size);
        size = next;
        cr_assert_eq(block[0], 0x5a);
        cr_assert_eq(block[size - 1], 0x5a);
        cr_assert_eq(block[size / 2], 0x5a);
    }
    block = lapse_arena_resize(&arena, block, size, 10);
    cr_assert_eq(block[9], 0x5a);
    cr_assert_null(lapse_arena_resize(&arena, block, 10, 0));
    lapse_arena_reset(&arena);
}

Test(arena, freed_blocks_serve_again)
{
    static struct lapse_arena arena;
    void *block = lapse_arena_resize(&arena, NULL, 0, 100);
    lapse_arena_resize(&arena, block, 100, 0);
    cr_assert_eq(lapse_arena_resize(&arena, NULL, 0, 110), block);
    size_t mapped = arena.mapped;
    for (int i = 0; i < 100000; i++) {
        void *large = lapse_arena_resize(&arena, NULL, 0, 200000), *small = lapse_arena_resize(&arena, NULL, 0, 333);
        cr_assert(large && small);
        lapse_arena_resize(&arena, small, 333, 0);
        lapse_arena_resize(&arena, large, 200000, 0);
        i += 99;
    }
    cr_assert_eq(arena.mapped, mapped);
    lapse_arena_reset(&arena);
}

Test(arena, the_limit_holds)
{
    static struct lapse_arena arena = { .limit = 1 << 20 };
    cr_assert_null(lapse_arena_resize(&arena, NULL, 0, 2 << 20));
    void *block = lapse_arena_resize(&arena, NULL, 0, 500000);
    cr_assert(block);
    cr_assert_null(lapse_arena_resize(&arena, block, 500000, 900000));
    memset(block, 1, 500000); /* the old one stays valid */
    cr_assert_null(lapse_arena_resize(&arena, NULL, 0, SIZE_MAX - 5));
    lapse_arena_reset(&arena);
    cr_assert_eq(arena.limit, 1 << 20);
}

Test(arena, stands_in_for_malloc)
{
    char *text = __wrap_malloc(5);
    memcpy(text, "four", 5);
    text = __wrap_realloc(text, 100000);
    cr_assert_str_eq(text, "four");
    int *zeros = __wrap_calloc(1000, sizeof *zeros);
    for (int i = 0; i < 1000; i++)
        cr_assert_eq(zeros[i], 0);
    memset(zeros, 0xff, 1000 * sizeof *zeros);
    __wrap_free(zeros);
    zeros = __wrap_calloc(1000, sizeof *zeros);
    cr_assert_eq(zeros[999], 0);
    cr_assert_null(__wrap_calloc(SIZE_MAX / 2, 3));
    cr_assert_null(__wrap_malloc(SIZE_MAX / 2));
    __wrap_free(zeros);
    __wrap_free(text);
    __wrap_free(NULL);
}
