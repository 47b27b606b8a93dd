/* SPDX-License-Identifier: MIT */
/* Every way to start a new image, right ones and failing ones: arguments and environment arrive as
 * given, a failed exec leaves the process as it was, and sampling goes on (or ends) without a trace. */
#include "host.h"

#include <fcntl.h>
#include <sys/syscall.h>

extern char **environ;
static char *own_environment[] = { "MARK=own", "PATH=/nowhere", NULL };

static void become(int how)
{
    char *self = (char *)host_self();
    char *arguments[] = { self, "--leaf", "b", "", NULL };
    int fd;
    switch (how) {
    case 0: execl(self, self, "--leaf", "b", "", (char *)NULL); break;
    case 1: execle(self, self, "--leaf", "b", "", (char *)NULL, own_environment); break;
    case 2: execlp(self, self, "--leaf", "b", "", (char *)NULL); break;
    case 3: execv(self, arguments); break;
    case 4: execve(self, arguments, own_environment); break;
    case 5: execvp(self, arguments); break;
    case 6: execvpe(self, arguments, own_environment); break;
    case 7:
        fd = open(self, O_RDONLY | O_CLOEXEC);
        fexecve(fd, arguments, own_environment);
        break;
    case 8: execveat(AT_FDCWD, self, arguments, environ, 0); break;
    case 9: syscall(SYS_execve, self, arguments, environ); break;
    case 10: execlp("sh", "sh", "-c", "exit 50", (char *)NULL); break;
    }
    _exit(90);
}

static int leaf(int count, char **arguments)
{
    bool right = count == 4 && strcmp(arguments[2], "b") == 0 && arguments[3][0] == '\0';
    const char *mark = getenv("MARK");
    host_burn_us(4000);
    if (!right || !mark)
        return 60;
    return strcmp(mark, "own") == 0 ? 51 : strcmp(mark, "inherited") == 0 ? 50 : 61;
}

static void fail_in_all_ways(void)
{
    char *arguments[] = { "x", NULL };
    char here[4096];
    HOST_CHECK(execv("/nowhere/at/all", arguments) == -1 && errno == ENOENT, "ENOENT: %d", errno);
    HOST_CHECK(execvp("lapse-no-such-program", arguments) == -1 && errno == ENOENT, "PATH: %d",
               errno);
    HOST_CHECK(execv("/tmp", arguments) == -1 && errno == EACCES, "EACCES: %d", errno);
    HOST_CHECK(execl("/dev/null", "x", (char *)NULL) == -1 && errno == EACCES, "null: %d", errno);
    HOST_CHECK(fexecve(-1, arguments, environ) == -1, "fexecve(-1)");
    snprintf(here, sizeof here, "./lapse-not-executable-%d", (int)getpid());
    int fd = open(here, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
    HOST_CHECK(fd >= 0 && write(fd, "\0\0\0\0", 4) == 4, "file");
    close(fd);
    HOST_CHECK(execv(here, arguments) == -1 && errno == ENOEXEC, "ENOEXEC: %d", errno);
    unlink(here);
}

int main(int count, char **arguments)
{
    static const int codes[] = { 50, 51, 50, 50, 51, 50, 51, 51, 50, 50, 50 };
    if (count > 1)
        return leaf(count, arguments);
    setenv("MARK", "inherited", 1);
    char **before = environ;
    for (int how = 0; how < 11; how++) {
        pid_t pid = fork();
        if (pid == 0) {
            host_burn_us(1500);
            become(how);
        }
        char what[32];
        snprintf(what, sizeof what, "exec %d", how);
        host_expect_exit(what, pid, codes[how]);
    }
    for (int i = 0; i < 20; i++) {
        host_burn_us(2000);
        fail_in_all_ways();
    }
    HOST_CHECK(environ == before, "environ was replaced");
    return host_end();
}
