/* SPDX-License-Identifier: MIT */
/* Every control function from many threads at once, again and again, in forked children, in atexit
 * handlers and from a signal handler, while labels, spans and names change; what a session leaves behind;
 * what a flush and a full ring promise. api.sh counts the samples in the files afterwards.
 * usage: states OUT CASE; exit status 0 when all answers were among those the manual allows.
 *
 * Also linked into a program in which ThreadSanitizer looks at the whole runtime
 * (tests/stress/control.cmake): there ticks are calls of `states_tick`, threads in place of signals. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lapse.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A tick of the calling thread, if its timer is armed, and its end; NULL where timers tick, and where the
 * destructor of a key sees the end (ThreadSanitizer has left the thread by then). */
__attribute__((weak)) void states_tick(void);
__attribute__((weak)) void states_thread_end(void);

static void *thread_done(void)
{
    if (states_thread_end)
        states_thread_end();
    return NULL;
}

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

#define CHECK(call, ...) check(call, #call, (const int[]){ -1, ##__VA_ARGS__, 0 })

static void burn_ms(long ms)
{
    struct timespec now, start;
    volatile uint64_t steps = 0;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
    do {
        for (int i = 0; i < 10000; i++)
            steps = steps + 1;
        if (states_tick)
            states_tick();
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
    struct lapse_status status;
    switch (rand_r(seed) % 13) {
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
    case 7: lapse_span_begin("left open"); break;
    case 8: lapse_span_end(); break;
    case 9: lapse_label_push("left", lapse_intern("open")); break;
    case 10:
        lapse_label_pop();
        lapse_thread_pause();
        burn_ms(1);
        lapse_thread_resume();
        break;
    case 11:
        snprintf(path, sizeof path, "thread %d", number);
        CHECK(lapse_thread_name(path));
        CHECK(lapse_status(&status));
        if (status.recorded + status.dropped > status.ticks + 64) /* each slot is read in turn */
            failures++;
        break;
    default:
        lapse_thread_exclude();
        burn_ms(1);
        lapse_thread_include();
    }
}

static pthread_barrier_t all_there;

static void *operate(void *context)
{
    unsigned seed = (unsigned)(intptr_t)context;
    pthread_barrier_wait(&all_there); /* so that both rounds have as many stacks */
    for (int i = 0; i < 100; i++)
        one_operation(&seed, (int)(intptr_t)context);
    return thread_done();
}

static size_t count_entries(const char *path)
{
    size_t count = 0;
    DIR *folder = opendir(path);
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static size_t count_lines(const char *path)
{
    size_t count = 0;
    FILE *file = fopen(path, "r");
    for (int c; file && (c = getc(file)) != EOF;)
        count += c == '\n';
    if (file)
        fclose(file);
    return count;
}

/* A session gives its memory back when the next one starts: one without ticks comes before memory is looked at. */
static void settle(void)
{
    struct lapse_options options = { .out = out, .start_paused = 1 };
    CHECK(lapse_start(&options));
    CHECK(lapse_stop());
}

/* What a process holds. Timers: 4 lines each, none where the kernel does not list them. */
struct held { size_t descriptors, threads, timers, mappings; };

static struct held what_is_held(void)
{
    settle();
    return (struct held){ count_entries("/proc/self/fd"), count_entries("/proc/self/task"),
                          count_lines("/proc/self/timers"), count_lines("/proc/self/maps") };
}

/* Twice the same work must hold the same in the end. The stacks that the C library keeps are there
 * after the first time, so that nothing may come with the second. */
static void hold_no_more_than(struct held before, size_t more_mappings)
{
    struct held after = what_is_held();
    printf("held: descriptors %zu -> %zu, threads %zu -> %zu, lines of timers %zu -> %zu, mappings %zu -> %zu\n",
           before.descriptors, after.descriptors, before.threads, after.threads, before.timers, after.timers,
           before.mappings, after.mappings);
    failures += after.descriptors != before.descriptors || after.threads > before.threads ||
                after.timers != before.timers || after.mappings > before.mappings + more_mappings;
}

static void operate_in_threads(void)
{
    pthread_t threads[6];
    pthread_barrier_init(&all_there, NULL, 6);
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

static void many_threads(void)
{
    operate_in_threads();
    struct held before = what_is_held();
    operate_in_threads();
    hold_no_more_than(before, states_tick ? 64 : 0); /* ThreadSanitizer maps its shadow as it goes */
}

static void *keep_operating(void *context)
{
    unsigned seed = 99;
    (void)context;
    while (!ending)
        one_operation(&seed, 99);
    return thread_done();
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
            unsigned seed = (unsigned)i;
            CHECK(start(), EALREADY);
            burn_ms(3);
            CHECK(lapse_pause());
            CHECK(lapse_resume());
            CHECK(lapse_flush());
            CHECK(lapse_stop());
            for (int k = 0; k < 20; k++)
                one_operation(&seed, 100 + i);
            CHECK(lapse_stop());
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

/* atexit handlers run last first: the session goes on under the first one, ends, begins again, and is
 * left to the process's end by the last one. */
static void at_exit_first(void)
{
    char path[4200];
    snprintf(path, sizeof path, "%s-snapshot.lapse", out);
    burn_ms(10);
    CHECK(lapse_pause());
    CHECK(lapse_resume());
    CHECK(lapse_flush());
    CHECK(lapse_snapshot(path), EEXIST);
    CHECK(lapse_stop());
    CHECK(lapse_stop());
}

static void at_exit_last(void)
{
    CHECK(start());
    lapse_label_push("at", "exit");
    burn_ms(30);
    if (failures)
        _exit(1);
}

static void at_exit(void)
{
    atexit(at_exit_last);
    atexit(at_exit_first);
    CHECK(start());
    burn_ms(30);
    /* In a child as well, with files of its own. */
    pid_t pid = fork();
    int status = 0;
    burn_ms(30);
    if (pid)
        waitpid(pid, &status, 0);
    failures += status != 0;
    exit(0);
}

static atomic_int refused, handled;

static void on_signal(int signal)
{
    static _Thread_local unsigned turn;
    static const int allowed[] = { EDEADLK, EBUSY, EALREADY, EPERM, ENODATA, ETIMEDOUT, EEXIST };
    struct lapse_status status;
    int saved = errno;
    (void)signal;
    lapse_label_push("in", "handler");
    lapse_span_begin("handler");
    int results[] = { lapse_pause(), lapse_resume(), turn++ % 8 ? 0 : lapse_flush(),
                      turn % 16 ? 0 : lapse_snapshot("/dev/null/none"), start(), lapse_stop(),
                      lapse_status(&status), lapse_thread_name("interrupted") };
    lapse_span_end();
    lapse_label_pop();
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        int known = !results[i] || (i == 3 && results[i] == -ENOTDIR);
        for (size_t k = 0; k < sizeof allowed / sizeof *allowed; k++)
            known |= results[i] == -allowed[k];
        failures += !known;
        refused += results[i] == -EDEADLK;
    }
    handled++;
    errno = saved;
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
    /* Until some came in the middle of an operation, and were refused. */
    for (int i = 0; i < 200 || (refused < 10 && i < 5000); i++) {
        start();
        burn_ms(1);
        lapse_pause();
        lapse_resume();
        lapse_stop();
    }
    timer_delete(timer);
    CHECK(lapse_stop(), EBUSY);
    printf("%d signals, %d operations refused\n", handled, refused);
    if (!handled || refused < 10)
        failures++;
}

/* Memory of the process in kB. Two things grow with what is met on the way, not with sessions: the table of
 * unwind rules, a mapping of 3 MiB that is never larger, and what was read of files. */
struct memory { long mappings, own, rules, files; };

static struct memory memory_now(void)
{
    enum { RULES_KB = 3072 };
    struct memory now = { 0 };
    settle();
    char line[4096];
    long size = 0, resident = 0, value;
    FILE *file = fopen("/proc/self/smaps", "r");
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "Size: %ld kB", &value) == 1) {
            size = value;
            now.mappings++;
        } else if (sscanf(line, "Rss: %ld kB", &value) == 1) {
            resident = value;
        } else if (sscanf(line, "Anonymous: %ld kB", &value) == 1) {
            *(size == RULES_KB ? &now.rules : &now.own) += value;
            now.files += resident - value;
        }
    }
    if (file)
        fclose(file);
    return now;
}

