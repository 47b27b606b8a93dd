/* SPDX-License-Identifier: MIT */
/* Daemons: fork twice, a new session, every descriptor closed in each of the usual ways, another
 * folder; numbers of descriptors opened afterwards are those of a program that nobody looks at. */
#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>

static void close_listed(int keep)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    while (folder && (entry = readdir(folder)) != NULL) {
        int fd = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && fd > 2 && fd != keep && fd != dirfd(folder))
            close(fd);
    }
    closedir(folder);
}

static void close_all(int how, int keep)
{
    struct rlimit limit;
    switch (how) {
    case 0:
        getrlimit(RLIMIT_NOFILE, &limit);
        if (limit.rlim_cur > 65536)
            limit.rlim_cur = 65536;
        for (int fd = 3; fd < (int)limit.rlim_cur; fd++)
            if (fd != keep)
                close(fd);
        break;
    case 1:
        close_range(3, (unsigned)keep - 1, 0);
        close_range((unsigned)keep + 1, UINT_MAX, 0);
        break;
    case 2:
        dup2(keep, 3);
        closefrom(4);
        fcntl(3, F_DUPFD, keep);
        break;
    case 3:
        close_listed(keep);
        break;
    }
}

/* The daemon's report: one byte, the number of things that went wrong. */
static void serve(int how, int report)
{
    unsigned char wrong = 0;
    host_burn_us(10000);
    wrong += setsid() == -1 && how != 4;
    wrong += chdir("/") != 0;
    umask(027);
    close_all(how, report);
    for (int standard = 0; standard < 3; standard++)
        close(standard);
    wrong += open("/dev/null", O_RDWR) != 0;
    wrong += dup(0) != 1 || dup(0) != 2;
    host_burn_us(15000);
    int low = open("/dev/null", O_RDONLY);
    wrong += how != 2 && how != 4 && low != 3;
    host_burn_us(15000);
    wrong += close(low) != 0;
    wrong += close(low) != -1 || errno != EBADF;
    if (write(report, &wrong, 1) != 1)
        _exit(1);
}

static void daemonize(int how)
{
    int ends[2], status;
    unsigned char wrong = 99;
    HOST_CHECK(pipe(ends) == 0, "pipe");
    int report = fcntl(ends[1], F_DUPFD, 20);
    close(ends[1]);
    pid_t pid = fork();
    if (pid == 0) {
        if (how == 4) {
            if (daemon(0, 0) != 0)
                _exit(1);
        } else if (fork() != 0) {
            _exit(0);
        }
        serve(how, report);
        exit(0);
    }
    close(report);
    status = host_wait(pid);
    HOST_CHECK(status == 0, "way %d: first child 0x%x", how, (unsigned)status);
    HOST_CHECK(read(ends[0], &wrong, 1) == 1 && wrong == 0, "way %d: %d wrong", how, wrong);
    close(ends[0]);
}

int main(void)
{
    host_burn_us(30000);
    for (int how = 0; how < 5; how++)
        daemonize(how);
    close_all(0, 1000000);
    HOST_CHECK(open("/dev/null", O_RDONLY) == 3, "next descriptor");
    host_burn_us(30000);
    return host_end();
}
