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

/* The shell and what it runs; they have the program's own environment, without the other library. */
static void shells(void)
{
    char command[4200], line[64] = "";
    sigset_t now;
    snprintf(command, sizeof command, "%s --look; test $? = 42 && exec %s --look", host_self(), host_self());
    HOST_CHECK(system(NULL) != 0, "no shell");
    int status = system(command);
    HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42, "system: 0x%x", (unsigned)status);
    status = system("kill -9 $$");
    HOST_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "killed shell: 0x%x", (unsigned)status);
    sigprocmask(SIG_BLOCK, NULL, &now);
    HOST_CHECK(!sigismember(&now, SIGCHLD), "SIGCHLD stays blocked");
    FILE *other = popen("cat >/dev/null", "w"), *stream = popen(command, "r");
    HOST_CHECK(other && stream, "popen: %d", errno);
    if (!other || !stream)
        return;
    status = pclose(other); /* ends only if the second shell does not hold the first one's pipe */
    HOST_CHECK(status == 0, "pclose of a writer: 0x%x", (unsigned)status);
    status = pclose(stream);
    HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42, "pclose: 0x%x", (unsigned)status);
    stream = popen("echo 4711; exit 3", "r");
    HOST_CHECK(stream && fgets(line, sizeof line, stream) && !strcmp(line, "4711\n"), "read: %s", line);
    status = stream ? pclose(stream) : -1;
    HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3, "pclose of a reader: 0x%x", (unsigned)status);
    HOST_CHECK(!popen("true", "rw") && errno == EINVAL, "popen, both ways: %d", errno);
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
    shells();
    return host_end();
}
