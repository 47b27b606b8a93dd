/* SPDX-License-Identifier: MIT */
/* The engine on written-out stacks. A stack is a string, one letter a function, root first; the
 * events come back as text: "+a0@5" is a start of a at depth 0 and time 5, "-" an end, a "?" after
 * it inferred, "!" ambiguous. tests/unit/engine_random.c holds the properties. */
#include "lapse/diff.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "call_tree.h"
#include "heap.h"

static char events[4096];
static struct lapse_diff *diff;
static struct lapse_diff_options options;

static void note(void *context, const struct lapse_edge *edge)
{
    static const char *const marks[] = { "", "?", "!" };
    size_t used = strlen(events);
    (void)context;
    snprintf(events + used, sizeof events - used, "%s%c%c%u@%llu%s", used ? " " : "",
             edge->kind == LAPSE_EDGE_START ? '+' : '-',
             edge->function == LAPSE_FUNCTION_TRUNCATED ? '*' : (char)edge->function, edge->depth,
             (unsigned long long)edge->time_ns, marks[edge->proof]);
}

static void begin(void)
{
    events[0] = 0;
    options.edge = note;
    cr_assert_eq(lapse_diff_create(&diff, &options), 0);
}

/* A leading '*' makes a cut stack; cfa of a frame is `cfa` minus its index, 0 for none. */
static int push_at(uint64_t time, const char *stack, uint64_t cfa)
{
    struct lapse_diff_frame frames[64] = { 0 };
    uint32_t depth = 0, flags = *stack == '*' ? LAPSE_STACK_CUT : 0;
    for (stack += flags; *stack; stack++, depth++) {
        frames[depth].function = (uint64_t)*stack;
        frames[depth].cfa = cfa ? cfa - depth : 0;
    }
    return lapse_diff_push(diff, time, 1, frames, depth, flags);
}

static int push(uint64_t time, const char *stack)
{
    return push_at(time, stack, 0);
}

static void expect(const char *wanted)
{
    cr_expect_str_eq(events, wanted);
    events[0] = 0;
}

static void end(void)
{
    lapse_diff_finish(diff);
    lapse_diff_destroy(diff);
    options = (struct lapse_diff_options){ 0 };
}

Test(diff, both_filters_are_refused)
{
    options = (struct lapse_diff_options){ .min_samples = 2, .confirm = 2 };
    cr_expect_eq(lapse_diff_create(&diff, &options), -EINVAL);
}

Test(diff, empty_equal_prefix_disjoint)
{
    begin();
    push(0, "");
    expect("");
    push(1, "ab");
    expect("+a0@1 +b1@1");
    push(2, "ab");
    expect("");
    push(3, "abc");
    expect("+c2@3");
    push(4, "a");
    expect("-c2@4 -b1@4");
    push(5, "xy");
    expect("-a0@5 +x0@5 +y1@5");
    push(6, "");
    expect("-y1@6 -x0@6");
    end();
    expect("");
}

Test(diff, time_that_goes_back_changes_nothing)
{
    begin();
    push(5, "a");
    cr_expect_eq(push(5, "b"), -EINVAL);
    cr_expect_eq(push(4, ""), -EINVAL);
    push(6, "ab");
    end();
    expect("+a0@5 +b1@6 -b1@6 -a0@6");
}

Test(diff, call_site_tells_a_new_call)
{
    struct lapse_diff_frame frames[] = { { 'a', 0, 0 }, { 'b', 10, 0 } };
    begin();
    lapse_diff_push(diff, 1, 1, frames, 2, 0);
    frames[1].call_site = 20;
    lapse_diff_push(diff, 2, 1, frames, 2, 0);
    expect("+a0@1 +b1@1 -b1@2 +b1@2");
    frames[1].call_site = 0; /* unknown */
    lapse_diff_push(diff, 3, 1, frames, 2, 0);
    expect("");
    end();
}

Test(diff, closing)
{
    options = (struct lapse_diff_options){ .close = LAPSE_CLOSE_NEXT, .period_ns = 10 };
    begin();
    push(3, "a");
    end();
    expect("+a0@3 -a0@13");
    options = (struct lapse_diff_options){ .close = LAPSE_CLOSE_AT, .close_at_ns = 99 };
    begin();
    push(3, "a");
    end();
    expect("+a0@3 -a0@99");
    options = (struct lapse_diff_options){ .close = LAPSE_CLOSE_AT, .close_at_ns = 1 };
    begin();
    push(3, "a");
    end();
    expect("+a0@3 -a0@3");
}

Test(diff, a_gap_closes_and_reopens_inferred)
{
    options = (struct lapse_diff_options){ .gap_ns = 20, .period_ns = 10 };
    begin();
    push(0, "ab");
    push(20, "ab");
    push(41, "ab");
    expect("+a0@0 +b1@0 -b1@30? -a0@30? +a0@41? +b1@41?");
    push(51, "a");
    expect("-b1@51");
    end();
}

