/* SPDX-License-Identifier: MIT */
/* Edge text through the parser and both replays. A repaired replay takes whatever parses; a strict
 * one that takes everything gives what the repaired one gives, and needed no repair. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "event_text.h"
#include "folded_reader.h"
#include "line_reader.h"
#include "replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static int replay_all(struct lapse_replay *replay, const uint8_t *bytes, size_t size)
{
    char *copy = malloc(size + 1), *line;
    struct lapse_lines lines;
    struct lapse_edge_line edge;
    size_t length;
    int refused = 0;
    check(copy);
    memcpy(copy, bytes, size);
    lapse_lines_memory(&lines, copy, size);
    while (!refused && lapse_lines_next(&lines, &line, &length) > 0)
        if (!lapse_edge_parse(line, length, &edge))
            refused = lapse_replay_event(replay, edge.time, edge.thread, edge.thread_size,
                                         edge.is_start, edge.depth, edge.name, edge.name_size);
    if (!refused)
        refused = lapse_replay_finish(replay);
    free(copy);
    return refused;
}

/* The folded text is sorted, each stack once, and reads back. */
static void check_folded(struct lapse_output *output)
{
    struct lapse_lines lines;
    struct lapse_folded_line line;
    const char *cause;
    char *before = malloc(output->size + 1);
    size_t before_size = 0;
    int status;
    check(before);
    lapse_lines_memory(&lines, output->bytes, output->size);
    for (bool first = true; (status = lapse_folded_next(&lines, &line, &cause)); first = false) {
        size_t common = line.size < before_size ? line.size : before_size;
        int order = memcmp(before, line.stack, common);
        check(status == 1 && line.value);
        check(first || order < 0 || (!order && before_size < line.size));
        memcpy(before, line.stack, line.size);
        before_size = line.size;
    }
    free(before);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct lapse_replay *strict = NULL, *repaired = NULL;
    struct lapse_output strict_text, repaired_text;
    check(!lapse_replay_create(&strict, false) && !lapse_replay_create(&repaired, true));
    int refused = replay_all(strict, bytes, size);
    check(!replay_all(repaired, bytes, size));
    check(!lapse_output_init(&strict_text, NULL) && !lapse_output_init(&repaired_text, NULL));
    check(!lapse_replay_write(strict, &strict_text));
    check(!lapse_replay_write(repaired, &repaired_text));
    if (!refused) {
        struct lapse_replay_repairs repairs = lapse_replay_repairs(repaired);
        check(!(repairs.lost_exits | repairs.stray_ends | repairs.lost_starts | repairs.unclosed |
                repairs.times));
        check(strict_text.size == repaired_text.size);
        check(!strict_text.size ||
              !memcmp(strict_text.bytes, repaired_text.bytes, strict_text.size));
    } else {
        check(lapse_replay_cause(strict)[0]);
    }
    check_folded(&repaired_text);
    lapse_output_fini(&strict_text);
    lapse_output_fini(&repaired_text);
    lapse_replay_destroy(strict);
    lapse_replay_destroy(repaired);
    return 0;
}
