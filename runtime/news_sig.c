/* SPDX-License-Identifier: MIT */
/* See news.h. Context: the handler of any thread, every signal masked; also host threads outside of it. */
#include "news.h"

#include <stdatomic.h>

#include "drain.h"
#include "sys.h"

#define SETS 1024u

/* Relaxed everywhere: what is told twice or, between two threads, late, costs a turn or is told with the
 * next record. */
static _Atomic bool is_wanted;
static _Atomic uint64_t sets[SETS];
static _Atomic uint32_t modules_told;

void lapse_news_begin(bool wanted)
{
    for (uint32_t i = 0; i < SETS; i++)
        if (atomic_load_explicit(&sets[i], memory_order_relaxed)) /* no page is touched for nothing */
            atomic_store_explicit(&sets[i], 0, memory_order_relaxed);
    atomic_store_explicit(&is_wanted, wanted, memory_order_relaxed);
}

static LAPSE_SIGSAFE bool is_new_text(uint64_t hash)
{
    _Atomic uint64_t *place = &sets[hash >> 54];
    if (atomic_load_explicit(place, memory_order_relaxed) == hash)
        return false;
    atomic_store_explicit(place, hash, memory_order_relaxed);
    return true;
}

static LAPSE_SIGSAFE uint64_t mixed(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
}

static LAPSE_SIGSAFE bool is_news(const struct lapse_record *record)
{
    uint64_t hash = record->label_count;
    uint32_t met = atomic_load_explicit(&lapse_unwind_modules_met, memory_order_relaxed);
    if (record->kind == LAPSE_RECORD_THREAD_NAME)
        return true;
    if (record->kind == LAPSE_RECORD_SPAN)
        return is_new_text(mixed(hash, record->cut_cfa));
    for (uint32_t i = 0; i < 2 * record->label_count; i++)
        hash = mixed(hash, record->labels[i]);
    bool has_new_labels = record->label_count && is_new_text(hash);
    if (atomic_load_explicit(&modules_told, memory_order_relaxed) == met)
        return has_new_labels;
    atomic_store_explicit(&modules_told, met, memory_order_relaxed);
    return true;
}

LAPSE_SIGSAFE void lapse_news_look(const struct lapse_record *record)
{
    if (!atomic_load_explicit(&is_wanted, memory_order_relaxed) || !is_news(record))
        return;
    /* release: the record; pairs with the acquire of the drain thread's exchange */
    if (!atomic_exchange_explicit(&lapse_drain.has_news, 1, memory_order_release)) {
        atomic_fetch_add_explicit(&lapse_drain.bell, 1, memory_order_release);
        lapse_sys_wake(&lapse_drain.bell);
    }
}
