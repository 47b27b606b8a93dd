/* SPDX-License-Identifier: MIT */
/* Host: functions whose CPU time is 1:2:4:8, for argv[1] seconds of it. */
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

#define SHARE(name, rounds)                                                                        \
    __attribute__((noinline)) static void name(void)                                               \
    {                                                                                              \
        spin(rounds);                                                                              \
        sink++; /* no tail call: the frame stays */                                                \
    }
SHARE(share_1, 100000)
SHARE(share_2, 200000)
SHARE(share_4, 400000)
SHARE(share_8, 800000)

int main(int argc, char **argv)
{
    double end = cpu_seconds() + (argc > 1 ? atof(argv[1]) : 1);
    while (cpu_seconds() < end) {
        share_1();
        share_2();
        share_4();
        share_8();
    }
    return 0;
}
