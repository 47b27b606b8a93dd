/* SPDX-License-Identifier: MIT */
/* Children of every kind from two threads at once, out of a parent so big that one fork takes longer
 * than a period; at the end the parent becomes another image without the profiler, which a timer or
 * a tick that outlived the exec would kill. */
#include "host.h"

#include <sys/mman.h>

extern char **environ;
static char *bare[512];

static void leave(char **environment, const char *code)
{
    char *arguments[] = { (char *)host_self(), "--leaf", (char *)code, NULL };
    execve(host_self(), arguments, environment);
    _exit(111);
}

static void shell(void)
{
    char line[32] = "";
    int status = system("exit 3");
    HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3, "system: 0x%x", (unsigned)status);
    FILE *pipe = popen("echo hello", "r");
    HOST_CHECK(pipe && fgets(line, sizeof line, pipe) && strcmp(line, "hello\n") == 0, "popen");
    HOST_CHECK(pipe && pclose(pipe) == 0, "pclose");
}

static void one(int kind)
{
    static const int codes[] = { 7, 9, 20, 41, 6 };
    if (kind == 5) {
        shell();
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        if (kind == 0)
            _exit(7);
        host_burn_us(2000);
        if (kind == 1)
            exit(9);
        if (kind == 2)
            leave(environ, "20");
        if (kind == 3)
            leave(bare, "41");
        pid_t grandchild = fork();
        if (grandchild == 0) {
            host_burn_us(2000);
            _exit(5);
        }
        int status = host_wait(grandchild);
        _exit(WIFEXITED(status) && WEXITSTATUS(status) == 5 ? 6 : 99);
    }
    HOST_CHECK(pid > 0, "fork: %d", errno);
    host_expect_exit("child", pid, codes[kind]);
}

static void *other(void *unused)
{
    (void)unused;
    for (int i = 0; i < 12; i++) {
        one(i % 4);
        host_burn_us(2000);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    size_t size = 128u << 20, kept = 0;
    pthread_t thread;
    if (count == 3) {
        int code = atoi(arguments[2]);
        host_burn_us(code >= 40 ? 40000 : 3000);
        return code;
    }
    if (count == 2) {
        host_burn_us(100000);
        return host_end();
    }
    for (char **variable = environ; *variable && kept < 511; variable++)
        if (strncmp(*variable, "LD_", 3) != 0 && strncmp(*variable, "LAPSE", 5) != 0)
            bare[kept++] = *variable;
    char *big = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (big == MAP_FAILED)
        return 77;
    madvise(big, size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < size; i += 4096)
        big[i] = (char)(i >> 12);
    pthread_create(&thread, NULL, other, NULL);
    for (int i = 0; i < 30; i++)
        one(i % 6);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < size; i += 4096)
        if (big[i] != (char)(i >> 12)) {
            host_fail("memory changed at %zu", i);
            break;
        }
    if (host_failures)
        return 1;
    host_burn_us(20000);
    char *last[] = { (char *)host_self(), "--last", NULL };
    execve(host_self(), last, bare);
    return 2;
}
