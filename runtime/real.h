/* SPDX-License-Identifier: MIT */
/* The functions behind the interposed ones: what the host would have called had we not been there.
 *
 * Resolved all at once by dlsym(RTLD_NEXT): in a constructor of ours, or earlier when a constructor
 * of another library calls one of them first. A successful dlsym allocates nothing (a failing one
 * does, for its message: every name here exists since glibc 2.35 or earlier), and nothing is looked
 * up later, so no interposed call ever reaches the loader or malloc behind the host's back. */
#ifndef LAPSE_RUNTIME_REAL_H
#define LAPSE_RUNTIME_REAL_H

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/types.h>
#include <threads.h>
#include <time.h>

struct msghdr;
struct mmsghdr;
struct sembuf;

/* F(result, name, arguments) */
#define LAPSE_REAL_FUNCTIONS(F) \
    /* processes */ \
    F(pid_t, fork, (void)) \
    F(pid_t, _Fork, (void)) \
    F(int, clone, (int (*)(void *), void *, int, void *, ...)) \
    F(pid_t, forkpty, (int *, char *, const void *, const void *)) \
    F(int, posix_spawn, (pid_t *, const char *, const posix_spawn_file_actions_t *, \
        const posix_spawnattr_t *, char *const *, char *const *)) \
    F(int, posix_spawnp, (pid_t *, const char *, const posix_spawn_file_actions_t *, \
        const posix_spawnattr_t *, char *const *, char *const *)) \
    F(int, execve, (const char *, char *const *, char *const *)) \
    F(int, execvpe, (const char *, char *const *, char *const *)) \
    F(int, fexecve, (int, char *const *, char *const *)) \
    F(int, execveat, (int, const char *, char *const *, char *const *, int)) \
    F(int, system, (const char *)) \
    F(FILE *, popen, (const char *, const char *)) \
    F(int, pclose, (FILE *)) \
    F(void, _exit, (int)) \
    F(void, quick_exit, (int)) \
    F(void, abort, (void)) \
    /* signals */ \
    F(int, sigaction, (int, const struct sigaction *, struct sigaction *)) \
    F(sighandler_t, signal, (int, sighandler_t)) \
    F(sighandler_t, __sysv_signal, (int, sighandler_t)) \
    F(sighandler_t, sigset, (int, sighandler_t)) \
    F(int, siginterrupt, (int, int)) \
    F(int, sigprocmask, (int, const sigset_t *, sigset_t *)) \
    F(int, pthread_sigmask, (int, const sigset_t *, sigset_t *)) \
    F(int, sigsuspend, (const sigset_t *)) \
    F(int, sigwait, (const sigset_t *, int *)) \
    F(int, sigwaitinfo, (const sigset_t *, siginfo_t *)) \
    F(int, sigtimedwait, (const sigset_t *, siginfo_t *, const struct timespec *)) \
    F(int, setitimer, (__itimer_which_t, const struct itimerval *, struct itimerval *)) \
    F(int, profil, (unsigned short *, size_t, size_t, unsigned int)) \
    F(void, __monstartup, (unsigned long, unsigned long)) \
    F(int, moncontrol, (int)) \
    /* descriptors, modules */ \
    F(int, close, (int)) \
    F(int, close_range, (unsigned int, unsigned int, int)) \
    F(int, dup, (int)) \
    F(int, dup2, (int, int)) \
    F(int, dup3, (int, int, int)) \
    F(int, pipe2, (int *, int)) \
    F(int, dlclose, (void *)) \
    /* credentials, name spaces, sandboxes */ \
    F(int, setuid, (uid_t)) \
    F(int, setgid, (gid_t)) \
    F(int, seteuid, (uid_t)) \
    F(int, setegid, (gid_t)) \
    F(int, setreuid, (uid_t, uid_t)) \
    F(int, setregid, (gid_t, gid_t)) \
    F(int, setresuid, (uid_t, uid_t, uid_t)) \
    F(int, setresgid, (gid_t, gid_t, gid_t)) \
    F(int, setgroups, (size_t, const gid_t *)) \
    F(int, initgroups, (const char *, gid_t)) \
    F(int, capset, (void *, const void *)) \
    F(int, unshare, (int)) \
    F(int, setns, (int, int)) \
    F(int, prctl, (int, ...)) \
    F(int, stat, (const char *, struct stat *)) \
    F(int, stat64, (const char *, struct stat64 *)) \
    F(int, fstatat, (int, const char *, struct stat *, int)) \
    F(int, fstatat64, (int, const char *, struct stat64 *, int)) \
    /* sleeping */ \
    F(int, nanosleep, (const struct timespec *, struct timespec *)) \
    F(int, clock_nanosleep, (clockid_t, int, const struct timespec *, struct timespec *)) \
    F(int, usleep, (useconds_t)) \
    F(unsigned int, sleep, (unsigned int)) \
    F(int, thrd_sleep, (const struct timespec *, struct timespec *)) \
    F(int, poll, (struct pollfd *, nfds_t, int)) \
    F(int, __poll_chk, (struct pollfd *, nfds_t, int, size_t)) \
    F(int, ppoll, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *)) \
    F(int, __ppoll_chk, (struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t)) \
    F(int, select, (int, fd_set *, fd_set *, fd_set *, struct timeval *)) \
    F(int, pselect, (int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *)) \
    F(int, epoll_wait, (int, struct epoll_event *, int, int)) \
    F(int, epoll_pwait, (int, struct epoll_event *, int, int, const sigset_t *)) \
    F(int, epoll_pwait2, (int, struct epoll_event *, int, const struct timespec *, const sigset_t *)) \
    F(int, sem_wait, (sem_t *)) \
    F(int, sem_timedwait, (sem_t *, const struct timespec *)) \
    F(int, sem_clockwait, (sem_t *, clockid_t, const struct timespec *)) \
    F(ssize_t, recv, (int, void *, size_t, int)) \
    F(ssize_t, recvfrom, (int, void *, size_t, int, struct sockaddr *, socklen_t *)) \
    F(ssize_t, recvmsg, (int, struct msghdr *, int)) \
    F(int, recvmmsg, (int, struct mmsghdr *, unsigned int, int, struct timespec *)) \
    F(ssize_t, send, (int, const void *, size_t, int)) \
    F(ssize_t, sendto, (int, const void *, size_t, int, const struct sockaddr *, socklen_t)) \
    F(ssize_t, sendmsg, (int, const struct msghdr *, int)) \
    F(int, accept, (int, struct sockaddr *, socklen_t *)) \
    F(int, accept4, (int, struct sockaddr *, socklen_t *, int)) \
    F(int, connect, (int, const struct sockaddr *, socklen_t)) \
    F(int, pause, (void)) \
    F(int, msgsnd, (int, const void *, size_t, int)) \
    F(ssize_t, msgrcv, (int, void *, size_t, long, int)) \
    F(int, semop, (int, struct sembuf *, size_t)) \
    F(int, semtimedop, (int, struct sembuf *, size_t, const struct timespec *))

