/* SPDX-License-Identifier: MIT */
/* From captured pcs to nodes of the call tree, and the modules they lie in (store.h). Context: the
 * drain thread. Frames that a stack shares with the thread's one before cost a comparison each;
 * the function of a return address is resolved once and remembered. */
#include <stdatomic.h>
#include <string.h>

#include "interpose_thread.h"
#include "plt.h"
#include "state.h"
#include "store.h"
#include "sys.h"

#define REREAD_NS UINT64_C(100000000) /* unknown addresses make us look at the maps this often */

static bool same_file(const struct lapse_mapped_module *a, const struct lapse_mapped_module *b)
{
    return a->device == b->device && a->inode == b->inode && a->build_id_size == b->build_id_size &&
           !memcmp(a->build_id, b->build_id, a->build_id_size) && !strcmp(a->path, b->path);
}

static bool same_module(const struct lapse_mapped_module *a, const struct lapse_mapped_module *b)
{
    return a->start == b->start && a->end == b->end && same_file(a, b);
}

static void keep_module(struct lapse_store *store, const struct lapse_mapped_module *module, uint64_t now)
{
    for (uint32_t i = store->known_count; i-- > 0;) {
        struct lapse_store_module *known = &store->known[i];
        if (!known->unloaded_ns && same_module(&known->module, module)) {
            known->seen = true;
            return;
        }
    }
    struct lapse_store_module *list = lapse_store_grow(store, store->known, &store->known_capacity,
                                                       store->known_count + 1, sizeof *list);
    if (!list)
        return;
    store->known = list;
    size_t size = strlen(module->path) + 1;
    char *path = lapse_arena_resize(&store->arena, NULL, 0, size);
    if (!path)
        return;
    memcpy(path, module->path, size);
    list[store->known_count] = (struct lapse_store_module){
        .module = *module, .id = store->known_count + 1, .loaded_ns = now, .changed = true, .seen = true,
    };
    list[store->known_count++].module.path = path;
}

bool lapse_store_read_modules(struct lapse_store *store, uint64_t since_ns)
{
    bool gone = false;
    lapse_modules_free(&store->modules);
    store->modules_read_ns = lapse_sys_clock(CLOCK_MONOTONIC);
    if (lapse_modules_read(&store->modules, &store->allocator))
        return false;
    for (uint32_t i = 0; i < store->known_count; i++)
        store->known[i].seen = false;
    for (uint32_t i = 0; i < store->modules.count; i++)
        keep_module(store, &store->modules.modules[i], since_ns);
    for (uint32_t i = 0; i < store->known_count; i++)
        if (!store->known[i].seen && !store->known[i].unloaded_ns) {
            store->known[i].unloaded_ns = since_ns;
            store->known[i].changed = true;
            gone |= store->known[i].module.path[0] == '/';
        }
    return gone;
}

/* Step to the next known module that covers the address; *turn counts the changes of file. */
static const struct lapse_store_module *next_covering(const struct lapse_store *store, uint64_t address,
                                                      const struct lapse_store_module *last, uint32_t *turn)
{
    for (uint32_t i = last ? (uint32_t)(last - store->known) + 1 : 0; i < store->known_count; i++) {
        const struct lapse_store_module *known = &store->known[i];
        if (address < known->module.start || address >= known->module.end)
            continue;
        if (last && !same_file(&last->module, &known->module))
            ++*turn;
        return known;
    }
    return NULL;
}

const struct lapse_store_module *lapse_store_module_of(const struct lapse_store *store, uint64_t function,
                                                       uint64_t *from_ns, uint64_t *until_ns)
{
    uint64_t address = lapse_function_address(function);
    uint32_t turn = 0, wanted = function >> 63 ? 0 : (uint32_t)(function >> LAPSE_FUNCTION_BITS);
    const struct lapse_store_module *found = NULL, *at = NULL;
    *from_ns = *until_ns = 0;
    while ((at = next_covering(store, address, at, &turn)) && turn <= wanted) {
        if (turn && (!found || !same_file(&found->module, &at->module)))
            *from_ns = at->loaded_ns;
        found = at;
    }
    if (at)
        *until_ns = found && found->unloaded_ns ? found->unloaded_ns : at->loaded_ns;
    return found;
}

/* The function as the tree has it: of the file that is there now. */
static uint64_t function_now(const struct lapse_store *store, uint64_t address)
{
    uint32_t turn = 0;
    for (const struct lapse_store_module *at = NULL; (at = next_covering(store, address, at, &turn));)
        ;
    return address >> LAPSE_FUNCTION_BITS || turn > INT16_MAX ? address
                                                    : address | (uint64_t)turn << LAPSE_FUNCTION_BITS;
}

static void forget_functions(struct lapse_store *store)
{
    if (store->memo)
        memset(store->memo, 0, (store->memo_mask + 1) * sizeof *store->memo);
    store->memo_used = 0;
    for (uint32_t i = 0; i < store->thread_count; i++)
        store->threads[i]->depth = 0;
}

/* An address in no module may mean that one was loaded since the last look. */
static void know_module_of(struct lapse_store *store, uint64_t pc)
{
    uint64_t now = lapse_sys_clock(CLOCK_MONOTONIC);
    /* relaxed: what the walk of this stack met came with its record */
    uint32_t met = atomic_load_explicit(&lapse_unwind_modules_met, memory_order_relaxed);
    if (lapse_modules_find(&store->modules, pc))
        return;
    /* relaxed: who unloads waits for the drain's answer, which orders */
    if (store->modules_read_ns && now - store->modules_read_ns <= REREAD_NS && met == store->modules_met &&
        !atomic_load_explicit(&lapse_store_unloading, memory_order_relaxed))
        return;
    store->modules_met = met;
    if (lapse_store_read_modules(store, now))
        forget_functions(store);
}

