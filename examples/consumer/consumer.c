/* SPDX-License-Identifier: MIT */
/* Profiles a part of itself and says how much was sampled. */
#include <lapse.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t mix(uint64_t rounds)
{
    uint64_t x = 88172645463325252u;
    while (rounds--) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    return x;
}

int main(int argc, char **argv)
{
    struct lapse_options options = { .out = argc > 1 ? argv[1] : NULL, .hz = 250 };
    struct lapse_status status;
    int error = lapse_start(&options);
    if (error) {
        fprintf(stderr, "consumer: lapse_start: %s\n", strerror(-error));
        return 1;
    }
    uint64_t result = 0;
    clock_t end = clock() + CLOCKS_PER_SEC / 2;
    while (clock() < end)
        result ^= mix(1000000);
    error = lapse_stop();
    if (error) {
        fprintf(stderr, "consumer: lapse_stop: %s\n", strerror(-error));
        return 1;
    }
    lapse_status(&status);
    printf("lapse %s: %llu samples (%llx)\n", lapse_version(), (unsigned long long)status.recorded,
           (unsigned long long)result);
    return status.recorded ? 0 : 1;
}
