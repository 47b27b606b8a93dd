/* SPDX-License-Identifier: MIT */
/* Hundreds of children of two milliseconds: none is lost, none is slow, none leaves an empty file. */
#include "host.h"

int main(int count, char **arguments)
{
    if (count == 2) {
        host_burn_us(2000);
        return atoi(arguments[1]);
    }
    for (int i = 0; i < 150; i++) {
        char code[8];
        snprintf(code, sizeof code, "%d", i % 100);
        pid_t pid = fork();
        if (pid == 0) {
            execl(host_self(), host_self(), code, (char *)NULL);
            _exit(111);
        }
        host_expect_exit("short child", pid, i % 100);
    }
    return host_end();
}
