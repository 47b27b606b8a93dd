/* SPDX-License-Identifier: MIT */
/* A program built for gprof, whose sampling uses the same signal from inside the C library: its
 * histogram gets the program's time as ever. Run in an empty folder, where gmon.out is written. */
#include "host.h"

static unsigned count_samples(FILE *file)
{
    /* Header of 20 bytes; a histogram record: tag 0, low and high pc, number of bins, rate, a
     * 16-byte unit, then 16-bit bins. */
    unsigned char head[20], tag = 1, rest[40];
    unsigned sum = 0;
    uint32_t bins;
    uint16_t bin;
    if (fread(head, sizeof head, 1, file) != 1 || memcmp(head, "gmon", 4) != 0 ||
        fread(&tag, 1, 1, file) != 1 || tag != 0 || fread(rest, sizeof rest, 1, file) != 1)
        return 0;
    memcpy(&bins, rest + 16, sizeof bins);
    while (bins-- && fread(&bin, sizeof bin, 1, file) == 1)
        sum += bin;
    return sum;
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "--burn") == 0) {
        host_burn_us(400000);
        return 4; /* gmon.out is written on the way out */
    }
    pid_t pid = fork();
    if (pid == 0) {
        execl(host_self(), host_self(), "--burn", (char *)NULL);
        _exit(9);
    }
    host_expect_exit("burning child", pid, 4);
    FILE *file = fopen("gmon.out", "rb");
    unsigned samples = file ? count_samples(file) : 0;
    /* 100 Hz of the process's CPU time; sampled at the scheduler's tick. */
    HOST_CHECK(samples >= 15 && samples <= 80, "gmon.out has %u samples of 400 ms", samples);
    if (file)
        fclose(file);
    return host_end();
}
