/* SPDX-License-Identifier: MIT */
/* Every system call of the runtime fails in turn; the host must not notice.
 *   inject LIBRARY HOST STEP
 * Runs HOST under the preload and ptrace. A call is the runtime's own when its instruction lies in
 * LIBRARY. In run n the n-th of them is not made and gives an error that it could give; STEP > 1 tries
 * each STEP-th only. Then one kind of call fails from the n-th on for good (no memory, no disk, no
 * descriptors, no timers, no thread). Each time the host must write what it writes plain, end with the
 * same status, and do so in time. Prints how many points were tried. Exit 0, 1. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define TIME_LIMIT_S 20
#define TASKS 4096u

/* Errors by call. A call that is not here either cannot fail, or is the host's own by our hand (exec,
 * waiting, ending). */
static const struct failure { long number; int error, again; } failures[] = {
    { SYS_mmap, ENOMEM, EAGAIN }, { SYS_munmap, ENOMEM, EINVAL }, { SYS_mprotect, ENOMEM, EACCES },
    { SYS_madvise, EAGAIN, ENOMEM }, { SYS_open, EMFILE, EACCES }, { SYS_openat, EMFILE, EACCES },
    { SYS_read, EIO, EINTR }, { SYS_pread64, EIO, EINTR }, { SYS_write, EAGAIN, EPIPE },
    { SYS_pwrite64, ENOSPC, EINTR }, { SYS_fcntl, EMFILE, EINVAL }, { SYS_close, EIO, EINTR },
    { SYS_close_range, EMFILE, ENOSYS }, { SYS_fallocate, ENOSPC, EOPNOTSUPP },
    { SYS_ftruncate, EIO, EINTR }, { SYS_fstat, EIO, EOVERFLOW }, { SYS_stat, ENOENT, EACCES },
    { SYS_readlink, EACCES, ENOENT }, { SYS_unlink, EACCES, ENOENT }, { SYS_getdents64, ENOENT, EIO },
    { SYS_getcwd, ENOENT, ERANGE }, { SYS_timer_create, EAGAIN, ENOMEM },
    { SYS_timer_settime, EINVAL, EINVAL }, { SYS_timer_gettime, EINVAL, EINVAL },
    { SYS_timer_delete, EINVAL, EINVAL }, { SYS_timer_getoverrun, EINVAL, EINVAL },
    { SYS_clone, EAGAIN, EPERM }, { SYS_prctl, EPERM, EINVAL }, { SYS_prlimit64, EPERM, ENOSYS },
    { SYS_futex, EINTR, EAGAIN }, { SYS_nanosleep, EINTR, EINVAL }, { SYS_clock_gettime, EINVAL, EINVAL },
    { SYS_process_vm_readv, EPERM, ENOSYS }, { SYS_getrandom, EAGAIN, ENOSYS },
    { SYS_rt_sigtimedwait, EAGAIN, EINTR }, { SYS_tgkill, ESRCH, EAGAIN }, { SYS_getrusage, EFAULT, EFAULT },
    { SYS_perf_event_open, EACCES, EMFILE }, { SYS_setgroups, EPERM, EPERM }, { SYS_ioctl, EPERM, ENOTTY },
    { SYS_lseek, EINVAL, EINVAL },
};

/* What one run does. */
struct plan {
    uint64_t nth;      /* of the runtime's calls that may fail; 0: none */
    bool second;       /* the other error */
    long only;         /* count this call alone, -1: all */
    bool for_good;     /* and from the nth on */
};

struct task { pid_t pid; bool inside, failing; int error; };
static struct task tasks[TASKS];
struct range { pid_t process; uint64_t start, end, bias; };
static struct range ranges[TASKS]; /* where the library lies, by process */

static const char *library, *program;
static char folder[] = "/tmp/lapse-faults-XXXXXX";
static uint64_t calls; /* of the runtime that may fail, in this run */
static uint64_t injected;
static char what[64], crash[64];

static struct task *task_of(pid_t pid)
{
    uint32_t at = (uint32_t)pid % TASKS;
    while (tasks[at].pid && tasks[at].pid != pid)
        at = (at + 1) % TASKS;
    tasks[at].pid = pid;
    return &tasks[at];
}

static pid_t process_of(pid_t task)
{
    char path[64], line[128];
    int process = task;
    snprintf(path, sizeof path, "/proc/%d/status", task);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Tgid: %d", &process) == 1)
            break;
    if (file)
        fclose(file);
    return process;
}

