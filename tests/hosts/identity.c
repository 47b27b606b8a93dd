/* SPDX-License-Identifier: MIT */
/* Privileges are dropped by every thread of the process, also by those that it does not know; name
 * spaces can be left by a program with one thread; a changed root does no harm. */
#include "host.h"

#include <dirent.h>
#include <grp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>

/* Every task has user and group `id`, four times each, and no other group. */
static void expect_tasks(unsigned id)
{
    DIR *folder = opendir("/proc/self/task");
    struct dirent *entry;
    HOST_CHECK(folder, "no task list");
    while (folder && (entry = readdir(folder)) != NULL) {
        char path[300], line[200];
        unsigned a, b, c, d;
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        while (file && fgets(line, sizeof line, file)) {
            if (sscanf(line, "Uid: %u %u %u %u", &a, &b, &c, &d) == 4 ||
                sscanf(line, "Gid: %u %u %u %u", &a, &b, &c, &d) == 4)
                HOST_CHECK(a == id && b == id && c == id && d == id, "task %s: %s", entry->d_name, line);
            if (strncmp(line, "Groups:", 7) == 0)
                HOST_CHECK(strspn(line + 7, " \t\n") == strlen(line + 7), "task %s: %s",
                           entry->d_name, line);
        }
        if (file)
            fclose(file);
    }
    if (folder)
        closedir(folder);
}

static void drop(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, host_burn_thread, (void *)60000);
    host_burn_us(30000);
    HOST_CHECK(setgroups(0, NULL) == 0, "setgroups");
    HOST_CHECK(setresgid(65534, 65534, 65534) == 0, "setresgid");
    HOST_CHECK(setuid(65534) == 0, "setuid");
    HOST_CHECK(setuid(0) == -1, "root again");
    expect_tasks(65534);
    host_burn_us(30000);
    pthread_join(thread, NULL);
    expect_tasks(65534);
    prctl(PR_SET_DUMPABLE, 0);
    host_burn_us(20000);
}

static void new_user_space(void)
{
    host_burn_us(30000);
    HOST_CHECK(unshare(CLONE_NEWUSER) == 0, "unshare(CLONE_NEWUSER): %d", errno);
    host_burn_us(30000);
    HOST_CHECK(unshare(CLONE_FS | CLONE_FILES) == 0, "unshare: %d", errno);
    host_burn_us(20000);
}

static void new_root(void)
{
    char folder[] = "lapse-root-XXXXXX";
    host_burn_us(30000);
    HOST_CHECK(mkdtemp(folder) && chroot(folder) == 0 && chdir("/") == 0, "chroot: %d", errno);
    host_burn_us(60000);
    struct stat status;
    HOST_CHECK(stat("/proc", &status) == -1, "not another root");
}

int main(void)
{
    void (*const changes[])(void) = { drop, new_user_space, new_root };
    if (geteuid() != 0) {
        printf("needs root\n");
        return 77;
    }
    /* Is a user name space to be had here at all? */
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWUSER) != 0);
    bool has_spaces = host_wait(pid) == 0;
    for (int i = 0; i < 3; i++) {
        if (i == 1 && !has_spaces)
            continue;
        if ((pid = fork()) == 0) {
            changes[i]();
            _exit(host_failures ? 1 : 20 + i);
        }
        host_expect_exit("change", pid, 20 + i);
    }
    return host_end();
}
