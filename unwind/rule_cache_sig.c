/* SPDX-License-Identifier: MIT */
/* Storing into the rule cache and forgetting it; rules.h describes the table and holds the look-up. */
#include <errno.h>
#include <sys/mman.h>

#include "rules.h"
#include "system_call.h"

struct lapse_rule_cache lapse_rule_cache;

static void *map_lazily(size_t size)
{
    long at = lapse_system_call6(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at < 0 && at > -4096)
        return NULL;
    /* A huge page would be cleared as a whole inside the first handler that stores a rule. */
    lapse_system_call3(SYS_madvise, at, (long)size, MADV_NOHUGEPAGE);
    return (void *)at;
}

int lapse_rule_cache_init(void)
{
    size_t entries = (size_t)LAPSE_CACHE_BUCKETS * LAPSE_CACHE_WAYS;
    size_t size = LAPSE_CACHE_BUCKETS * sizeof(struct lapse_cache_bucket);
    char *memory = map_lazily(size + entries * sizeof(uint64_t));
    if (!memory)
        return -ENOMEM;
    lapse_rule_cache.buckets = (struct lapse_cache_bucket *)memory;
    lapse_rule_cache.starts = (_Atomic uint64_t *)(memory + size);
    return 0;
}

static int is_stale(uint64_t stored, uint64_t epoch)
{
    return stored >> LAPSE_EPOCH_SHIFT != (epoch & LAPSE_EPOCH_MASK) || !stored;
}

/* Context: holder of the resolver's gate, so the only one that stores. */
LAPSE_SIGSAFE void lapse_rule_cache_store(uint64_t epoch, uint64_t key, uint64_t rule,
                                          uint64_t start)
{
    for (uint32_t probe = 0; probe < LAPSE_CACHE_PROBES; probe++) {
        uint32_t index = lapse_rule_cache_bucket(key, probe);
        struct lapse_cache_bucket *bucket = &lapse_rule_cache.buckets[index];
        for (unsigned way = 0; way < LAPSE_CACHE_WAYS; way++) {
            uint64_t stored = atomic_load_explicit(&bucket->keys[way], memory_order_relaxed);
            if (!is_stale(stored, epoch))
                continue;
            if (stored) /* all ones is nobody's key, and not free: chains beyond stay reachable */
                atomic_store_explicit(&bucket->keys[way], UINT64_MAX, memory_order_relaxed);
            /* Release: after the key above was taken away. Pairs with the acquire of the rule in
             * find, whose second look at the key then sees the change. */
            atomic_store_explicit(&bucket->rules[way], rule, memory_order_release);
            atomic_store_explicit(&lapse_rule_cache.starts[index * LAPSE_CACHE_WAYS + way], start,
                                  memory_order_release);
            /* Release: rule and start before the key; pairs with the acquire in find. */
            atomic_store_explicit(&bucket->keys[way], lapse_rule_cache_tag(epoch, key),
                                  memory_order_release);
            return;
        }
    }
    atomic_fetch_add_explicit(&lapse_rule_cache.full, 1, memory_order_relaxed);
}

LAPSE_SIGSAFE int lapse_rule_cache_start(uint64_t key, uint64_t *start, uint64_t *rule)
{
    uint64_t tagged = lapse_rule_cache_tag(lapse_rule_cache_epoch(), key);
    for (uint32_t entry = 0; entry < LAPSE_CACHE_PROBES * LAPSE_CACHE_WAYS; entry++) {
        uint32_t index = lapse_rule_cache_bucket(key, entry / LAPSE_CACHE_WAYS);
        unsigned way = entry % LAPSE_CACHE_WAYS;
        struct lapse_cache_bucket *bucket = &lapse_rule_cache.buckets[index];
        /* Acquire, acquire, look again: as in lapse_rule_cache_find. */
        if (atomic_load_explicit(&bucket->keys[way], memory_order_acquire) != tagged)
            continue;
        *rule = atomic_load_explicit(&bucket->rules[way], memory_order_acquire);
        *start = atomic_load_explicit(&lapse_rule_cache.starts[index * LAPSE_CACHE_WAYS + way],
                                      memory_order_acquire);
        return atomic_load_explicit(&bucket->keys[way], memory_order_relaxed) == tagged;
    }
    return 0;
}

/* Half way round the tags, entries of old epochs are wiped, long before their tag comes again. */
static void wipe(void)
{
    for (uint32_t i = 0; i < LAPSE_CACHE_BUCKETS; i++)
        for (unsigned way = 0; way < LAPSE_CACHE_WAYS; way++) {
            _Atomic uint64_t *key = &lapse_rule_cache.buckets[i].keys[way];
            /* Relaxed: a reader that still sees the old key sees its own epoch's rule. */
            if (atomic_load_explicit(key, memory_order_relaxed))
                atomic_store_explicit(key, UINT64_MAX, memory_order_relaxed);
        }
}

LAPSE_SIGSAFE void lapse_rule_cache_forget(void)
{
    /* Release: pairs with the acquire in lapse_rule_cache_epoch. */
    uint64_t epoch =
        atomic_fetch_add_explicit(&lapse_rule_cache.epoch, 1, memory_order_release) + 1;
    if (!(epoch & (LAPSE_EPOCH_MASK >> 1)) && lapse_rule_cache.buckets)
        wipe();
}