/* Memory is the same after 1,000 sessions as after 100. A page of a stack of ours may be met late: 32 kB, less
 * than 40 bytes a session. */
static void repeated(void)
{
    struct memory before = memory_now(), after;
    for (int i = 0; i < 1000; i++) {
        CHECK(start());
        lapse_label_push("turn", "any");
        if (i % 10 == 0)
            burn_ms(4);
        lapse_label_pop();
        CHECK(lapse_stop());
        char path[4200];
        snprintf(path, sizeof path, "%s.lapse", out);
        unlink(path);
        if (i == 99)
            before = memory_now();
    }
    after = memory_now();
    printf("after 100 and 1,000 sessions: %ld and %ld mappings, %ld and %ld kB, rules %ld and %ld kB, files %ld "
           "and %ld kB\n", before.mappings, after.mappings, before.own, after.own, before.rules, after.rules,
           before.files, after.files);
    failures += after.mappings != before.mappings || after.own > before.own + 32 || !before.rules;
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

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    int in = open(from, O_RDONLY), copy = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    for (ssize_t got; in >= 0 && copy >= 0 && (got = read(in, bytes, sizeof bytes)) > 0;)
        failures += write(copy, bytes, (size_t)got) != got;
    failures += in < 0 || copy < 0;
    close(in);
    close(copy);
}

