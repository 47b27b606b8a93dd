/* SPDX-License-Identifier: MIT */
/* A view: the call tree by function of (a part of) a profile, with self and total, and the functions
 * regardless of caller. Equal names under one parent are one node. What report, diff, callgrind, svg
 * and the page draw from. */
#ifndef LAPSE_EXPORT_VIEW_H
#define LAPSE_EXPORT_VIEW_H

#include "profile.h"

struct lapse_view_node {
    uint32_t parent; /* smaller than the own index; node 0 is the root of all */
    uint32_t function; /* index into functions of the view */
    uint32_t first_child, next_sibling; /* LAPSE_NONE; children ordered by total, then name */
    uint32_t depth;
    uint32_t flags; /* enum lapse_profile_node_flags; INLINED and GUESSED when all samples were */
    bool recursive; /* the same function is above it */
    uint64_t self_count, total_count, self_ns, total_ns;
};

/* A function over all its places: total counts each sample once however deep it recurses. */
struct lapse_view_function {
    uint32_t function; /* first index of that name in the profile; LAPSE_NONE: a frame of group_by_... */
    const char *name;
    uint64_t self_count, total_count, self_ns, total_ns;
    /* Sums of squared weights, for intervals of samples that stand for unequal times. */
    double self_squares, total_squares;
    bool recursive;
};

struct lapse_view_options {
    const uint32_t *threads; /* indexes; NULL: all */
    uint32_t thread_count;
    uint64_t from_ns, until_ns; /* 0 and 0: all */
    const char *label_key, *label_value; /* NULL: all */
    bool inverted; /* leaf first: callers of a function below it */
    bool collapse_recursion; /* a function directly under itself is one frame */
    bool group_by_thread, group_by_process; /* an extra outermost frame */
    const char *group_by_label; /* key */
};

struct lapse_view {
    struct lapse_view_node *nodes;
    uint32_t node_count;
    struct lapse_view_function *functions; /* by self, then total, then name */
    uint32_t function_count;
    uint32_t *node_of_profile_node; /* view node of each profile node, LAPSE_NONE where no sample is;
                                       NULL when inverted or grouped */
    uint64_t count, weight_ns;
    double squares;
    struct lapse_view_source *source; /* the builder's own */
};

/* Returns 0, -ENOMEM, or -ENOTSUP: a part or groups were asked of input that has no single samples. */
int lapse_view_create(struct lapse_view **view, struct lapse_profile *profile,
                      const struct lapse_view_options *options);
void lapse_view_destroy(struct lapse_view *view);

#endif
