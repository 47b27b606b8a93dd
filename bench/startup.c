/* SPDX-License-Identifier: MIT */
/* Cost of starting and ending a session: runs of `true`, plain and under LD_PRELOAD, in turns.
 * usage: startup LIBRARY [RUNS [MOST_US MOST_KIB]]. Prints TSV: what, CPU in us (mean), CPU in us
 * (median), peak memory in KiB (median), ratio of means to plain. Exit status 1 when the mean costs more than
 * MOST_US or the memory more than MOST_KIB over plain. At 1 Hz, so that no tick falls into a run. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct series { double *us; long *kib; double sum; };

static void run(struct series *series, int at, const char *library)
{
    struct rusage usage;
    pid_t child = fork();
    if (child == 0) {
        if (library)
            setenv("LD_PRELOAD", library, 1);
        setenv("LAPSE_HZ", "1", 1);
        setenv("LAPSE_OUT", "/tmp/lapse-bench-%p", 1);
        setenv("LAPSE_EXPORT", "none", 1);
        execlp("true", "true", (char *)NULL);
        _exit(127);
    }
    if (wait4(child, NULL, 0, &usage) != child)
        exit(1);
    series->us[at] = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
                     (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
    series->kib[at] = usage.ru_maxrss;
    series->sum += series->us[at];
}

static int compare_doubles(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static int compare_longs(const void *a, const void *b)
{
    return (*(const long *)a > *(const long *)b) - (*(const long *)a < *(const long *)b);
}

static void print(const char *what, const struct series *series, int runs, double plain)
{
    qsort(series->us, (size_t)runs, sizeof *series->us, compare_doubles);
    qsort(series->kib, (size_t)runs, sizeof *series->kib, compare_longs);
    printf("%s\t%.0f\t%.0f\t%ld\t%.2f\n", what, series->sum / runs, series->us[runs / 2],
           series->kib[runs / 2], series->sum / plain);
}

int main(int argc, char **argv)
{
    int runs = argc > 2 ? atoi(argv[2]) : 1000;
    struct series plain = { 0 }, preloaded = { 0 };
    if (argc < 2 || runs < 1) {
        fputs("usage: startup LIBRARY [RUNS [MOST_US MOST_KIB]]\n", stderr);
        return 2;
    }
    plain.us = calloc((size_t)runs, sizeof *plain.us);
    plain.kib = calloc((size_t)runs, sizeof *plain.kib);
    preloaded.us = calloc((size_t)runs, sizeof *preloaded.us);
    preloaded.kib = calloc((size_t)runs, sizeof *preloaded.kib);
    if (!plain.us || !plain.kib || !preloaded.us || !preloaded.kib)
        return 1;
    for (int i = 0; i < runs; i++) {
        run(&plain, i, NULL);
        run(&preloaded, i, argv[1]);
    }
    puts("process\tcpu_us_mean\tcpu_us_median\tpeak_kib_median\tratio");
    print("plain", &plain, runs, plain.sum);
    print("lapse", &preloaded, runs, plain.sum);
    double more_us = (preloaded.sum - plain.sum) / runs;
    long more_kib = preloaded.kib[runs / 2] - plain.kib[runs / 2];
    printf("difference\t%.0f\t\t%ld\n", more_us, more_kib);
    return argc > 4 && (more_us > atof(argv[3]) || more_kib > atol(argv[4]));
}
