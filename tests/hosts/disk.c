/* SPDX-License-Identifier: MIT */
/* Bad places for a profiler's files: a full disk, a read-only one, a folder that is not there, one that
 * vanished, no right to write; and a file that exists already, which stays as it is. The program does
 * not notice. (What the profiler says on the error output is its business here.) */
#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

static int work(void)
{
    char text[16] = "";
    pthread_t thread;
    pthread_create(&thread, NULL, host_burn_thread, (void *)20000);
    host_burn_us(60000);
    pthread_join(thread, NULL);
    FILE *file = tmpfile();
    HOST_CHECK(file && fputs("written", file) > 0, "own file");
    if (file) {
        rewind(file);
        HOST_CHECK(fgets(text, sizeof text, file) && strcmp(text, "written") == 0, "own text");
        fclose(file);
    }
    return host_failures ? 1 : 35;
}

static void start_work(const char *out)
{
    int silence = open("/dev/null", O_WRONLY | O_CLOEXEC);
    setenv("LAPSE_OUT", out, 1);
    dup2(silence, 2);
    execl(host_self(), host_self(), "--work", (char *)NULL);
    _exit(90);
}

/* The data of a program without an error output, or that closed it, is not written to: it may well lie at
 * that number. */
static void work_on_data(bool closes_later)
{
    if (closes_later)
        close(2);
    int fd = open("data", O_CREAT | O_TRUNC | O_WRONLY, 0600);
    HOST_CHECK(fd == 2, "data is at descriptor %d", fd);
    HOST_CHECK(write(fd, "mine", 4) == 4, "write");
    host_burn_us(60000);
    exit(host_failures ? 1 : 36);
}

static void expect_data_kept(const char *how)
{
    struct stat status;
    pid_t pid = fork();
    if (pid == 0) {
        setenv("LAPSE_OUT", "/nowhere/profile", 1);
        if (how[2] == 'n')
            close(2);
        execl(host_self(), host_self(), how, (char *)NULL);
        _exit(90);
    }
    host_expect_exit(how, pid, 36);
    HOST_CHECK(stat("data", &status) == 0 && status.st_size == 4, "%s: %d bytes of data", how, (int)status.st_size);
}

static void fill(const char *folder)
{
    char path[128], block[4096];
    memset(block, 1, sizeof block);
    snprintf(path, sizeof path, "%s/filler", folder);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    while (write(fd, block, sizeof block) > 0)
        ;
    close(fd);
}

/* Returns false where the place cannot be made. */
static bool go_to_place(int how)
{
    char folder[] = "place-XXXXXX", path[128];
    if (!mkdtemp(folder))
        return false;
    snprintf(path, sizeof path, "%s/profile", folder);
    switch (how) {
    case 0:
    case 1:
        if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("none", folder, "tmpfs", 0, "size=32k") != 0)
            return false;
        fill(folder);
        if (how == 1 && mount(NULL, folder, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0)
            return false;
        break;
    case 2:
        snprintf(path, sizeof path, "/nowhere/%s/profile", folder);
        break;
    case 3:
        if (chdir(folder) != 0)
            return false;
        snprintf(path, sizeof path, "../%s", folder);
        if (rmdir(path) != 0)
            return false;
        snprintf(path, sizeof path, "removed-%d", (int)getppid());
        break;
    case 4:
        snprintf(path, sizeof path, "/proc/profile");
        break;
    case 5:
        snprintf(path, sizeof path, "/dev/full/profile"); /* no folder */
        break;
    }
    start_work(path);
    return true;
}

static void expect_kept(void)
{
    char text[16] = "";
    int fd = open("kept.lapse", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    HOST_CHECK(write(fd, "mine", 4) == 4, "write");
    close(fd);
    HOST_CHECK(symlink("target", "kept.folded") == 0, "symlink");
    pid_t pid = fork();
    if (pid == 0)
        start_work("kept");
    host_expect_exit("existing file", pid, 35);
    fd = open("kept.lapse", O_RDONLY | O_CLOEXEC);
    HOST_CHECK(read(fd, text, sizeof text) == 4 && memcmp(text, "mine", 4) == 0, "file was changed");
    close(fd);
    HOST_CHECK(access("target", F_OK) != 0, "written through a symbolic link");
    HOST_CHECK(!host_is_profiled() || access("kept.1.lapse", F_OK) == 0, "no numbered file");
}

int main(int count, char **arguments)
{
    if (count == 2 && strcmp(arguments[1], "--work") == 0)
        return work();
    if (count == 2)
        work_on_data(arguments[1][2] == 'c');
    for (int how = 0; how < 6; how++) {
        pid_t pid = fork();
        if (pid == 0) {
            go_to_place(how);
            _exit(35); /* not to be made here */
        }
        char what[48];
        snprintf(what, sizeof what, "place %d", how);
        host_expect_exit(what, pid, 35);
        snprintf(what, sizeof what, "/removed-%d.lapse", (int)getpid());
        HOST_CHECK(access(what, F_OK) != 0, "a recording in the root, the folder being removed");
    }
    expect_kept();
    expect_data_kept("--no-error-output");
    expect_data_kept("--closed-error-output");
    return host_end();
}
