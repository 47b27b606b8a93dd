/* SPDX-License-Identifier: MIT */
/* The profile's builder: recorded stacks become nodes and leaves. Inlined functions become nodes of
 * their own between a function and what it called. Each recorded node is turned once; the answer is
 * kept as long as the names on its path hold. Offline only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile_source.h"

static uint64_t node_hash(const struct lapse_profile_node *node)
{
    uint64_t hash = lapse_hash((uint64_t)node->parent << 32 | node->function, node->call_pc);
    return lapse_hash(hash, (uint64_t)node->call_line << 32 | (node->flags & LAPSE_NODE_INLINED));
}

static bool node_equal(const void *context, uint32_t id, const void *key)
{
    const struct lapse_profile_node *left = &((const struct lapse_profile *)context)->nodes[id];
    const struct lapse_profile_node *right = key;
    return left->parent == right->parent && left->function == right->function &&
           left->call_pc == right->call_pc && left->call_line == right->call_line &&
           !((left->flags ^ right->flags) & LAPSE_NODE_INLINED);
}

uint32_t lapse_profile_child(struct lapse_profile *profile, const struct lapse_profile_node *node)
{
    struct lapse_profile_source *source = profile->source;
    uint64_t hash = node_hash(node);
    uint32_t id = lapse_index_find(&source->nodes, hash, node_equal, profile, node);
    if (id != LAPSE_INDEX_NONE) {
        profile->nodes[id].flags &= node->flags | ~(uint32_t)LAPSE_NODE_GUESSED;
        return id;
    }
    struct lapse_profile_node *nodes =
        lapse_array_grow(profile->nodes, profile->node_count, sizeof *nodes);
    if (!nodes)
        return LAPSE_NONE;
    profile->nodes = nodes;
    if (lapse_index_add(&source->nodes, hash, profile->node_count))
        return LAPSE_NONE;
    nodes[profile->node_count] = *node;
    nodes[profile->node_count].depth = nodes[node->parent].depth + 1;
    return profile->node_count++;
}

static uint64_t leaf_hash(const struct lapse_profile_leaf *leaf)
{
    return lapse_hash(lapse_hash(leaf->node, leaf->pc), leaf->line);
}

static bool leaf_equal(const void *context, uint32_t id, const void *key)
{
    const struct lapse_profile *profile = context;
    const struct lapse_profile_leaf *left = &profile->leaves[id], *right = key;
    return left->node == right->node && (!profile->source->options.lines ||
                                         (left->pc == right->pc && left->line == right->line));
}

uint32_t lapse_profile_leaf(struct lapse_profile *profile, uint32_t node, uint64_t pc,
                            uint32_t line)
{
    struct lapse_profile_source *source = profile->source;
    struct lapse_profile_leaf leaf = { .node = node, .pc = pc, .line = line };
    uint64_t hash = source->options.lines ? leaf_hash(&leaf) : lapse_hash(node, 0);
    uint32_t id = lapse_index_find(&source->leaves, hash, leaf_equal, profile, &leaf);
    if (id != LAPSE_INDEX_NONE)
        return id;
    struct lapse_profile_leaf *leaves = lapse_array_grow(profile->leaves, profile->leaf_count,
                                                         sizeof *leaves);
    if (!leaves || lapse_index_add(&source->leaves, hash, profile->leaf_count))
        return LAPSE_NONE;
    profile->leaves = leaves;
    leaves[profile->leaf_count] = leaf;
    return profile->leaf_count++;
}

/* The functions inlined into `node` at a pc become nodes below it. Gives the innermost one, and the
 * line in it. */
