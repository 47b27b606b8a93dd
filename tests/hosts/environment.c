/* SPDX-License-Identifier: MIT */
/* The environment of the program and of its children is what it was: same block, same entries, other
 * preloaded libraries kept, and a program may replace the whole block. */
#include "host.h"

#include <spawn.h>

extern char **environ;

static size_t digest(void)
{
    size_t sum = 0;
    for (char **variable = environ; *variable; variable++)
        for (const char *c = *variable; *c; c++)
            sum = sum * 131 + (unsigned char)*c;
    return sum;
}

int main(int count, char **arguments)
{
    char **before = environ;
    size_t sum = digest();
    if (count == 3)
        return sum == strtoull(arguments[2], NULL, 16) ? 0 : 1;
    const char *preload = getenv("LD_PRELOAD");
    char text[32];
    snprintf(text, sizeof text, "%zx", sum);
    char *again[] = { (char *)host_self(), "--digest", text, NULL };
    for (int i = 0; i < 10; i++) {
        pid_t pid;
        host_burn_us(8000);
        HOST_CHECK(posix_spawn(&pid, host_self(), NULL, NULL, again, environ) == 0, "spawn");
        host_expect_exit("spawned", pid, 0);
        if ((pid = fork()) == 0) {
            execv(host_self(), again);
            _exit(9);
        }
        host_expect_exit("executed", pid, 0);
    }
    HOST_CHECK(environ == before && digest() == sum, "environment changed");
    HOST_CHECK(getenv("LD_PRELOAD") == preload, "LD_PRELOAD moved");
    setenv("LD_PRELOAD_OF_MINE", "x", 1);
    unsetenv("LD_PRELOAD_OF_MINE");
    clearenv();
    host_burn_us(10000);
    setenv("A", "b", 1);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", "test \"$A\" = b && test -z \"$LD_PRELOAD\"", (char *)NULL);
        _exit(9);
    }
    host_expect_exit("cleared", pid, 0);
    return host_end();
}
