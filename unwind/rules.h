/* SPDX-License-Identifier: MIT */
/* An unwind rule: how to get from a frame to its caller, packed into 64 bits, and the process-wide
 * cache of rules. The resolver (resolve_sig.c) asks libunwind once per pc; the walker (walk_sig.c)
 * repeats the answer.
 *
 * A key is the address whose rule is wanted: a pc that was interrupted, or a return address minus
 * one. Keys are user addresses, below 2^47.
 *
 * Layout of a rule:
 *   bits 0-2   kind
 *   bit  3     AFTER_CALL: the byte at the key ends a call instruction, so key + 1 is a possible
 *              return address
 *   bits 4-7   base register of the CFA, in DWARF's numbers (6 is RBP, 7 RSP)
 *   bits 8-9   where the caller's RBP is: kept, at CFA + offset, at base + offset, lost
 *   bit  10    NO_INFO only: in a loaded module
 *   bit  11    NO_INFO only: in a module that has unwind information for other code
 *   bit  12    NO_INFO: the instruction at the key finds its return address at RSP
 *              REGISTER: LANDS, see below
 *   bit  13    NO_INFO only: the instruction before pushed RBP, the one at the key makes it the frame pointer
 *   bits 16-31 offset of the saved RBP in words, signed
 *   bits 32-63 PLAIN: CFA = base + this, signed
 *              DEREF: CFA = value at (base + bits 40-63) + bits 32-39, both signed
 * The return address is at CFA - 8, always. */
#ifndef LAPSE_UNWIND_RULES_H
#define LAPSE_UNWIND_RULES_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "walk.h"

enum lapse_rule_kind {
    LAPSE_RULE_UNKNOWN,   /* not in the cache */
    LAPSE_RULE_PLAIN,     /* CFA = RSP or RBP + offset */
    LAPSE_RULE_REGISTER,  /* CFA = another register + offset */
    LAPSE_RULE_DEREF,     /* CFA through memory: realigned stacks */
    LAPSE_RULE_SIGNAL,    /* RSP points at a ucontext */
    LAPSE_RULE_OUTERMOST, /* no caller */
    LAPSE_RULE_NO_INFO,   /* no unwind information covers the key: JIT code, assembly */
    LAPSE_RULE_FAILED,    /* unwind information that no rule can express, or that is broken */
};

enum lapse_rule_rbp { LAPSE_RBP_KEPT, LAPSE_RBP_AT_CFA, LAPSE_RBP_AT_BASE, LAPSE_RBP_LOST };

enum { LAPSE_REGISTER_RBP = 6, LAPSE_REGISTER_RSP = 7, LAPSE_REGISTER_RIP = 16 };

#define LAPSE_RULE_AFTER_CALL (UINT64_C(1) << 3)
#define LAPSE_RULE_IN_MODULE (UINT64_C(1) << 10)
#define LAPSE_RULE_IN_TABLED_MODULE (UINT64_C(1) << 11)
#define LAPSE_RULE_AT_RETURN (UINT64_C(1) << 12)
#define LAPSE_RULE_RBP_PUSHED (UINT64_C(1) << 13)
/* A function that restores registers which no call preserves: it returns to where an exception lands, and
 * puts the landing frame's registers over its own saved ones first. Its kind is REGISTER, also with RSP or
 * RBP as base, so that the warm path leaves it alone. */
#define LAPSE_RULE_LANDS (UINT64_C(1) << 12)

static inline enum lapse_rule_kind lapse_rule_kind(uint64_t rule)
{
    return (enum lapse_rule_kind)(rule & 7);
}
static inline unsigned lapse_rule_base(uint64_t rule) { return rule >> 4 & 15; }
static inline enum lapse_rule_rbp lapse_rule_rbp(uint64_t rule)
{
    return (enum lapse_rule_rbp)(rule >> 8 & 3);
}
static inline int64_t lapse_rule_rbp_offset(uint64_t rule)
{
    return (int64_t)(int16_t)(rule >> 16) * 8;
}
static inline int64_t lapse_rule_cfa_offset(uint64_t rule) { return (int64_t)rule >> 32; }
static inline int64_t lapse_rule_deref_offset(uint64_t rule) { return (int64_t)rule >> 40; }
static inline int64_t lapse_rule_deref_add(uint64_t rule) { return (int8_t)(rule >> 32); }

/* The cache. One table for the process, buckets of one cache line with four entries each, at most
 * LAPSE_CACHE_PROBES buckets looked at. The near ones lie in one page of the table for all of one page
 * of code, so that the memory touched follows the amount of hot code and not the number of its
 * addresses; the others anywhere, for code that has more.
 *
 * A stored key carries the epoch in the bits that addresses do not use, so a new epoch makes every
 * entry stale at once, and a stale entry is as good as a free one. Only the holder of the resolver's
 * gate stores; any number of handlers read. An entry is replaced as: key 0, rule, key; a reader
 * loads key, rule, key again, so that it never takes the rule of another key. */
