/* SPDX-License-Identifier: MIT */
/* A pre-forking server: workers that take jobs from a pipe, one killed and replaced, the others ended
 * by SIGTERM and SIGINT; SIGCHLD of the parent counts them all. */
#include "host.h"

static atomic_int deaths;
static void on_child(int number) { (void)number; atomic_fetch_add(&deaths, 1); }

static void worker(int jobs, int results)
{
    unsigned char job;
    while (read(jobs, &job, 1) == 1) {
        host_burn_us(3000);
        job = (unsigned char)(job ^ 0x5a);
        if (write(results, &job, 1) != 1)
            _exit(3);
    }
    _exit(0);
}

int main(void)
{
    enum { WORKERS = 4, JOBS = 60 };
    int jobs[2], results[2], sum = 0, want = 0;
    pid_t pids[WORKERS + 1];
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_child;
    action.sa_flags = SA_RESTART | SA_NOCLDSTOP;
    sigaction(SIGCHLD, &action, NULL);
    HOST_CHECK(pipe(jobs) == 0 && pipe(results) == 0, "pipe");
    host_burn_us(20000);
    for (int i = 0; i < WORKERS + 1; i++)
        if ((pids[i] = fork()) == 0) {
            signal(SIGCHLD, SIG_DFL);
            worker(jobs[0], results[1]);
        }
    kill(pids[WORKERS], SIGKILL);
    host_expect_signal("killed", pids[WORKERS], SIGKILL);
    for (unsigned char i = 0; i < JOBS; i++) {
        want += i ^ 0x5a;
        HOST_CHECK(write(jobs[1], &i, 1) == 1, "job");
    }
    for (int i = 0; i < JOBS; i++) {
        unsigned char result = 0;
        HOST_CHECK(read(results[0], &result, 1) == 1, "result");
        sum += result;
    }
    HOST_CHECK(sum == want, "sum %d, wanted %d", sum, want);
    for (int i = 0; i < WORKERS; i++) {
        kill(pids[i], i % 2 ? SIGTERM : SIGINT);
        host_expect_signal("ended", pids[i], i % 2 ? SIGTERM : SIGINT);
    }
    HOST_CHECK(deaths >= 1 && deaths <= WORKERS + 1, "%d deaths", deaths);
    return host_end();
}
