/* SPDX-License-Identifier: MIT */
/* lapse_intern: copies of the application's strings that stay for the life of the process, so that
 * labels can be carried as pointers. Lock-free, since a fork may come while another thread is inside:
 * lists that only grow, memory that is only given out. Context: host threads. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "lapse.h"
#include "sys.h"

#define BUCKETS 4096u
#define REGION_BYTES (64u << 10)

struct entry { struct entry *next; char text[]; };
struct region { size_t size; _Atomic size_t used; };

/* Whoever wins the compare-and-swap; nothing is ever taken out. */
static _Atomic(struct entry *) buckets[BUCKETS];
static _Atomic(struct region *) current;

static uint32_t bucket_of(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return (uint32_t)(hash >> 32) % BUCKETS;
}

static struct region *new_region(size_t least)
{
    size_t size = least + sizeof(struct region) > REGION_BYTES ? least + sizeof(struct region) : REGION_BYTES;
    struct region *region = lapse_sys_map(size);
    if (region)
        region->size = size;
    if (region)
        atomic_store_explicit(&region->used, sizeof *region, memory_order_relaxed);
    return region;
}

/* A share of the current region; a new region when it is used up. What is left of the old one is
 * given up. */
static void *take(size_t size)
{
    size = (size + 15) & ~(size_t)15;
    for (;;) {
        /* acquire: the region's header; pairs with the release below */
        struct region *region = atomic_load_explicit(&current, memory_order_acquire);
        /* relaxed: the number is all that is shared */
        size_t at = region ? atomic_fetch_add_explicit(&region->used, size, memory_order_relaxed) : 0;
        if (region && at + size <= region->size)
            return (char *)region + at;
        struct region *next = new_region(size);
        if (!next)
            return NULL;
        if (!atomic_compare_exchange_strong_explicit(&current, &region, next, memory_order_release,
                                                     memory_order_relaxed))
            lapse_sys(SYS_munmap, next, next->size);
    }
}

static const char *find(struct entry *from, const struct entry *until, const char *text)
{
    for (struct entry *at = from; at != until; at = at->next)
        if (!strcmp(at->text, text))
            return at->text;
    return NULL;
}

LAPSE_API const char *lapse_intern(const char *text)
{
    _Atomic(struct entry *) *bucket = &buckets[bucket_of(text)];
    /* acquire: the entries' text; pairs with the release of whoever put them there */
    struct entry *head = atomic_load_explicit(bucket, memory_order_acquire);
    const char *known = find(head, NULL, text);
    size_t size = strlen(text) + 1;
    struct entry *entry = known ? NULL : take(sizeof *entry + size);
    if (!entry)
        return known;
    memcpy(entry->text, text, size);
    entry->next = head;
    while (!atomic_compare_exchange_weak_explicit(bucket, &entry->next, entry, memory_order_release,
                                                  memory_order_acquire)) {
        if ((known = find(entry->next, head, text)))
            return known; /* another thread was faster; our copy is lost */
        head = entry->next;
    }
    return entry->text;
}
