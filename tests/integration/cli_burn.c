/* SPDX-License-Identifier: MIT */
/* A command to be recorded: burns CPU time, then ends as told.
 * usage: cli-burn MILLISECONDS [exit=N | signal=N | daemon=MILLISECONDS] */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) static void burn(double milliseconds)
{
    volatile unsigned long sum = 0;
    struct timespec now;
    do {
        for (unsigned i = 0; i < 100000; i++)
            sum += i;
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6 < milliseconds);
}

int main(int argc, char **argv)
{
    const char *ending = argc > 2 ? argv[2] : "exit=0";
    burn(argc > 1 ? atof(argv[1]) : 0);
    puts("burnt");
    fflush(stdout);
    if (!strncmp(ending, "signal=", 7))
        raise(atoi(ending + 7));
    if (!strncmp(ending, "daemon=", 7) && !fork()) {
        setsid();
        fclose(stdout);
        fclose(stderr);
        burn(atof(ending + 7));
        return 0;
    }
    return strncmp(ending, "exit=", 5) ? 0 : atoi(ending + 5);
}
