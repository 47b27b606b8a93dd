/* SPDX-License-Identifier: MIT */
/* Programs that lock themselves up: a filter by prctl, by seccomp, and strict mode. It kills on what a
 * profiler would want later; the program works on and ends as it always did. And one that makes sure
 * before that it has one thread only. */
#include "host.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static bool forbid(bool by_prctl)
{
    static const int numbers[] = { SYS_openat, SYS_open, SYS_clone, SYS_clone3, SYS_timer_create,
                                   SYS_timer_settime, SYS_timer_delete, SYS_mmap, SYS_futex,
                                   SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_pwrite64, SYS_writev,
                                   SYS_getdents64, SYS_perf_event_open, SYS_gettid, SYS_tgkill,
                                   SYS_process_vm_readv, SYS_close_range, SYS_fstat, SYS_getpid };
    enum { COUNT = sizeof numbers / sizeof numbers[0] };
    struct sock_filter code[COUNT + 3] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    };
    for (int i = 0; i < COUNT; i++)
        code[i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i],
                                                   (unsigned char)(COUNT - i), 0);
    code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = { COUNT + 3, code };
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return false;
    if (by_prctl)
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
    /* What libseccomp asks first: is the call there? Not a filter. */
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) != -1 || errno != EFAULT)
        return false;
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

static void locked_up(int how)
{
    host_burn_us(25000);
    if (how == 2) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
            _exit(77);
    } else if (!forbid(how == 0)) {
        _exit(77);
    }
    for (volatile unsigned i = 0; i < 100000000; i++)
        ;
    if (write(1, "locked up\n", 10) != 10)
        _exit(1);
    if (how == 2)
        __asm__ volatile("syscall" : : "a"(SYS_exit), "D"(30) : "rcx", "r11", "memory");
    _exit(30);
}

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = -2; /* . and .. */
    HOST_CHECK(tasks, "no /proc/self/task");
    while (readdir(tasks))
        count++;
    closedir(tasks);
    return count;
}

/* Who does not ask at all, and looks by the number of links. */
static void look_at_once(void)
{
    struct stat status;
    for (int i = 0; i < 3; i++) {
        host_burn_us(10000);
        HOST_CHECK(stat("/proc/self/task", &status) == 0 && status.st_nlink == 3, "%d links", (int)status.st_nlink);
        int proc = open("/proc", O_RDONLY | O_DIRECTORY);
        HOST_CHECK(fstatat(proc, "self/task/", &status, 0) == 0 && status.st_nlink == 3, "%d links",
                   (int)status.st_nlink);
        close(proc);
    }
}

/* Who asks whether filters are to be had, and only then looks whether it is alone, as slowly as on a loaded
 * machine: 0.35 s go by in which it runs for 60 ms. */
static void look_slowly(void)
{
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL);
    for (int i = 0; i < 5; i++) {
        host_burn_us(10000);
        usleep(60000);
    }
    host_burn_us(10000);
    HOST_CHECK(count_threads() == 1, "%d threads after the question for filters", count_threads());
}

int main(void)
{
    host_burn_us(30000);
    look_at_once();
    look_slowly();
    for (int how = 0; how < 3; how++) {
        pid_t pid = fork();
        if (pid == 0)
            locked_up(how);
        int status = host_wait(pid);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            return 77;
        HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 30, "way %d: wait status 0x%x", how,
                   (unsigned)status);
    }
    return host_end();
}