static uint32_t expand(struct lapse_profile *profile, struct lapse_session_link *link,
                       uint32_t node, uint64_t pc, bool is_return, uint64_t time_ns,
                       struct lapse_validity *validity, uint32_t *line)
{
    *line = 0;
    if (!link->has_lines || !pc || !node)
        return node;
    uint32_t number = lapse_profile_frames_at(profile, link, pc, is_return, time_ns, validity);
    if (number == LAPSE_NONE)
        return LAPSE_NONE;
    struct lapse_frames_memo chain = link->frames[number];
    for (uint32_t i = 0; i < chain.count && node != LAPSE_NONE; i++) {
        struct lapse_frame_position position = profile->source->positions[chain.first + i];
        if (i && profile->source->options.no_inlines)
            break;
        if (i) {
            struct lapse_profile_node inlined = {
                .parent = node, .function = position.function, .flags = LAPSE_NODE_INLINED,
                .call_line = *line,
            };
            node = lapse_profile_child(profile, &inlined);
        }
        *line = position.line;
    }
    return node;
}

/* The node of the profile for a recorded node whose parent is done. */
static uint32_t place(struct lapse_profile *profile, struct lapse_session_link *link,
                      const struct lapse_call_node *from, uint32_t parent, uint64_t time_ns,
                      struct lapse_validity *validity)
{
    struct lapse_profile_node node = { .flags = from->flags & 1 ? LAPSE_NODE_GUESSED : 0 };
    node.parent =
        expand(profile, link, parent, from->call_site, true, time_ns, validity, &node.call_line);
    if (node.parent == LAPSE_NONE)
        return LAPSE_NONE;
    node.function = lapse_profile_function_at(profile, link, from->function, time_ns, validity);
    if (node.function == LAPSE_NONE)
        return LAPSE_NONE;
    node.call_pc = lapse_profile_pc(profile, link, from->call_site, time_ns, validity);
    return lapse_profile_child(profile, &node);
}

/* Turn the path to a recorded node, from the innermost ancestor that is known at this time on. */
static const struct lapse_memo *node_at(struct lapse_profile *profile, struct lapse_session_link *link,
                                        uint32_t node, uint64_t time_ns)
{
    uint32_t count, depth = 0;
    const struct lapse_call_node *nodes = lapse_call_tree_nodes(link->session->tree, &count);
    if (lapse_validity_holds(&link->nodes[node].validity, time_ns))
        return &link->nodes[node];
    uint32_t *path = malloc((nodes[node].depth + 1) * sizeof *path);
    if (!path)
        return NULL;
    for (uint32_t at = node; !lapse_validity_holds(&link->nodes[at].validity, time_ns);
         at = nodes[at].parent)
        path[depth++] = at;
    while (depth-- > 0) {
        const struct lapse_call_node *from = &nodes[path[depth]];
        struct lapse_memo memo = link->nodes[from->parent];
        memo.value = place(profile, link, from, memo.value, time_ns, &memo.validity);
        if (memo.value == LAPSE_NONE) {
            free(path);
            return NULL;
        }
        link->nodes[path[depth]] = memo;
    }
    free(path);
    return &link->nodes[node];
}

static bool leaf_memo_equal(const void *context, uint32_t id, const void *key)
{
    const struct lapse_leaf_memo *left = &((const struct lapse_session_link *)context)->leaves[id];
    const struct lapse_leaf_memo *right = key;
    return left->node == right->node && left->pc == right->pc;
}

static struct lapse_leaf_memo *leaf_memo(struct lapse_session_link *link, uint32_t node,
                                         uint64_t pc)
{
    struct lapse_leaf_memo wanted = { .node = node, .pc = pc };
    uint64_t hash = lapse_hash(node, pc);
    uint32_t id = lapse_index_find(&link->leaf_index, hash, leaf_memo_equal, link, &wanted);
    if (id != LAPSE_INDEX_NONE)
        return &link->leaves[id];
    struct lapse_leaf_memo *leaves =
        lapse_array_grow(link->leaves, link->leaf_count, sizeof *leaves);
    if (!leaves || lapse_index_add(&link->leaf_index, hash, link->leaf_count))
        return NULL;
    link->leaves = leaves;
    leaves[link->leaf_count] = wanted;
    return &leaves[link->leaf_count++];
}