static uint32_t memo_slot(const struct lapse_store *store, uint64_t pc)
{
    uint32_t at = (uint32_t)((pc * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & store->memo_mask;
    while (store->memo[at].pc && store->memo[at].pc != pc)
        at = (at + 1) & store->memo_mask;
    return at;
}

static bool memo_grow(struct lapse_store *store)
{
    struct lapse_memo *old = store->memo;
    uint32_t old_size = old ? store->memo_mask + 1 : 0, size = old ? old_size * 2 : 1024;
    struct lapse_memo *memo = lapse_arena_resize(&store->arena, NULL, 0, size * sizeof *memo);
    if (!memo)
        return false;
    memset(memo, 0, size * sizeof *memo);
    store->memo = memo;
    store->memo_mask = size - 1;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i].pc)
            memo[memo_slot(store, old[i].pc)] = old[i];
    if (old)
        lapse_arena_resize(&store->arena, old, old_size * sizeof *old, 0);
    return true;
}

static struct lapse_memo resolve(struct lapse_store *store, uint64_t pc)
{
    int covered = 1;
    know_module_of(store, pc);
    struct lapse_memo memo = { .pc = pc, .function = lapse_unwind_function(pc, &covered) };
    if (covered && memo.function) {
        memo.function = lapse_plt_entry(memo.function, pc);
    } else { /* where the function begins is not known: each address stands for itself */
        memo.function = pc;
        covered = 0;
    }
    memo.function = function_now(store, memo.function);
    memo.flags = covered ? 0 : LAPSE_NODE_NO_UNWIND_INFO;
    return memo;
}

static struct lapse_memo function_of(struct lapse_store *store, uint64_t pc)
{
    if (store->memo) {
        const struct lapse_memo *memo = &store->memo[memo_slot(store, pc)];
        if (memo->pc == pc)
            return *memo;
    }
    struct lapse_memo found = resolve(store, pc);
    if ((store->memo && store->memo_used * 2 < store->memo_mask) || memo_grow(store)) {
        store->memo[memo_slot(store, pc)] = found;
        store->memo_used++;
    }
    return found;
}

static bool make_room(struct lapse_store *store, struct lapse_store_thread *thread, uint32_t depth)
{
    uint32_t pcs_capacity = thread->capacity, nodes_capacity = thread->capacity;
    uint64_t *pcs = lapse_store_grow(store, thread->pcs, &pcs_capacity, depth, sizeof *pcs);
    if (pcs)
        thread->pcs = pcs;
    uint32_t *nodes = lapse_store_grow(store, thread->nodes, &nodes_capacity, depth, sizeof *nodes);
    if (nodes)
        thread->nodes = nodes;
    if (!pcs || !nodes)
        return false;
    thread->capacity = nodes_capacity;
    return true;
}

/* The frame at position `i` (root first) under `parent`. Our own thread start is left out. */
static uint32_t frame_node(struct lapse_store *store, uint32_t parent, const uint64_t *pcs,
                           uint32_t i, bool leaf)
{
    uint64_t pc = pcs[i] & ~LAPSE_PC_GUESSED;
    struct lapse_memo function = function_of(store, leaf ? pc : pc - 1);
    if (lapse_function_address(function.function) == (uint64_t)(uintptr_t)lapse_thread_start)
        return parent;
    uint32_t flags = function.flags | (pcs[i] & LAPSE_PC_GUESSED ? LAPSE_NODE_GUESSED : 0);
    uint64_t call_site = i ? pcs[i - 1] & ~LAPSE_PC_GUESSED : 0;
    uint32_t node = lapse_call_tree_child(store->tree, parent, call_site, function.function, flags);
    return node ? node : parent; /* no memory: the weight goes to the caller */
}

static uint32_t root_of(struct lapse_store *store, const struct lapse_record *record)
{
    if (record->flags & LAPSE_RECORD_TRUNCATED)
        return lapse_call_tree_child(store->tree, 0, 0, LAPSE_PSEUDO_TRUNCATED, 0);
    if (record->flags & LAPSE_RECORD_FAILED || !record->depth)
        return lapse_call_tree_child(store->tree, 0, 0, LAPSE_PSEUDO_UNWIND_FAILED, 0);
    return 0;
}

uint32_t lapse_store_intern(struct lapse_store *store, struct lapse_store_thread *thread,
                            const struct lapse_record *record)
{
    uint32_t depth = record->depth, root = root_of(store, record), same = 0;
    /* acquire: pairs with the release in lapse_session_modules_changed; samples from before the change
     * belong to the modules that were there then */
    uint64_t changed_ns = atomic_load_explicit(&lapse_store_modules_changed_ns, memory_order_acquire);
    if (changed_ns && record->time_ns >= changed_ns) {
        atomic_compare_exchange_strong_explicit(&lapse_store_modules_changed_ns, &changed_ns, 0,
                                                memory_order_relaxed, memory_order_relaxed);
        lapse_store_read_modules(store, changed_ns);
        forget_functions(store);
    }
    if (!depth || !make_room(store, thread, depth))
        return root;
    if (root == thread->root)
        while (same + 1 < depth && same + 1 < thread->depth &&
               thread->pcs[same] == record->pcs[depth - 1 - same])
            same++;
    for (uint32_t i = same; i < depth; i++) {
        thread->pcs[i] = record->pcs[depth - 1 - i];
        thread->nodes[i] = frame_node(store, i ? thread->nodes[i - 1] : root, thread->pcs, i, i + 1 == depth);
    }
    thread->depth = depth;
    thread->root = root;
    return thread->nodes[depth - 1];
}
