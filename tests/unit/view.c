/* SPDX-License-Identifier: MIT */
/* The call tree by function: self and total by hand, and against a slow reckoning. */
#include "view.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "make_recording.h"

static char path[64], error[256];

static void fresh(void)
{
    snprintf(path, sizeof path, "/tmp/lapse-unit-view-%d", (int)getpid());
    unlink(path);
}

static void clean(void)
{
    unlink(path);
}

TestSuite(view, .init = fresh, .fini = clean);

static struct lapse_profile *open_profile(void)
{
    const char *paths[] = { path };
    struct lapse_profile *profile;
    cr_assert_eq(lapse_profile_open(&profile, paths, 1, NULL, error, sizeof error), 0, "%s", error);
    return profile;
}

static struct lapse_profile *open_text(const char *text)
{
    FILE *file = fopen(path, "w");
    cr_assert(file && fputs(text, file) >= 0 && !fclose(file));
    return open_profile();
}

static struct lapse_profile *open_made(void)
{
    struct lapse_test_recording numbers = { .processes = 2, .threads = 3, .samples = 2000, .labels = true,
                                            .cut = true, .late = true, .functions = 12 };
    lapse_test_make_recording(path, &numbers);
    return open_profile();
}

static struct lapse_view *must_view(struct lapse_profile *profile, const struct lapse_view_options *options)
{
    struct lapse_view *view;
    cr_assert_eq(lapse_view_create(&view, profile, options), 0);
    return view;
}

static const struct lapse_view_function *function(const struct lapse_view *view, const char *name)
{
    for (uint32_t i = 0; i < view->function_count; i++)
        if (!strcmp(view->functions[i].name, name))
            return &view->functions[i];
    return NULL;
}

/* Node by the names from the root, separated by `;`. */
static const struct lapse_view_node *node(const struct lapse_view *view, const char *stack)
{
    char text[256], *rest = NULL;
    uint32_t at = 0;
    snprintf(text, sizeof text, "%s", stack);
    for (char *name = strtok_r(text, ";", &rest); name; name = strtok_r(NULL, ";", &rest)) {
        uint32_t child = view->nodes[at].first_child;
        while (child != LAPSE_NONE && strcmp(view->functions[view->nodes[child].function].name, name))
            child = view->nodes[child].next_sibling;
        cr_assert_neq(child, LAPSE_NONE, "no %s in %s", name, stack);
        at = child;
    }
    return &view->nodes[at];
}

#define TEXT "main;a;b 3\nmain;a 2\nmain;b;a;b 4\nmain;b;a;a;a 1\nmain 5\nother 1\n"

Test(view, self_and_total)
{
    struct lapse_profile *profile = open_text(TEXT);
    struct lapse_view *view = must_view(profile, NULL);
    cr_expect_eq(view->weight_ns, 16);
    cr_expect(node(view, "main")->total_ns == 15 && node(view, "main")->self_ns == 5);
    cr_expect(node(view, "main;b")->total_ns == 5 && node(view, "main;b")->self_ns == 0);
    cr_expect(node(view, "main;b;a;b")->recursive && !node(view, "main;a;b")->recursive);
    cr_expect_eq(node(view, "main;b;a;a;a")->depth, 5);
    const struct lapse_view_function *b = function(view, "b"), *a = function(view, "a");
    cr_expect(b->self_ns == 7 && b->total_ns == 8 && b->recursive, "once per sample");
    cr_expect(a->self_ns == 3 && a->total_ns == 10 && a->recursive);
    cr_expect(!function(view, "main")->recursive);
    cr_expect_str_eq(view->functions[0].name, "b", "by self");
    cr_expect_eq(view->nodes[view->nodes[0].first_child].total_ns, 15, "largest child first");
    cr_expect_eq(view->node_of_profile_node[0], 0);
    lapse_view_destroy(view);
    lapse_profile_close(profile);
}

Test(view, inverted)
{
    struct lapse_profile *profile = open_text(TEXT);
    struct lapse_view_options options = { .inverted = true };
    struct lapse_view *view = must_view(profile, &options);
    cr_expect(node(view, "b")->total_ns == 7 && node(view, "b")->self_ns == 0);
    cr_expect(node(view, "b;a;main")->self_ns == 3 && node(view, "b;a;b;main")->self_ns == 4);
    cr_expect(function(view, "b")->self_ns == 7 && function(view, "b")->total_ns == 8);
    cr_expect(function(view, "main")->self_ns == 5 && function(view, "main")->total_ns == 15);
    cr_expect_null(view->node_of_profile_node);
    lapse_view_destroy(view);
    lapse_profile_close(profile);
}

