/* SPDX-License-Identifier: MIT */
/* posix_spawn with attributes and file actions, system, popen and vfork: outputs, statuses, masks of
 * the children, and a parent that is unchanged. */
#include "host.h"

#include <fcntl.h>
#include <spawn.h>

extern char **environ;

static void spawn_with_output(void)
{
    int ends[2];
    char text[64] = "";
    pid_t pid;
    sigset_t none, all;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *arguments[] = { "sh", "-c", "echo $MARK; exit 4", NULL };
    char *environment[] = { "MARK=there", "PATH=/usr/bin:/bin", NULL };
    sigemptyset(&none);
    sigfillset(&all);
    HOST_CHECK(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    HOST_CHECK(posix_spawnp(&pid, "sh", &actions, &attributes, arguments, environment) == 0,
               "posix_spawnp");
    close(ends[1]);
    HOST_CHECK(read(ends[0], text, sizeof text) == 6 && memcmp(text, "there\n", 6) == 0, "output");
    close(ends[0]);
    host_expect_exit("spawned", pid, 4);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    HOST_CHECK(posix_spawn(&pid, "/nowhere", NULL, NULL, arguments, environ) == ENOENT,
               "spawn of nothing");
}

static void vfork_children(void)
{
    volatile int shared = 1;
    sigset_t before, after, all;
    pid_t pid = vfork();
    if (pid == 0) {
        shared++;
        _exit(5);
    }
    HOST_CHECK(shared == 2, "vfork shares memory");
    host_expect_exit("vfork, _exit", pid, 5);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    pid = vfork();
    if (pid == 0) {
        sigprocmask(SIG_SETMASK, &all, NULL);
        signal(SIGPROF, SIG_DFL);
        close(0);
        execl("/bin/sh", "sh", "-c", "exit 6", (char *)NULL);
        _exit(91);
    }
    host_expect_exit("vfork, exec", pid, 6);
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int number = 1; number < 32; number++)
        HOST_CHECK(sigismember(&before, number) == sigismember(&after, number),
                   "signal %d changed in the parent", number);
    HOST_CHECK(fcntl(0, F_GETFD) >= 0, "descriptor closed in the parent");
    pid = vfork();
    if (pid == 0) {
        execl("/nowhere", "x", (char *)NULL);
        _exit(errno == ENOENT ? 7 : 92);
    }
    host_expect_exit("vfork, failed exec", pid, 7);
}

int main(void)
{
    for (int i = 0; i < 20; i++) {
        char line[16] = "";
        host_burn_us(5000);
        spawn_with_output();
        vfork_children();
        if (i % 5)
            continue;
        int status = system("exit 9");
        HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9, "system");
        FILE *child = popen("cat; echo end", "r");
        HOST_CHECK(child && fgets(line, sizeof line, child) && strcmp(line, "end\n") == 0, "popen");
        HOST_CHECK(child && pclose(child) == 0, "pclose");
    }
    return host_end();
}