#define LAPSE_CACHE_BUCKETS 32768u
#define LAPSE_CACHE_PAGE 64u /* buckets in a page of memory */
#define LAPSE_CACHE_WAYS 4
#define LAPSE_CACHE_NEAR_PROBES 2u
#define LAPSE_CACHE_PROBES 6u
#define LAPSE_EPOCH_SHIFT 47
#define LAPSE_EPOCH_MASK 0x1ffffu

struct lapse_cache_bucket {
    _Atomic uint64_t keys[LAPSE_CACHE_WAYS];
    _Atomic uint64_t rules[LAPSE_CACHE_WAYS];
};
_Static_assert(sizeof(struct lapse_cache_bucket) == 64, "a bucket is a cache line");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2 && ATOMIC_LONG_LOCK_FREE == 2, "plain loads and stores");

struct lapse_rule_cache {
    /* Set by lapse_rule_cache_init before the first tick, constant after. */
    struct lapse_cache_bucket *buckets;
    _Atomic uint64_t *starts; /* of the function, by bucket and way; read by the drain only */
    /* Written by whoever forgets. */
    _Atomic uint64_t epoch;
    /* Written by the holder of the gate. Statistic; nothing is inferred from it. */
    _Atomic uint64_t full;
};
extern struct lapse_rule_cache lapse_rule_cache;

int lapse_rule_cache_init(void);
LAPSE_SIGSAFE void lapse_rule_cache_store(uint64_t epoch, uint64_t key, uint64_t rule,
                                          uint64_t start);
/* The start stored with `key`, and its rule; returns 0 when the key is not there. */
LAPSE_SIGSAFE int lapse_rule_cache_start(uint64_t key, uint64_t *start, uint64_t *rule);
LAPSE_SIGSAFE void lapse_rule_cache_forget(void);

static inline uint64_t lapse_rule_cache_epoch(void)
{
    /* Acquire: pairs with the release in forget, so that what is resolved after this load sees the
     * memory as it was after the module went away. */
    return atomic_load_explicit(&lapse_rule_cache.epoch, memory_order_acquire);
}
static inline uint64_t lapse_rule_cache_tag(uint64_t epoch, uint64_t key)
{
    return key | (epoch & LAPSE_EPOCH_MASK) << LAPSE_EPOCH_SHIFT;
}
/* Which bucket is looked at in turn `probe`. */
static inline uint32_t lapse_rule_cache_bucket(uint64_t key, uint32_t probe)
{
    /* The golden ratio: the upper bits are well mixed. */
    uint32_t hash = (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32);
    uint32_t page = (uint32_t)(key >> 12 ^ key >> 21) * LAPSE_CACHE_PAGE;
    if (probe < LAPSE_CACHE_NEAR_PROBES)
        return (page | (hash + probe) % LAPSE_CACHE_PAGE) % LAPSE_CACHE_BUCKETS;
    /* Other bits each time. */
    return (hash >> 5 * (probe - LAPSE_CACHE_NEAR_PROBES)) % LAPSE_CACHE_BUCKETS;
}

/* Returns the rule, or 0 when it has to be resolved. Context: anywhere. */
static inline uint64_t lapse_rule_cache_find(uint64_t epoch, uint64_t key)
{
    uint64_t tagged = lapse_rule_cache_tag(epoch, key);
    for (uint32_t probe = 0; probe < LAPSE_CACHE_PROBES; probe++) {
        struct lapse_cache_bucket *bucket =
            &lapse_rule_cache.buckets[lapse_rule_cache_bucket(key, probe)];
        for (unsigned way = 0; way < LAPSE_CACHE_WAYS; way++) {
            /* Acquire: pairs with the release of the key in store, else the rule is read before
             * it is there. */
            uint64_t found = atomic_load_explicit(&bucket->keys[way], memory_order_acquire);
            if (found == tagged) {
                uint64_t rule = atomic_load_explicit(&bucket->rules[way], memory_order_acquire);
                /* Relaxed, after an acquire load: replaced meanwhile means not found. */
                if (atomic_load_explicit(&bucket->keys[way], memory_order_relaxed) == tagged)
                    return rule;
            }
            if (!found)
                return 0; /* entries are never taken out, so the key is not further on */
        }
    }
    return 0;
}

/* The rule of `key`, resolved when it is not cached. Returns 0 when the resolver was busy.
 * Context: as lapse_walk. */
LAPSE_SIGSAFE uint64_t lapse_rule_resolve(uint64_t key);

static inline uint64_t lapse_rule_get(uint64_t epoch, uint64_t key)
{
    uint64_t rule = lapse_rule_cache_find(epoch, key);
    return __builtin_expect(rule != 0, 1) ? rule : lapse_rule_resolve(key);
}

#endif