/* Linked statically (docs/LINKING.md) the linker gives the host's calls to us and the C library's own
 * functions these names; in liblapse.so they are all null. Weak: what nobody calls is not linked. */
#define LAPSE_REAL_LINKED(result, name, arguments) \
    extern __attribute__((weak)) result __real_##name arguments;
LAPSE_REAL_FUNCTIONS(LAPSE_REAL_LINKED)
#undef LAPSE_REAL_LINKED
extern __attribute__((weak)) int __real_pthread_create(pthread_t *, const pthread_attr_t *,
                                                       void *(*)(void *), void *);

/* The next definition of `name`: `linked` unless that is null, else the dynamic loader's. NULL in a
 * program without a loader that does not call it. */
void *lapse_real_find(const char *name, void *linked);

struct lapse_real {
#define LAPSE_REAL_FIELD(result, name, arguments) result (*name) arguments;
    LAPSE_REAL_FUNCTIONS(LAPSE_REAL_FIELD)
#undef LAPSE_REAL_FIELD
};

/* Written by lapse_real_init alone; constant once lapse_real_ready is set. */
extern struct lapse_real lapse_real;
extern atomic_bool lapse_real_ready;

/* Resolves every name. Idempotent; two threads that race here store the same values. */
void lapse_real_init(void);

/* The real function `name`, at whatever time. Acquire pairs with the release in lapse_real_init:
 * without it a thread could see the flag and a pointer that is still null. */
#define LAPSE_REAL(name) \
    (atomic_load_explicit(&lapse_real_ready, memory_order_acquire) ? (void)0 : lapse_real_init(), \
     lapse_real.name)

#endif
