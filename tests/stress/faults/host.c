/* SPDX-License-Identifier: MIT */
/* Host for the fault injector (inject.c): threads, a fork, a fork with exec, memory, output; ends with
 * status 7. Says on stdout what it found, the same in each run. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile unsigned long sink;

static void burn(unsigned ms)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    long end = now.tv_sec * 1000000000 + now.tv_nsec + ms * 1000000;
    do {
        for (unsigned i = 0; i < 5000; i++)
            sink += i * i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while (now.tv_sec * 1000000000 + now.tv_nsec < end);
}

static void *work(void *argument)
{
    char *memory = malloc(300000);
    memset(memory, 1, 300000);
    burn(6);
    free(memory);
    return argument;
}

static int wait_for(pid_t pid)
{
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void threads(void)
{
    pthread_t thread[2];
    void *result = NULL;
    for (size_t i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, work, (void *)(i + 1)))
            puts("no thread");
    for (size_t i = 0; i < 2; i++) {
        pthread_join(thread[i], &result);
        printf("thread %zu\n", (size_t)result);
    }
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        burn(6);
        return 5;
    }
    puts("begin");
    burn(6);
    threads();
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        burn(6);
        exit(3);
    }
    printf("child %d\n", wait_for(pid));
    fflush(stdout);
    pid = fork();
    if (!pid) {
        execl("/proc/self/exe", "host", "again", NULL);
        _exit(9);
    }
    printf("program %d\n", wait_for(pid));
    burn(6);
    puts("end");
    return 7;
}
