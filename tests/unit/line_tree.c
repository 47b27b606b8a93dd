/* SPDX-License-Identifier: MIT */
/* Lines from the tree are those of plain text: made one by one, equal ones added, sorted by their bytes. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "line_tree.h"

enum { ROUNDS = 300, STACKS = 60, DEPTH = 5, LINE_BYTES = 128 };

static uint64_t state;

static uint32_t below(uint32_t limit)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % limit;
}

struct line { char text[LINE_BYTES]; uint64_t weight; };

/* A space follows the shorter text. */
static int by_bytes(const void *a, const void *b)
{
    const char *left = ((const struct line *)a)->text, *right = ((const struct line *)b)->text;
    size_t size = strlen(left) < strlen(right) ? strlen(left) : strlen(right);
    int order = memcmp(left, right, size);
    if (!order && left[size] != right[size])
        order = (unsigned char)(left[size] ? left[size] : ' ') - (unsigned char)(right[size] ? right[size] : ' ');
    return order ? order : (int)strlen(left) - (int)strlen(right);
}

/* Names that are prefixes of each other and go on with bytes around the space and the semicolon. */
static void make_name(char *name)
{
    size_t size = 1 + below(4);
    for (size_t i = 0; i < size; i++)
        name[i] = "ab (:!<"[below(7)];
    name[0] = "ab"[below(2)];
    if (name[size - 1] == ' ')
        name[size - 1] = 'c';
    name[size] = 0;
}

static void add(struct lapse_line_tree *tree, struct line *lines, uint32_t *count)
{
    char text[LINE_BYTES] = "", name[8];
    uint32_t node = 0, depth = 1 + below(DEPTH);
    uint64_t weight = 1 + below(1000);
    for (uint32_t i = 0; i < depth; i++) {
        make_name(name);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? ";" : "", name);
        node = lapse_line_tree_child(tree, node, lapse_line_tree_name(tree, name, strlen(name)));
        cr_assert_neq(node, LAPSE_INDEX_NONE);
    }
    tree->nodes[node].weight += weight;
    for (uint32_t i = 0; i < *count; i++)
        if (!strcmp(lines[i].text, text)) {
            lines[i].weight += weight;
            return;
        }
    strcpy(lines[*count].text, text);
    lines[(*count)++].weight = weight;
}

static uint64_t as_is(const void *context, uint64_t weight)
{
    (void)context;
    return weight;
}

Test(line_tree, lines_are_those_of_sorted_text)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
        struct lapse_line_tree tree = { 0 };
        struct line lines[STACKS];
        struct lapse_output output, wanted;
        uint32_t count = 0, stacks = 1 + (uint32_t)seed % STACKS;
        state = seed;
        for (uint32_t i = 0; i < stacks; i++)
            add(&tree, lines, &count);
        qsort(lines, count, sizeof *lines, by_bytes);
        cr_assert(!lapse_output_init(&output, NULL) && !lapse_output_init(&wanted, NULL));
        for (uint32_t i = 0; i < count; i++) {
            lapse_output_text(&wanted, lines[i].text);
            lapse_output_char(&wanted, ' ');
            lapse_output_uint(&wanted, lines[i].weight);
            lapse_output_char(&wanted, '\n');
        }
        cr_assert_eq(lapse_line_tree_write(&tree, &output, as_is, NULL), 0);
        lapse_output_char(&output, 0);
        lapse_output_char(&wanted, 0);
        cr_expect_str_eq(output.bytes, wanted.bytes, "seed %llu", (unsigned long long)seed);
        lapse_output_fini(&output);
        lapse_output_fini(&wanted);
        lapse_line_tree_free(&tree);
    }
}

Test(line_tree, without_a_node_there_is_no_line)
{
    struct lapse_line_tree tree = { 0 };
    struct lapse_output output;
    cr_assert_eq(lapse_output_init(&output, NULL), 0);
    cr_expect_eq(lapse_line_tree_write(&tree, &output, as_is, NULL), 0);
    cr_expect_eq(output.size, 0);
    lapse_output_fini(&output);
    lapse_line_tree_free(&tree);
}
