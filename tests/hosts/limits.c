/* SPDX-License-Identifier: MIT */
/* Resource limits of the host's own: no timers to be had, no descriptors, no address space, no file
 * size, a CPU limit that is hit at its time. Each child behaves as it does unprofiled. */
#include "host.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void set_limit(int which, rlim_t soft, rlim_t hard)
{
    struct rlimit limit = { soft, hard };
    HOST_CHECK(setrlimit(which, &limit) == 0, "setrlimit: %d", errno);
}

static void again(const char *how)
{
    execl(host_self(), host_self(), how, (char *)NULL);
    _exit(90);
}

static void burn_in_threads(void)
{
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        HOST_CHECK(pthread_create(&threads[i], NULL, host_burn_thread, (void *)6000) == 0, "create");
    host_burn_us(15000);
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
}

static void on_file_limit(int number) { _exit(number == SIGXFSZ ? 41 : 40); }

static int run(int how)
{
    int fd;
    switch (how) {
    case 0: /* pending signals: timers are refused, threads are not */
        burn_in_threads();
        return 30;
    case 1: /* descriptors */
        burn_in_threads();
        fd = open("/dev/null", O_RDONLY);
        HOST_CHECK(fd == 3 && open("/dev/null", O_RDONLY) == -1 && errno == EMFILE, "EMFILE: %d", errno);
        return 30;
    case 2: /* address space: what the program needs is there, what it does not is refused */
        burn_in_threads();
        HOST_CHECK(mmap(NULL, (size_t)1 << 32, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
                       MAP_FAILED, "too much memory");
        return 30;
    case 3: /* file size: only the program's own writing brings SIGXFSZ */
        signal(SIGXFSZ, on_file_limit);
        burn_in_threads();
        fd = open("file-too-big", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        unlink("file-too-big");
        HOST_CHECK(fd >= 0 && write(fd, "x", 1) == -1, "write");
        return 31;
    case 4: /* CPU: one second */
        for (;;)
            host_burn_us(10000);
    default:
        return 99;
    }
}

int main(int count, char **arguments)
{
    static const int codes[] = { 30, 30, 30, 41 };
    char name[] = "0";
    if (count == 2) {
        int code = run(arguments[1][0] - '0');
        return host_failures ? 1 : code;
    }
    host_burn_us(20000);
    for (int how = 0; how < 5; how++) {
        name[0] = (char)('0' + how);
        pid_t pid = fork();
        if (pid == 0) {
            switch (how) {
            case 0: set_limit(RLIMIT_SIGPENDING, 0, 0); break;
            case 1: set_limit(RLIMIT_NOFILE, 4, 4); break;
            case 2: set_limit(RLIMIT_AS, (rlim_t)400 << 20, (rlim_t)400 << 20); break;
            case 3: set_limit(RLIMIT_FSIZE, 0, 0); break;
            case 4: set_limit(RLIMIT_CORE, 0, 0); set_limit(RLIMIT_CPU, 1, 2); break;
            }
            again(name);
        }
        if (how < 4)
            host_expect_exit(name, pid, codes[how]);
        else
            host_expect_signal(name, pid, SIGXCPU);
    }
    return host_end();
}
