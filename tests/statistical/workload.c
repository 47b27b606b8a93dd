/* SPDX-License-Identifier: MIT */
/* A fixed amount of work for comparisons: three functions with 30, 50 and 20 % of the time, the first
 * one slower by a given share. Work is counted in steps, not in time, so that a run that is disturbed
 * takes longer, as real programs do. usage: workload MILLION_STEPS [PERCENT] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A macro, so that the time is the function's own and not that of one inlined into it. */
#define STEPS(state, count)                                                                        \
    while ((count)--) {                                                                            \
        (state) ^= (state) << 13;                                                                  \
        (state) ^= (state) >> 7;                                                                   \
        (state) ^= (state) << 17;                                                                  \
    }

__attribute__((noinline)) static uint64_t changed(uint64_t state, uint64_t count)
{
    STEPS(state, count)
    return state + 1;
}

__attribute__((noinline)) static uint64_t larger(uint64_t state, uint64_t count)
{
    STEPS(state, count)
    return state + 2;
}

__attribute__((noinline)) static uint64_t smaller(uint64_t state, uint64_t count)
{
    STEPS(state, count)
    return state + 3;
}

int main(int argc, char **argv)
{
    uint64_t million = argc > 1 ? strtoull(argv[1], NULL, 10) : 30;
    uint64_t percent = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    uint64_t state = 88172645463325252u;
    /* In 1,000 rounds, so that the three are spread over the run. */
    for (int round = 0; round < 1000; round++) {
        state = changed(state, million * 300 * (100 + percent) / 100);
        state = larger(state, million * 500);
        state = smaller(state, million * 200);
    }
    return printf("%llu\n", (unsigned long long)state) < 0;
}
