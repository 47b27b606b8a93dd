/* SPDX-License-Identifier: MIT */
/* Cost of a push and pop of a label, without a session, in a paused one (labels are kept, no tick
 * disturbs) and one level deep. With `count PAIRS [session]` it does that many pairs and nothing else,
 * for counting instructions (valgrind --tool=callgrind; the difference of two counts is the cost). */
#include <lapse.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAIRS = 20000000 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pairs(uint64_t count)
{
    while (count--) {
        lapse_label_push("request", "checkout");
        lapse_label_pop();
    }
}

/* The best of five: others on the machine only make it slower. */
static void measure(const char *what)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 5; i++) {
        uint64_t start = now_ns();
        pairs(PAIRS);
        uint64_t taken = now_ns() - start;
        best = taken < best ? taken : best;
    }
    printf("%-28s %6.2f ns a pair\n", what, (double)best / PAIRS);
}

int main(int argc, char **argv)
{
    struct lapse_options options = { .out = "/tmp/lapse-bench-labels-%p", .start_paused = 1, .quiet = 1 };
    if (argc > 2 && !strcmp(argv[1], "count")) {
        if (argc > 3 && lapse_start(&options))
            return 1;
        pairs(strtoull(argv[2], NULL, 10));
        return 0;
    }
    measure("no session");
    if (lapse_start(&options))
        return 1;
    measure("session");
    lapse_label_push("tenant", "other");
    measure("session, inside another");
    return lapse_stop() != 0;
}
