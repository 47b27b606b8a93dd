/* SPDX-License-Identifier: MIT */
/* Text that a dead process's ring points at: labels and names of spans, by the addresses that its spool
 * has beside them. For leftover.c. Sets of labels made for the ring's samples get numbers behind those
 * of the spool. */
#ifndef LAPSE_CLI_LEFTOVER_TEXT_H
#define LAPSE_CLI_LEFTOVER_TEXT_H

#include "../runtime/ring.h"
#include "index.h"
#include "wire.h"

struct lapse_leftover_text {
    struct lapse_map by_address;
    char **texts;
    uint32_t count;
    struct lapse_map sets; /* numbers by a hash of the set's addresses */
    uint32_t last_set;
};

/* What a LabelSet or a Span of the spool says (docs/lapse.proto). Returns 0 or -ENOMEM. */
int lapse_leftover_text_labels(struct lapse_leftover_text *text, struct lapse_wire_reader set);
int lapse_leftover_text_span(struct lapse_leftover_text *text, struct lapse_wire_reader span);

/* The text at an address, NULL when the spool does not have it. */
const char *lapse_leftover_text_at(const struct lapse_leftover_text *text, uint64_t address);

/* The number of the record's labels, 0 for none; a set that is new goes into the chunk. Labels whose
 * text is not known are left out. Returns 0 or -ENOMEM. */
int lapse_leftover_text_set(struct lapse_leftover_text *text, struct lapse_wire *chunk,
                            const struct lapse_record *record, uint32_t *set);

void lapse_leftover_text_free(struct lapse_leftover_text *text);

#endif
