/* SPDX-License-Identifier: MIT */
/* A plugin for plugin_host.c. */
#include <stdint.h>

uint64_t plugin_filter(uint64_t steps);

__attribute__((noinline)) static uint64_t convolve(uint64_t steps)
{
    uint64_t state = 88172645463325252u;
    while (steps--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    return state;
}

uint64_t plugin_filter(uint64_t steps)
{
    return convolve(steps) + 1;
}
