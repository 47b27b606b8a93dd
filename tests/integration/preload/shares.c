/* SPDX-License-Identifier: MIT */
/* Host: functions whose CPU time is about 1:2:4:8, for argv[1] seconds of it; prints the CPU time of each.
 * Order and lengths are random: samples come at the kernel's tick, and a fixed pattern would beat with it. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

__attribute__((noinline)) static void spin(unsigned long rounds)
{
    for (unsigned long i = 0; i < rounds; i++)
        sink += i * i;
}

#define SHARE(name)                                                                                \
    __attribute__((noinline)) static void name(unsigned long rounds)                               \
    {                                                                                              \
        spin(rounds);                                                                              \
        sink++; /* no tail call: the frame stays */                                                \
    }
SHARE(share_1)
SHARE(share_2)
SHARE(share_4)
SHARE(share_8)

int main(int argc, char **argv)
{
    static void (*const parts[])(unsigned long) = { share_1, share_2, share_4, share_8 };
    static const unsigned char by_share[] = { 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3 };
    double now = cpu_seconds(), end = now + (argc > 1 ? atof(argv[1]) : 1), seconds[4] = { 0 };
    unsigned seed = (unsigned)time(NULL);
    while (now < end) {
        unsigned part = by_share[rand_r(&seed) % sizeof by_share];
        parts[part](100000 + (unsigned long)rand_r(&seed) % 700000);
        double before = now;
        seconds[part] += (now = cpu_seconds()) - before;
    }
    printf("%f %f %f %f\n", seconds[0], seconds[1], seconds[2], seconds[3]);
    return 0;
}
