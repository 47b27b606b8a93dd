/* SPDX-License-Identifier: MIT */
/* The warm handler makes no system call: after a warm-up, a child installs a filter (past any wrapper)
 * that kills on everything but rt_sigreturn and the calls that it ends with, and burns on while ticks
 * arrive. */
#include "host.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { HARMLESS = 1500000 };

__attribute__((noinline)) static long bare_call(long number, long a, long b, long c)
{
    long result;
    register long r10 __asm__("r10") = 0, r8 __asm__("r8") = 0;
    __asm__ volatile("syscall" : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}

/* Two instructions that the processor runs as one: every tick finds the same pc. Counts and reads no
 * clock, for whoever asks the kernel for it is killed. */
__attribute__((noinline)) static void spin(uint64_t count)
{
    __asm__ volatile("1: dec %0\n jnz 1b" : "+r"(count));
}

static int filtered(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = { sizeof code / sizeof code[0], code };
    const long none[4] = { 0 }, harmless[4] = { SYS_getppid, 0, 0, 0 },
        privileges[4] = { SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0 },
        filter[4] = { SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (long)&program },
        end[4] = { SYS_exit, 0, 0, 0 }; /* this thread alone is filtered and ends alone; the other one ends the process */
    const long *const last[] = { privileges, filter, none, end };
    /* A tick is mostly found at the end of a system call: the place where the filter comes into force
     * is warmed by harmless calls from the same line, and the spin by a turn before. */
    for (int i = 0; i < HARMLESS + 4; i++) {
        const long *call = i == 0 ? none : i < HARMLESS ? harmless : last[i - HARMLESS];
        __asm__("" : "+r"(call)); /* or the compiler makes two lines of it, and the one of the filter is cold */
        if (!call[0])
            spin(500000000);
        else if (bare_call(call[0], call[1], call[2], call[3]) < 0)
            return 77;
    }
    return 1;
}

static void *in_thread(void *unused)
{
    if (filtered() == 77)
        _exit(77);
    return unused;
}

int main(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        /* A thread that ends by a bare call is never joined: its exit is seen by its absence. */
        pthread_t thread;
        pthread_create(&thread, NULL, in_thread, NULL);
        int64_t end = host_clock_us(CLOCK_MONOTONIC) + 5000000;
        while (host_clock_us(CLOCK_MONOTONIC) < end && pthread_kill(thread, 0) == 0 &&
               pthread_tryjoin_np(thread, NULL) != 0)
            usleep(2000);
        _exit(21);
    }
    int status = host_wait(pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        return 77;
    HOST_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 21, "wait status 0x%x", (unsigned)status);
    return host_end();
}