/* Flushes of several threads share answers; each must find what was recorded before it in the file. Some of
 * the files are kept, under a name that says how many samples they must hold. */
static void *flush_again(void *context)
{
    char from[4200], to[4300];
    struct lapse_status status;
    snprintf(from, sizeof from, "%s.lapse", out);
    for (int i = 0; i < 100; i++) {
        burn_ms(i % 3);
        lapse_status(&status);
        CHECK(lapse_flush());
        if (!status.recorded || i % 20)
            continue;
        snprintf(to, sizeof to, "%s-%d-%d.%llu.flushed", out, (int)(intptr_t)context, i,
                 (unsigned long long)status.recorded);
        copy_file(from, to);
    }
    return thread_done();
}

static void flush(void)
{
    pthread_t threads[4];
    CHECK(start());
    burn_ms(20);
    for (intptr_t i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, flush_again, (void *)i);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    CHECK(lapse_stop());
    CHECK(lapse_flush()); /* nothing is left to write */
}

__attribute__((noinline)) static int deep(int frames)
{
    if (!frames) {
        burn_ms(400);
        return 0;
    }
    return deep(frames - 1) + 1;
}

/* No drain thread while the host keeps asking whether filters are to be had; 40 deep stacks fill the ring. */
static void *keep_single(void *context)
{
    (void)context;
    while (!ending) {
        prctl(PR_SET_SECCOMP, 2, 0L, 0L, 0L); /* a filter that is none */
        usleep(20000);
    }
    return thread_done();
}

static void full_ring(void)
{
    struct lapse_options options = { .out = out, .hz = 1000, .depth = 4096, .exports = LAPSE_EXPORT_NONE };
    struct lapse_status status;
    pthread_t thread;
    CHECK(lapse_start(&options));
    pthread_create(&thread, NULL, keep_single, NULL);
    burn_ms(20);
    for (int i = 0; i < 20; i++) /* into a ring that has room, and into one that has none */
        lapse_span_begin("span"), lapse_span_end();
    deep(5000);
    for (int i = 0; i < 3000; i++)
        lapse_span_begin("span"), lapse_span_end();
    ending = 1;
    pthread_join(thread, NULL);
    CHECK(lapse_stop());
    lapse_status(&status);
    printf("ticks %llu, recorded %llu, dropped %llu\n", (unsigned long long)status.ticks,
           (unsigned long long)status.recorded, (unsigned long long)status.dropped);
    failures += !status.recorded || !status.dropped || status.ticks != status.recorded + status.dropped;
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } cases[] = {
        { "threads", many_threads }, { "children", children }, { "handler", from_handler },
        { "repeated", repeated }, { "snapshot", snapshot }, { "flush", flush }, { "full", full_ring },
        { "atexit", at_exit },
    };
    out = argv[1];
    mallopt(M_ARENA_MAX, 1); /* the C library's, one for each thread, are not what is counted here */
    for (size_t i = 0; argc > 2 && i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(argv[2], cases[i].name))
            cases[i].run();
    return failures != 0;
}
