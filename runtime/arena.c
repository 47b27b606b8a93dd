/* SPDX-License-Identifier: MIT */
/* See arena.h. Also the malloc of everything that is linked into liblapse.so and allocates by itself
 * (libiberty's demangler in odd names, engines made by the host without an allocator): the linker's
 * --wrap sends those calls here. Runs outside the handler only. */
#include "arena.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "sys.h"

#define REGION_SIZE (256u * 1024)
#define LARGEST_CLASS_SIZE (64u * 1024)
#define SMALLEST_SHIFT 4

/* Head of a mapping. */
struct region {
    struct region *next, *previous;
    size_t size;
    size_t spare; /* keeps blocks aligned to 16 */
};

/* Sizes 16, 24, 32, 48, 64, 96, ...: class 2k is 16 << k, class 2k+1 half as much again. */
static size_t class_size(unsigned class)
{
    size_t size = (size_t)1 << (SMALLEST_SHIFT + class / 2);
    return class & 1 ? size + size / 2 : size;
}

static unsigned class_of(size_t size)
{
    if (size <= 16)
        return 0;
    unsigned shift = 63u - (unsigned)__builtin_clzl(size - 1); /* 2^shift < size <= 2^(shift + 1) */
    size_t low = (size_t)1 << shift;
    unsigned base = (shift - SMALLEST_SHIFT) * 2;
    return size <= low + low / 2 && low > 16 ? base + 1 : base + 2;
}

/* The list of regions is whole at every moment (the system calls order the accesses around them):
 * a fork may come while the drain thread is in here, and the child walks the list. Therefore no
 * mremap either, which would move a region that is still linked where it was. */
static struct region *map_region(struct lapse_arena *arena, size_t size)
{
    if (arena->limit && size > arena->limit - arena->mapped)
        return NULL;
    struct region *region = lapse_sys_map(size);
    if (!region)
        return NULL;
    region->size = size;
    region->next = arena->regions;
    if (region->next)
        region->next->previous = region;
    arena->regions = region;
    arena->mapped += size;
    return region;
}

static void unmap_region(struct lapse_arena *arena, struct region *region)
{
    if (region->previous)
        region->previous->next = region->next;
    else
        arena->regions = region->next;
    if (region->next)
        region->next->previous = region->previous;
    arena->mapped -= region->size;
    lapse_sys(SYS_munmap, region, region->size);
}

static size_t mapping_size(size_t size)
{
    return (size + sizeof(struct region) + 4095) & ~(size_t)4095;
}

static void *take(struct lapse_arena *arena, size_t size)
{
    if (size > LARGEST_CLASS_SIZE) {
        struct region *region = map_region(arena, mapping_size(size));
        return region ? region + 1 : NULL;
    }
    unsigned class = class_of(size);
    void *block = arena->free[class];
    if (block) {
        memcpy(&arena->free[class], block, sizeof block);
        return block;
    }
    size_t step = (class_size(class) + 15) & ~(size_t)15;
    if ((size_t)(arena->bump_end - arena->bump) < step) {
        struct region *region = map_region(arena, REGION_SIZE);
        if (!region)
            return NULL;
        arena->bump = (char *)(region + 1);
        arena->bump_end = (char *)region + REGION_SIZE;
    }
    block = arena->bump;
    arena->bump += step;
    return block;
}

static void give_back(struct lapse_arena *arena, void *block, size_t size)
{
    if (size > LARGEST_CLASS_SIZE) {
        unmap_region(arena, (struct region *)block - 1);
        return;
    }
    unsigned class = class_of(size);
    memcpy(block, &arena->free[class], sizeof block);
    arena->free[class] = block;
}

/* Two sizes that the same block serves. */
static bool same_block(size_t old_size, size_t new_size)
{
    if (old_size <= LARGEST_CLASS_SIZE && new_size <= LARGEST_CLASS_SIZE)
        return class_of(old_size) == class_of(new_size);
    return old_size > LARGEST_CLASS_SIZE && new_size > LARGEST_CLASS_SIZE &&
           mapping_size(old_size) == mapping_size(new_size);
}

void *lapse_arena_resize(void *context, void *old, size_t old_size, size_t new_size)
{
    struct lapse_arena *arena = context;
    if (!new_size) {
        if (old)
            give_back(arena, old, old_size);
        return NULL;
    }
    if (new_size > SIZE_MAX / 2)
        return NULL;
    if (!old)
        return take(arena, new_size);
    if (same_block(old_size, new_size))
        return old;
    void *block = take(arena, new_size);
    if (!block)
        return NULL;
    memcpy(block, old, old_size < new_size ? old_size : new_size);
    give_back(arena, old, old_size);
    return block;
}

struct lapse_allocator lapse_arena_allocator(struct lapse_arena *arena)
{
    return (struct lapse_allocator){ .resize = lapse_arena_resize, .context = arena };
}

void lapse_arena_reset(struct lapse_arena *arena)
{
    /* Out of the list first: a fork may come in the middle of this as well. */
    for (struct region *region; (region = arena->regions);) {
        arena->regions = region->next;
        lapse_sys(SYS_munmap, region, region->size);
    }
    *arena = (struct lapse_arena){ .limit = arena->limit };
}

/* malloc and friends of what is linked into liblapse.so. A block carries its size in front. */
static struct lapse_arena library_arena;
static _Atomic int library_lock; /* 1: some thread is inside; held for a few hundred instructions */

#define LIBRARY_HEAD 16u

static void library_enter(void)
{
    /* acquire: pairs with the release in library_leave, else the lists would be seen half changed */
    while (atomic_exchange_explicit(&library_lock, 1, memory_order_acquire))
        lapse_sys(SYS_sched_yield);
}

static void library_leave(void)
{
    atomic_store_explicit(&library_lock, 0, memory_order_release); /* see library_enter */
}

void lapse_arena_fork_child(void)
{
    library_leave();
}

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void __wrap_free(void *old);

void *__wrap_realloc(void *old, size_t size)
{
    if (size > SIZE_MAX / 4)
        return NULL;
    char *block = old ? (char *)old - LIBRARY_HEAD : NULL;
    size_t old_size = 0;
    if (block)
        memcpy(&old_size, block, sizeof old_size);
    library_enter();
    block = lapse_arena_resize(&library_arena, block, old_size, size + LIBRARY_HEAD);
    library_leave();
    if (!block)
        return NULL;
    size += LIBRARY_HEAD;
    memcpy(block, &size, sizeof size);
    return block + LIBRARY_HEAD;
}

void *__wrap_malloc(size_t size)
{
    return __wrap_realloc(NULL, size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *block = __wrap_realloc(NULL, bytes);
    if (block)
        memset(block, 0, bytes);
    return block;
}

void __wrap_free(void *old)
{
    if (!old)
        return;
    char *block = (char *)old - LIBRARY_HEAD;
    size_t size;
    memcpy(&size, block, sizeof size);
    library_enter();
    lapse_arena_resize(&library_arena, block, size, 0);
    library_leave();
}