Test(view, recursion_collapsed)
{
    struct lapse_profile *profile = open_text(TEXT);
    struct lapse_view_options options = { .collapse_recursion = true };
    struct lapse_view *view = must_view(profile, &options);
    cr_expect(node(view, "main;b;a")->self_ns == 1 && node(view, "main;b;a")->total_ns == 5);
    lapse_view_destroy(view);
    lapse_profile_close(profile);
}

Test(view, parts_need_single_samples)
{
    struct lapse_profile *profile = open_text(TEXT);
    struct lapse_view_options options = { .group_by_thread = true };
    struct lapse_view *view;
    cr_expect_eq(lapse_view_create(&view, profile, &options), -ENOTSUP);
    cr_expect_null(view);
    lapse_profile_close(profile);
}

/* The totals of every function by going through all paths of all leaves. */
Test(view, agrees_with_a_slow_reckoning)
{
    struct lapse_profile *profile = open_made();
    struct lapse_view *view = must_view(profile, NULL);
    uint64_t self_sum = 0;
    cr_expect_eq(view->weight_ns, profile->weight_ns);
    for (uint32_t i = 0; i < view->function_count; i++) {
        const struct lapse_view_function *f = &view->functions[i];
        uint64_t total = 0;
        double squares = 0;
        for (uint32_t k = 0; k < profile->leaf_count; k++) {
            uint32_t at = profile->leaves[k].node;
            while (at && strcmp(profile->functions[profile->nodes[at].function].name, f->name))
                at = profile->nodes[at].parent;
            total += at ? profile->leaves[k].weight_ns : 0;
            squares += at ? profile->leaves[k].squares : 0;
        }
        cr_assert_eq(f->total_ns, total, "%s", f->name);
        cr_assert_eq(f->total_squares, squares, "%s", f->name);
        self_sum += f->self_ns;
    }
    cr_expect_eq(self_sum, profile->weight_ns);
    for (uint32_t i = 0; i < profile->node_count; i++)
        if (view->node_of_profile_node[i] != LAPSE_NONE && i)
            cr_assert_str_eq(view->functions[view->nodes[view->node_of_profile_node[i]].function].name,
                             profile->functions[profile->nodes[i].function].name);
    lapse_view_destroy(view);
    lapse_profile_close(profile);
}

Test(view, threads_times_and_labels_are_parts_of_the_whole)
{
    struct lapse_profile *profile = open_made();
    uint64_t by_thread = 0, by_time = 0, by_label = 0, middle = (profile->first_ns + profile->last_ns) / 2;
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        struct lapse_view_options options = { .threads = &i, .thread_count = 1 };
        struct lapse_view *view = must_view(profile, &options);
        cr_expect_eq(view->weight_ns, profile->threads[i].weight_ns);
        by_thread += view->weight_ns;
        lapse_view_destroy(view);
    }
    for (int i = 0; i < 2; i++) {
        struct lapse_view_options options = { .from_ns = i ? middle : 0, .until_ns = i ? 0 : middle };
        struct lapse_view *view = must_view(profile, &options);
        by_time += view->weight_ns;
        lapse_view_destroy(view);
    }
    const char *values[] = { "alpha", "beta" };
    for (int i = 0; i < 2; i++) {
        struct lapse_view_options options = { .label_key = "request", .label_value = values[i] };
        struct lapse_view *view = must_view(profile, &options);
        by_label += view->count;
        lapse_view_destroy(view);
    }
    cr_expect_eq(by_thread, profile->weight_ns);
    cr_expect_eq(by_time, profile->weight_ns);
    cr_expect(by_label > 0 && by_label < profile->count);
    lapse_profile_close(profile);
}

Test(view, groups_are_the_outermost_frames)
{
    struct lapse_profile *profile = open_made();
    struct lapse_view_options options = { .group_by_thread = true };
    struct lapse_view *view = must_view(profile, &options);
    uint32_t groups = 0;
    for (uint32_t child = view->nodes[0].first_child; child != LAPSE_NONE;
         child = view->nodes[child].next_sibling, groups++)
        cr_expect_eq(view->functions[view->nodes[child].function].function, LAPSE_NONE);
    cr_expect_eq(groups, 6);
    cr_expect_eq(node(view, "[worker-1 tid=1001]")->total_ns, profile->threads[1].weight_ns);
    lapse_view_destroy(view);
    lapse_profile_close(profile);
}
