/* SPDX-License-Identifier: MIT */
/* Run with LAPSE_FOLLOW=0: children made by fork and by every way of exec are left alone, another
 * preloaded library stays with them, and the program's own environment is not touched. */
#include "host.h"

#include <spawn.h>

extern char **environ;

#define OTHER "libresolv.so.2"

/* Child: 0, plus 1 when lapse is in here, plus 2 when the other library is not. */
static int look(void)
{
    char line[512];
    bool lapse = false, other = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps)) {
        lapse |= strstr(line, "liblapse") != NULL;
        other |= strstr(line, "libresolv") != NULL;
    }
    if (maps)
        fclose(maps);
    return 40 + lapse + 2 * !other;
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count == 2)
        return look();
    char preload[4096];
    const char *own = getenv("LD_PRELOAD");
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s%s" OTHER, own ? own : "", own ? ":" : "");
    char *environment[] = { "A=b", preload, "C=d", NULL };
    char *again[] = { (char *)host_self(), "--look", NULL };
    for (int i = 0; i < 5; i++) {
        pid_t pid;
        host_burn_us(10000);
        HOST_CHECK(posix_spawn(&pid, again[0], NULL, NULL, again, environment) == 0, "spawn");
        host_expect_exit("spawned", pid, 40);
        HOST_CHECK(posix_spawnp(&pid, again[0], NULL, NULL, again, environment) == 0, "spawnp");
        host_expect_exit("spawned by name", pid, 40);
        for (int how = 0; how < 3; how++) {
            if ((pid = how == 2 ? vfork() : fork()) == 0) {
                if (how == 0)
                    execve(again[0], again, environment);
                else if (how == 1)
                    execle(again[0], again[0], "--look", (char *)NULL, environment);
                else
                    execvpe(again[0], again, environment);
                _exit(9);
            }
            host_expect_exit("executed", pid, 40);
        }
        if ((pid = fork()) == 0) {
            host_burn_us(20000);
            _exit(41);
        }
        host_expect_exit("forked", pid, 41);
        HOST_CHECK(getenv("LD_PRELOAD") == own, "own environment");
    }
    return host_end();
}
