/* SPDX-License-Identifier: MIT */
/* Every control function from many threads at once, again and again, in forked children, in atexit
 * handlers and from a signal handler; and the same with what labels and spans leave behind.
 * usage: states OUT CASE; exit status 0 when all answers were among those the manual allows. */
#include <errno.h>
#include <lapse.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *out;
static atomic_int failures, ending;

static void check(int result, const char *what, const int *allowed)
{
    if (!result)
        return;
    for (; *allowed; allowed++)
        if (result == -*allowed)
            return;
    fprintf(stderr, "states: %s: %s\n", what, strerror(-result));
    failures++;
}

#define CHECK(call, ...) check(call, #call, (const int[]){ __VA_ARGS__, 0 })

static void burn_ms(long ms)
{
    struct timespec now, start;
    volatile uint64_t steps = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do {
        for (int i = 0; i < 10000; i++)
            steps = steps + 1;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < ms);
}

static int start(void)
{
    struct lapse_options options = { .out = out, .hz = 1000, .exports = LAPSE_EXPORT_NONE, .quiet = 1 };
    return lapse_start(&options);
}

static void one_operation(unsigned *seed, int number)
{
    char path[4096];
    switch (rand_r(seed) % 8) {
    case 0: CHECK(start(), EALREADY, EBUSY); break;
    case 1: CHECK(lapse_stop(), EBUSY); break;
    case 2: CHECK(lapse_pause(), EPERM, EBUSY); break;
    case 3: CHECK(lapse_resume(), EPERM, EBUSY); break;
    case 4: CHECK(lapse_flush(), EPERM, EBUSY, ETIMEDOUT); break;
    case 5:
        snprintf(path, sizeof path, "%s-snapshot-%d-%d", out, number, rand_r(seed));
        CHECK(lapse_snapshot(path), EPERM, EBUSY, ENODATA, ETIMEDOUT, EEXIST);
        unlink(path);
        break;
    case 6:
        lapse_label_push("case", "threads");
        lapse_span_begin("span");
        burn_ms(1);
        lapse_span_end();
        lapse_label_pop();
        break;
    default:
        lapse_thread_exclude();
        burn_ms(1);
        lapse_thread_include();
    }
}

static void *operate(void *context)
{
    unsigned seed = (unsigned)(intptr_t)context;
    for (int i = 0; i < 150; i++)
        one_operation(&seed, (int)(intptr_t)context);
    return NULL;
}

static void many_threads(void)
{
    pthread_t threads[6];
    for (intptr_t i = 0; i < 6; i++)
        pthread_create(&threads[i], NULL, operate, (void *)(i + 1));
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    CHECK(lapse_stop(), EBUSY);
    struct lapse_status status;
    lapse_status(&status);
    if (status.running || status.paused)
        failures++;
}

static void *keep_operating(void *context)
{
    unsigned seed = 99;
    (void)context;
    while (!ending)
        one_operation(&seed, 99);
    return NULL;
}

/* Children of a process whose other thread is inside some operation at any moment. */
static void children(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, keep_operating, NULL);
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (!pid) {
            failures = 0;
            CHECK(start(), EALREADY);
            burn_ms(3);
            CHECK(lapse_pause(), EPERM);
            CHECK(lapse_resume(), EPERM);
            CHECK(lapse_stop(), EBUSY);
            _exit(failures != 0);
        }
        int status;
        waitpid(pid, &status, 0);
        if (status) {
            fprintf(stderr, "states: child: %d\n", status);
            failures++;
        }
    }
    ending = 1;
    pthread_join(thread, NULL);
    CHECK(lapse_stop(), EBUSY);
}

static void at_exit_stop(void)
{
    burn_ms(10);
    CHECK(lapse_flush(), EPERM);
    CHECK(lapse_stop(), EBUSY);
    CHECK(lapse_stop(), EBUSY);
    if (failures)
        _exit(1);
}

static atomic_int refused, handled;

static void on_signal(int signal)
{
    (void)signal;
    int results[] = { lapse_pause(), lapse_resume(), start(), lapse_stop() };
    static const int allowed[] = { EDEADLK, EBUSY, EALREADY, EPERM };
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        int known = !results[i];
        for (size_t k = 0; k < 4; k++)
            known |= results[i] == -allowed[k];
        failures += !known;
        refused += results[i] == -EDEADLK;
    }
    handled++;
}

/* A timer interrupts the operations of this very thread. */
static void from_handler(void)
{
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
    struct itimerspec when = { { 0, 700000 }, { 0, 700000 } };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    timer_t timer;
    sigaction(SIGUSR1, &action, NULL);
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &when, NULL);
    for (int i = 0; i < 400; i++) {
        start();
        burn_ms(1);
        lapse_pause();
        lapse_resume();
        lapse_stop();
    }
    timer_delete(timer);
    CHECK(lapse_stop(), EBUSY);
    printf("%d signals, %d operations refused\n", handled, refused);
    if (!handled)
        failures++;
}

static long resident_kb(void)
{
    long pages = 0, whole;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &whole, &pages) != 2)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Memory is the same after 1,000 sessions as after 100. */
static void repeated(void)
{
    long before = 0;
    for (int i = 0; i < 1000; i++) {
        CHECK(start(), EPERM);
        lapse_label_push("turn", "any");
        if (i % 10 == 0)
            burn_ms(4);
        lapse_label_pop();
        CHECK(lapse_stop(), EPERM);
        char path[4200];
        snprintf(path, sizeof path, "%s.lapse", out);
        unlink(path);
        if (i == 99)
            before = resident_kb();
    }
    long after = resident_kb();
    printf("resident after 100 sessions %ld kB, after 1,000 %ld kB\n", before, after);
    if (after > before + 256)
        failures++;
}

/* A snapshot is a recording; a file is never overwritten; what was recorded is in the file. */
static void snapshot(void)
{
    char path[4200];
    struct lapse_status status;
    snprintf(path, sizeof path, "%s-snapshot.lapse", out);
    if (lapse_snapshot(path) != -EPERM)
        failures++;
    CHECK(start(), EPERM);
    if (lapse_snapshot(path) != -ENODATA)
        failures++;
    burn_ms(150);
    if (lapse_snapshot(path) || lapse_snapshot(path) != -EEXIST)
        failures++;
    burn_ms(100);
    CHECK(lapse_stop(), EPERM);
    lapse_status(&status);
    printf("recorded %llu\n", (unsigned long long)status.recorded);
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } cases[] = {
        { "threads", many_threads }, { "children", children }, { "handler", from_handler },
        { "repeated", repeated }, { "snapshot", snapshot },
    };
    out = argv[1];
    for (size_t i = 0; argc > 2 && i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[2], cases[i].name))
            cases[i].run();
    if (argc > 2 && !strcmp(argv[2], "atexit")) {
        atexit(at_exit_stop);
        CHECK(start(), EPERM);
        burn_ms(20);
    }
    return failures != 0;
}
