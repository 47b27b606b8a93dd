/* SPDX-License-Identifier: MIT */
/* Host: a process so big that a fork of it takes milliseconds, forking argv[1] times. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) static int fork_and_wait(void)
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(3);
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 3;
}

int main(int argc, char **argv)
{
    size_t size = (size_t)192 << 20;
    char *memory = malloc(size);
    if (!memory)
        return 77;
    memset(memory, 1, size);
    for (int i = argc > 1 ? atoi(argv[1]) : 1; i > 0; i--)
        if (!fork_and_wait())
            return 1;
    return memory[size / 2] - 1;
}