static struct range read_range(pid_t task)
{
    char path[64], line[PATH_MAX + 128], rights[8];
    struct range range = { task, 0, 0, 0 };
    unsigned long start, end, offset;
    snprintf(path, sizeof path, "/proc/%d/maps", task);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, library) && sscanf(line, "%lx-%lx %7s %lx", &start, &end, rights, &offset) == 4 &&
            rights[2] == 'x') {
            range.start = start;
            range.end = end;
            range.bias = start - offset;
        }
    if (file)
        fclose(file);
    return range;
}

/* Each task looks once, and again as long as there is no library. */
static bool is_ours(pid_t task, uint64_t ip)
{
    struct range *range = &ranges[(uint32_t)task % TASKS];
    if (range->process != task || !range->end)
        *range = read_range(task);
    return ip >= range->start && ip < range->end;
}

static const struct failure *failure_of(const struct __ptrace_syscall_info *info)
{
    long number = (long)info->entry.nr;
    if (number == SYS_clone && !(info->entry.args[0] & CLONE_THREAD)) /* the host's fork */
        return NULL;
    for (size_t i = 0; i < sizeof failures / sizeof *failures; i++)
        if (failures[i].number == number)
            return &failures[i];
    return NULL;
}

static void at_entry(struct task *task, const struct __ptrace_syscall_info *info, const struct plan *plan)
{
    const struct failure *failure = failure_of(info);
    if (!failure || (plan->only >= 0 && failure->number != plan->only) ||
        !is_ours(task->pid, info->instruction_pointer))
        return;
    calls++;
    if (!plan->nth || (plan->for_good ? calls < plan->nth : calls != plan->nth))
        return;
    task->failing = true;
    task->error = plan->second ? failure->again : failure->error;
    injected++;
    snprintf(what, sizeof what, "call %ld at %#lx, error %d", failure->number,
             (unsigned long)(info->instruction_pointer - ranges[(uint32_t)task->pid % TASKS].bias), task->error);
    ptrace(PTRACE_POKEUSER, task->pid, offsetof(struct user, regs.orig_rax), -1L);
}

static void at_syscall(struct task *task, const struct plan *plan)
{
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, task->pid, sizeof info, &info) <= 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
        at_entry(task, &info, plan);
    } else if (info.op == PTRACE_SYSCALL_INFO_EXIT && task->failing) {
        task->failing = false;
        ptrace(PTRACE_POKEUSER, task->pid, offsetof(struct user, regs.rax), (long)-task->error);
    }
}

static void begin(int output, bool preloaded)
{
    char out[64];
    snprintf(out, sizeof out, "%s/%%e-%%p", folder);
    dup2(output, 1);
    dup2(output, 2);
    if (preloaded) {
        ptrace(PTRACE_TRACEME, 0, 0, 0);
        setenv("LAPSE_OUT", out, 1);
        setenv("LAPSE_RINGS", folder, 1);
        setenv("LAPSE_HZ", "1000", 1);
        setenv("LAPSE_EXIT_BUDGET_MS", "1000", 1);
        setenv("LD_PRELOAD", library, 1);
        raise(SIGSTOP);
    }
    execl(program, "host", NULL);
    _exit(127);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static volatile sig_atomic_t too_late;
static void on_alarm(int signal)
{
    (void)signal;
    too_late = 1;
}

/* Where in the library; the first crash counts. */
static void note_crash(pid_t pid)
{
    uint64_t ip = (uint64_t)ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, regs.rip), 0);
    bool inside = is_ours(pid, ip);
    if (!*crash)
        snprintf(crash, sizeof crash, ", crash at %#lx%s", (unsigned long)(ip - (inside ? ranges[(uint32_t)pid % TASKS].bias : 0)),
                 inside ? " of the library" : "");
}

/* One stop of one task; the signal to go on with. */
static int at_stop(pid_t pid, int status, const struct plan *plan)
{
    int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
        at_syscall(task_of(pid), plan);
        return 0;
    }
    if (status >> 16) { /* fork, clone, exec: a new image has the library elsewhere */
        memset(&ranges[(uint32_t)pid % TASKS], 0, sizeof *ranges);
        return 0;
    }
    if (signal == SIGSEGV)
        note_crash(pid);
    return signal == SIGSTOP || signal == SIGTRAP ? 0 : signal;
}

