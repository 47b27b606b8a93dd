/* SPDX-License-Identifier: MIT */
/* Folded text through the reader, the call tree and the merge. Values add up everywhere; merging
 * the result again changes nothing; tiny parts that spill give the same bytes. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "folded_merge.h"
#include "folded_reader.h"
#include "folded_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Merge all good lines; values are made small so that sums stay in range. */
static void merge(const char *bytes, size_t size, struct lapse_folded_merge_options options,
                  struct lapse_output *output, uint64_t *sum)
{
    struct lapse_folded_merge *merge;
    struct lapse_folded_line line;
    struct lapse_lines lines;
    const char *cause;
    char *copy = malloc(size + 1);
    int status;
    check(copy && !lapse_folded_merge_create(&merge, &options));
    memcpy(copy, bytes, size);
    lapse_lines_memory(&lines, copy, size);
    while ((status = lapse_folded_next(&lines, &line, &cause))) {
        if (status < 0)
            continue;
        line.value &= 0xffffffff;
        *sum += line.value;
        check(!lapse_folded_merge_stack(merge, line.stack, line.size, line.value));
    }
    check(!lapse_output_init(output, NULL));
    check(!lapse_folded_merge_write(merge, output));
    lapse_folded_merge_destroy(merge);
    free(copy);
}

static void check_tree(const char *bytes, size_t size, uint64_t sum)
{
    struct lapse_folded_tree *tree;
    struct lapse_folded_line line;
    struct lapse_lines lines;
    const char *cause;
    char *copy = malloc(size + 1);
    uint64_t self = 0;
    uint32_t count;
    check(copy && !lapse_folded_tree_create(&tree));
    memcpy(copy, bytes, size);
    lapse_lines_memory(&lines, copy, size);
    while (lapse_folded_next(&lines, &line, &cause) == 1)
        check(!lapse_folded_tree_add(tree, line.stack, line.size, line.value));
    check(!lapse_folded_tree_finish(tree));
    const struct lapse_folded_function *functions = lapse_folded_tree_functions(tree, NULL, &count);
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_folded_link *links;
        uint32_t link_count;
        check(functions[i].self <= functions[i].total && functions[i].total <= sum);
        self += functions[i].self;
        check(i > 20 || !lapse_folded_tree_links(tree, i, i % 2, &links, &link_count));
        if (i <= 20)
            free(links);
    }
    const struct lapse_folded_tree_node *nodes = lapse_folded_tree_nodes(tree, &count);
    check(self + nodes[0].self == sum && nodes[0].total + nodes[0].self == sum);
    lapse_folded_tree_destroy(tree);
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct lapse_folded_merge_options cut = { .depth = 1 + size % 5 };
    struct lapse_output once, again, spilled, shallow;
    uint64_t sum = 0, sum_again = 0, other = 0;
    merge((const char *)bytes, size, (struct lapse_folded_merge_options){ 0 }, &once, &sum);
    merge(once.bytes, once.size, (struct lapse_folded_merge_options){ 0 }, &again, &sum_again);
    if (sum < UINT32_MAX) { /* else the second round made values small once more */
        check(sum == sum_again && once.size == again.size);
        check(!once.size || !memcmp(once.bytes, again.bytes, once.size));
        check_tree(once.bytes, once.size, sum);
    }
    if (size < 400) {
        merge((const char *)bytes, size, (struct lapse_folded_merge_options){ .part_bytes = 40 },
              &spilled, &other);
        check(once.size == spilled.size);
        check(!once.size || !memcmp(once.bytes, spilled.bytes, once.size));
        lapse_output_fini(&spilled);
    }
    merge((const char *)bytes, size, cut, &shallow, &other);
    lapse_output_fini(&once);
    lapse_output_fini(&again);
    lapse_output_fini(&shallow);
    return 0;
}
