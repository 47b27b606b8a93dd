/* SPDX-License-Identifier: MIT */
/* A program that changes its folder and its umask while it runs, and whose first folder vanishes:
 * nothing of the profiler's appears in the new one, and files of the program get the mode they should. */
#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

int main(void)
{
    char first[] = "first-XXXXXX", second[] = "second-XXXXXX", path[64];
    struct stat status;
    int entries = 0;
    HOST_CHECK(mkdtemp(first) && mkdtemp(second) && chdir(first) == 0, "folders");
    host_burn_us(60000);
    snprintf(path, sizeof path, "../%s", second);
    HOST_CHECK(chdir(path) == 0, "chdir");
    snprintf(path, sizeof path, "../%s", first);
    HOST_CHECK(rmdir(path) == 0, "rmdir: %d", errno);
    umask(027);
    host_burn_us(80000);
    int fd = open("mine", O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    HOST_CHECK(fstat(fd, &status) == 0 && (status.st_mode & 0777) == 0640, "mode");
    close(fd);
    HOST_CHECK(umask(022) == 027, "umask");
    DIR *folder = opendir(".");
    while (readdir(folder))
        entries++;
    closedir(folder);
    HOST_CHECK(entries == 3, "%d entries", entries);
    return host_end();
}