Test(diff, a_gap_shorter_than_a_period_ends_at_the_next_sample)
{
    options = (struct lapse_diff_options){ .gap_ns = 5, .period_ns = 100 };
    begin();
    push(0, "a");
    push(10, "a");
    expect("+a0@0 -a0@10? +a0@10?");
    end();
}

Test(diff, min_samples_lags_and_dates_back)
{
    options.min_samples = 3;
    begin();
    push(0, "a");
    push(1, "ab");
    push(2, "ab");
    expect("+a0@0");
    push(3, "ab");
    expect("+b1@1");
    push(4, "ac");
    expect("-b1@4");
    push(5, "ac");
    push(6, "ab");
    expect("");
    end();
    expect("-a0@6");
}

Test(diff, cut_stack_on_names)
{
    begin();
    push(0, "abcd");
    push(1, "*cde");
    expect("+a0@0 +b1@0 +c2@0 +d3@0 +e4@1?");
    push(2, "*bcx"); /* reaches further out again: b and c agree */
    expect("-e4@2? -d3@2? +x3@2?");
    push(3, "ab");
    expect("-x3@3? -c2@3?");
    push(4, "abz");
    expect("+z2@4");
    end();
}

Test(diff, cut_stack_without_agreement_keeps_the_outer_frames)
{
    begin();
    push(0, "ab");
    push(1, "*xy");
    expect("+a0@0 +b1@0 +*2@1? +x3@1? +y4@1?");
    push(2, "*pq");
    expect("-y4@2? -x3@2? +p3@2? +q4@2?");
    push(3, "ab");
    expect("-q4@3? -p3@3? -*2@3?");
    end();
}

Test(diff, cut_stack_that_reaches_further_out_lies_in_the_marker)
{
    begin();
    push(0, "*cd");
    expect("+*0@0? +c1@0? +d2@0?");
    push(1, "*bc");
    expect("-d2@1?");
    push(2, "*cd");
    expect("+d2@2?");
    end();
}

Test(diff, recursion_makes_alignments_ambiguous)
{
    struct lapse_diff_counts counts;
    begin();
    push(0, "mff");
    push(1, "*f");
    expect("+m0@0 +f1@0 +f2@0"); /* the innermost is taken: nothing ends */
    push(2, "*fg");
    expect("+g3@2!");
    lapse_diff_counts(diff, &counts);
    cr_expect_eq(counts.ambiguous, 1);
    cr_expect_eq(counts.ambiguous_alignments, 2);
    cr_expect_eq(counts.cut, 2);
    end();
}

Test(diff, frame_address_decides_recursion)
{
    begin();
    push_at(0, "mff", 100);
    push_at(1, "*ff", 99); /* the outer f */
    expect("+m0@0 +f1@0 +f2@0");
    push_at(2, "*ff", 98);
    expect("+f3@2");
    push_at(3, "*fg", 97); /* f at 97, its callee is new */
    expect("+g4@3");
    push_at(4, "*g", 96);
    expect("");
    push_at(5, "*fx", 97);
    expect("-g4@5 +x4@5"); /* whether or not f is another call since, g is gone */
    end();
}

Test(diff, a_cut_stack_of_nothing_changes_nothing)
{
    begin();
    push(0, "ab");
    push(1, "*");
    expect("+a0@0 +b1@0");
    push(2, "a");
    expect("-b1@2?");
    end();
}

Test(diff, nodes_give_the_same_as_frames)
{
    struct lapse_call_tree *tree;
    begin();
    cr_assert_eq(lapse_call_tree_create(&tree, &lapse_heap), 0);
    uint32_t a = lapse_call_tree_child(tree, 0, 0, 'a', 0);
    uint32_t b = lapse_call_tree_child(tree, a, 1, 'b', 0);
    uint32_t c = lapse_call_tree_child(tree, a, 2, 'b', 0);
    uint32_t cut = lapse_call_tree_child(tree, 0, 0, LAPSE_FUNCTION_TRUNCATED, 0);
    uint32_t cut_b = lapse_call_tree_child(tree, cut, 0, 'b', 0);
    lapse_diff_push_node(diff, 1, 1, tree, b);
    lapse_diff_push_node(diff, 2, 1, tree, c);
    expect("+a0@1 +b1@1 -b1@2 +b1@2");
    lapse_diff_push_node(diff, 3, 1, tree, cut_b);
    expect("");
    lapse_diff_push_node(diff, 4, 1, tree, a);
    expect("-b1@4?");
    lapse_diff_push_node(diff, 5, 1, tree, 0);
    expect("-a0@5");
    cr_expect_eq(lapse_diff_push_node(diff, 6, 1, tree, 77), -EINVAL);
    end();
    lapse_call_tree_destroy(tree);
}
