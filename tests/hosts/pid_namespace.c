/* SPDX-License-Identifier: MIT */
/* Processes of one number in several pid name spaces, with one pattern for their files: forked after
 * unshare(), cloned into one, with a /proc of their own or their parent's. Nobody's file is taken away. */
#include "host.h"

#include <glob.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/syscall.h>

enum { SPACES = 3 };

static void in_unshared(void)
{
    host_burn_us(10000);
    if (unshare(CLONE_NEWPID) != 0)
        _exit(77);
    pid_t inner = fork();
    if (inner == 0) {
        host_burn_us(30000);
        HOST_CHECK(getpid() == 1, "pid %d", (int)getpid());
        _exit(host_failures ? 1 : 4);
    }
    host_expect_exit("first process of a name space", inner, 4);
    exit(host_failures ? 1 : 5);
}

static void start_cloned(bool own_proc)
{
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | CLONE_NEWNS | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0) {
        if (own_proc && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
            mount("proc", "/proc", "proc", 0, NULL) != 0)
            _exit(6);
        execl(own_proc ? "/proc/self/exe" : host_self(), "pid_namespace", "--burn", (char *)NULL);
        _exit(90);
    }
    host_expect_exit("cloned into a name space", pid, 6);
}

/* The pattern ends in %e-%p. */
static void expect_spools(void)
{
    char pattern[4096];
    glob_t found = { 0 };
    const char *out = getenv("LAPSE_OUT");
    const char *slash = out ? strrchr(out, '/') : NULL;
    if (!host_is_profiled() || !slash)
        return;
    snprintf(pattern, sizeof pattern, "%.*s/*-1*.lapse", (int)(slash - out), out);
    glob(pattern, 0, NULL, &found);
    size_t of_one = 0;
    for (size_t i = 0; i < found.gl_pathc; i++)
        of_one += strstr(found.gl_pathv[i], "-1.") != NULL;
    HOST_CHECK(of_one >= SPACES, "%zu recordings of processes with number 1", of_one);
    globfree(&found);
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "--burn") == 0) {
        host_burn_us(30000);
        return 6;
    }
    for (int i = 0; i < SPACES; i++) {
        pid_t pid = fork();
        if (pid == 0)
            in_unshared();
        int status = host_wait(pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            return 77;
        HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5, "unshare: wait status 0x%x", (unsigned)status);
    }
    start_cloned(false);
    start_cloned(true);
    expect_spools();
    return host_end();
}