/* Returns the wait status of the host, -1 when it took too long. */
static int trace(pid_t host, const struct plan *plan)
{
    int status, result = -1;
    waitpid(host, &status, 0);
    ptrace(PTRACE_SETOPTIONS, host, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
           PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL);
    ptrace(PTRACE_SYSCALL, host, 0, 0);
    alarm(TIME_LIMIT_S);
    for (;;) {
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR && too_late)
            break;
        if (pid < 0 && errno == ECHILD)
            break;
        if (pid < 0)
            continue;
        if (WIFSTOPPED(status))
            ptrace(PTRACE_SYSCALL, pid, 0, (long)at_stop(pid, status, plan));
        else if (pid == host)
            result = status;
    }
    alarm(0);
    if (too_late) {
        for (uint32_t i = 0; i < TASKS; i++)
            if (tasks[i].pid)
                kill(process_of(tasks[i].pid), SIGKILL);
        while (waitpid(-1, &status, __WALL) > 0 || errno == EINTR)
            ;
        result = -1;
    }
    too_late = 0;
    return result;
}

/* Output of the host without lapse's own lines about lost output. */
static size_t read_output(int fd, char *to, size_t capacity)
{
    size_t size = 0;
    char line[1024];
    lseek(fd, 0, SEEK_SET);
    FILE *file = fdopen(fd, "r");
    while (file && fgets(line, sizeof line, file) && size + sizeof line < capacity)
        if (strncmp(line, "lapse: ", 7)) {
            memcpy(to + size, line, strlen(line));
            size += strlen(line);
        }
    if (file)
        fclose(file);
    to[size] = 0;
    return size;
}

static void empty_folder(void)
{
    DIR *directory = opendir(folder);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
}

static int run(const struct plan *plan, bool preloaded, char *output, size_t capacity)
{
    int status;
    FILE *file = tmpfile();
    memset(tasks, 0, sizeof tasks);
    memset(ranges, 0, sizeof ranges);
    calls = injected = 0;
    what[0] = crash[0] = 0;
    pid_t pid = fork();
    if (!pid)
        begin(fileno(file), preloaded);
    if (preloaded)
        status = trace(pid, plan);
    else
        waitpid(pid, &status, 0);
    read_output(dup(fileno(file)), output, capacity);
    fclose(file);
    empty_folder();
    return status;
}

static char expected[4096];
static int expected_status;
static unsigned failed;
static uint64_t points, injections;

static void try(const struct plan *plan)
{
    char output[4096];
    double start = now();
    int status = run(plan, true, output, sizeof output);
    if (plan->nth && !injected)
        return;
    points++;
    injections += injected;
    if (status == expected_status && !strcmp(output, expected))
        return;
    failed++;
    printf("%s%s from number %lu: %s%s, status %#x after %.1f s%s\n", what, plan->for_good ? " and all later" : "",
           (unsigned long)plan->nth, status == -1 ? "hangs" : "differs", crash, (unsigned)status, now() - start,
           strcmp(output, expected) ? ", output:" : "");
    if (strcmp(output, expected))
        printf("%s", output);
    fflush(stdout);
}

/* In each of the two errors, each call alone; stops when there are no more calls. */
static void each_call(uint64_t step)
{
    char output[4096];
    struct plan plan = { .only = -1 };
    run(&plan, true, output, sizeof output);
    uint64_t most = calls;
    printf("about %lu calls of the runtime in a run\n", (unsigned long)most);
    for (int second = 0; second < 2; second++)
        for (uint64_t n = 1 + (uint64_t)second * (step / 2); n <= most; n += step)
            try(&(struct plan){ .nth = n, .second = second, .only = -1 });
}

/* What stays broken: memory, disk, descriptors, timers, the thread. */
static void for_good(uint64_t step)
{
    static const long kinds[] = { SYS_mmap, SYS_pwrite64, SYS_open, SYS_timer_create, SYS_clone, SYS_futex,
                                  SYS_process_vm_readv, SYS_timer_settime, SYS_fcntl };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        uint64_t most = 1;
        for (uint64_t n = 1; n <= most; n += step) {
            try(&(struct plan){ .nth = n, .only = kinds[i], .for_good = true });
            most = n == 1 ? calls : most;
        }
    }
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    library = argv[1];
    program = argv[2];
    uint64_t step = (uint64_t)atol(argv[3]);
    struct sigaction action = { .sa_handler = on_alarm };
    sigaction(SIGALRM, &action, NULL);
    if (!mkdtemp(folder) || !step)
        return 1;
    expected_status = run(NULL, false, expected, sizeof expected);
    each_call(step);
    for_good(step > 1 ? step : 1);
    rmdir(folder);
    printf("%lu points, %lu calls that failed, %u hosts that noticed\n", (unsigned long)points,
           (unsigned long)injections, failed);
    return failed || points < 20;
}