/* Almost every sample asks for what was found before and holds for ever: one cache line instead of
 * three. An entry may stand in any of the places of its line. Losing one costs a look into the index,
 * so the table is emptied when it grows, and a full line loses its oldest entry. */
enum { NEAR_WAYS = 4 };

static struct lapse_near_leaf *near_place(const struct lapse_session_link *link, uint32_t node,
                                          uint64_t pc)
{
    return &link->near_leaves[lapse_hash(node, pc) & (link->near_count - NEAR_WAYS)];
}

static struct lapse_near_leaf *near_leaves(struct lapse_session_link *link, uint32_t node,
                                           uint64_t pc)
{
    enum { FIRST_COUNT = 1024 };
    uint32_t wanted = link->near_count ? link->near_count : FIRST_COUNT;
    while (link->leaf_count > wanted / 2 && wanted < 1u << 24)
        wanted *= 2;
    if (wanted != link->near_count) {
        size_t size = wanted * sizeof(struct lapse_near_leaf);
        struct lapse_near_leaf *table = lapse_array_scattered(aligned_alloc(64, size), size);
        if (!table)
            return NULL;
        memset(table, 0, size);
        free(link->near_leaves);
        link->near_leaves = table;
        link->near_count = wanted;
    }
    return near_place(link, node, pc);
}

static uint32_t find_leaf(struct lapse_profile *profile, struct lapse_session_link *link,
                          uint32_t node, uint64_t pc, uint64_t key, uint64_t time_ns,
                          struct lapse_validity *validity)
{
    struct lapse_leaf_memo *memo = leaf_memo(link, node, key);
    if (!memo)
        return LAPSE_NONE;
    if (lapse_validity_holds(&memo->memo.validity, time_ns)) {
        *validity = memo->memo.validity;
        return memo->memo.value;
    }
    const struct lapse_memo *at = node_at(profile, link, node, time_ns);
    uint32_t line;
    if (!at)
        return LAPSE_NONE;
    memo->memo = *at;
    uint32_t innermost =
        expand(profile, link, at->value, pc, false, time_ns, &memo->memo.validity, &line);
    if (innermost == LAPSE_NONE)
        return LAPSE_NONE;
    pc = lapse_profile_pc(profile, link, pc, time_ns, &memo->memo.validity);
    memo->memo.value = lapse_profile_leaf(profile, innermost, pc, line);
    *validity = memo->memo.validity;
    return memo->memo.value;
}

/* Where neither lines nor inlined functions can be told, all pcs of a node are one leaf. */
static uint64_t leaf_key(const struct lapse_profile *profile, const struct lapse_session_link *link,
                         uint64_t pc)
{
    return link->has_lines || profile->source->options.lines ? pc : 0;
}

void lapse_profile_leaf_ahead(const struct lapse_profile *profile,
                              const struct lapse_session_link *link, uint32_t node, uint64_t pc)
{
    if (link->near_count)
        __builtin_prefetch(near_place(link, node, leaf_key(profile, link, pc)));
}

uint32_t lapse_profile_leaf_at(struct lapse_profile *profile, struct lapse_session_link *link,
                               uint32_t node, uint64_t pc, uint64_t time_ns)
{
    struct lapse_validity validity = { 0 };
    uint64_t key = leaf_key(profile, link, pc);
    struct lapse_near_leaf *near = near_leaves(link, node, key);
    for (uint32_t i = 0; near && node && i < NEAR_WAYS; i++)
        if (near[i].node == node && near[i].pc == key)
            return near[i].leaf;
    uint32_t leaf = find_leaf(profile, link, node, pc, key, time_ns, &validity);
    if (near && leaf != LAPSE_NONE && !validity.from_ns && validity.until_ns == UINT64_MAX) {
        memmove(near + 1, near, (NEAR_WAYS - 1) * sizeof *near);
        *near = (struct lapse_near_leaf){ key, node, leaf };
    }
    return leaf;
}
