/* SPDX-License-Identifier: MIT */
/* A thread forks while another is in the process's first lapse_start, in the middle of loading libunwind: this
 * program's own dlopen waits there for the fork. The child must come out before or after, not in the
 * middle, and its own start must succeed. usage: first-start OUT */
#include <dlfcn.h>
#include <errno.h>
#include <lapse.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int is_inside, is_about_to_fork;

void *dlopen(const char *path, int flags)
{
    void *(*real)(const char *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
    atomic_store(&is_inside, 1);
    while (!atomic_load(&is_about_to_fork))
        usleep(1000);
    usleep(100000); /* time for the fork, were nothing to hold it up */
    void *library = real(path, flags);
    atomic_store(&is_inside, 0);
    return library;
}

/* It runs on in a child that came out after the start. */
static int has_session(const char *out)
{
    const struct lapse_options options = { .out = out, .exports = LAPSE_EXPORT_NONE };
    int result = lapse_start(&options);
    return !result || result == -EALREADY;
}

static void *fork_inside(void *out)
{
    static int status;
    while (!atomic_load(&is_inside))
        usleep(100);
    atomic_store(&is_about_to_fork, 1);
    pid_t pid = fork();
    if (!pid) {
        _exit(atomic_load(&is_inside) ? 1 : has_session(out) ? 31 : 2);
    }
    waitpid(pid, &status, 0);
    return &status;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    void *status;
    const struct lapse_options options = { .out = argv[1], .exports = LAPSE_EXPORT_NONE };
    if (argc < 2 || pthread_create(&thread, NULL, fork_inside, argv[1]))
        return 2;
    int started = lapse_start(&options);
    pthread_join(thread, &status);
    int ended = *(int *)status;
    printf("start %d, the child's wait status 0x%x, 0x1f00 wanted\n", started, (unsigned)ended);
    return started || ended != 31 << 8 || !atomic_load(&is_about_to_fork);
}
