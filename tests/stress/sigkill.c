/* SPDX-License-Identifier: MIT */
/* A profiled process is killed at random moments: what is lost?
 *   sigkill LIBRARY LAPSE KILLS [SEED]
 * As under `lapse record`, with the ring in a file: after `lapse recover FOLDER` the recording holds
 * every sample that the ring counted, none twice; half of these hosts are about to end by themselves, and write
 * into the spool that short processes share. As under the preload alone: the spool is readable
 * and lacks no more than one drain interval of CPU time. Exit 0, 1. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "recording.h"
#include "ring.h"

#define THREADS 3
#define KILL_WITHIN_US 300000       /* record: short, so that many fall into the first turns */
#define KILL_WITHIN_US_ALONE 1800000
#define INTERVAL_S 0.25             /* the longest drain interval */
#define TOLERANCE_S 0.1             /* start-up, late ticks, the interval's own lateness under load */
#define NOT_SAMPLED 3               /* enum Pseudo of docs/lapse.proto */

static volatile unsigned long sink;

__attribute__((noinline)) static void deep(unsigned depth)
{
    if (depth)
        deep(depth - 1);
    else
        for (unsigned i = 0; i < 20000; i++)
            sink += i;
    sink++;
}

static void *burn(void *argument)
{
    for (unsigned round = 0;; round++)
        deep((round * 7 + (unsigned)(size_t)argument * 13) % 60);
    return NULL;
}

static void *end_after(void *us)
{
    usleep((useconds_t)(size_t)us);
    exit(0);
}

/* The host: this program with two arguments. */
static void host(unsigned ends_us)
{
    pthread_t thread;
    if (ends_us)
        pthread_create(&thread, NULL, end_after, (void *)(size_t)ends_us);
    for (size_t i = 1; i < THREADS; i++)
        pthread_create(&thread, NULL, burn, (void *)i);
    burn(NULL);
}

static char folder[] = "/tmp/lapse-sigkill-XXXXXX", rings[] = "/tmp/lapse-sigkill-rings-XXXXXX";
static const char *library, *lapse;

static void empty(const char *path)
{
    DIR *directory = opendir(path);
    for (struct dirent *entry; directory && (entry = readdir(directory));)
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlinkat(dirfd(directory), entry->d_name, 0);
    if (directory)
        closedir(directory);
}

/* ends_us: 0 for a host that does not end by itself. */
static pid_t start(bool with_ring, unsigned ends_us)
{
    char out[64], ends[16];
    pid_t pid = fork();
    if (pid)
        return pid;
    snprintf(out, sizeof out, "%s/%%e-%%p", folder);
    setenv("LAPSE_OUT", out, 1);
    setenv("LAPSE_EXPORT", "none", 1);
    setenv("LAPSE_HZ", "1000", 1);
    setenv("LD_PRELOAD", library, 1);
    if (with_ring)
        setenv("LAPSE_RINGS", rings, 1);
    snprintf(out, sizeof out, "%s/short", folder);
    if (with_ring)
        setenv("LAPSE_SHARED", out, 1);
    snprintf(ends, sizeof ends, "%u", ends_us);
    execl("/proc/self/exe", "sigkill", "host", ends, NULL);
    _exit(127);
}

/* Kill it after a random time; returns the CPU time that it used. */
static double run(bool with_ring, unsigned within_us, bool ends)
{
    struct rusage usage;
    int status;
    struct timespec wait = { 0, 0 };
    uint64_t ns = (uint64_t)(drand48() * within_us) * 1000;
    wait.tv_sec = (time_t)(ns / 1000000000);
    wait.tv_nsec = (long)(ns % 1000000000);
    /* Ending takes a millisecond or so after some of starting: let the kill fall into it. */
    unsigned ends_us = ends ? 1 + (unsigned)(drand48() * 8000) : 0;
    if (ends)
        wait = (struct timespec){ 0, (long)(ends_us + (unsigned)(drand48() * 8000)) * 1000 };
    pid_t pid = start(with_ring, ends_us);
    nanosleep(&wait, NULL);
    kill(pid, SIGKILL);
    wait4(pid, &status, 0, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

struct sums { struct lapse_recording *recording; uint64_t samples, weight_ns; };

static int add(void *context, const struct lapse_recorded_sample *sample)
{
    struct sums *sums = context;
    uint32_t count;
    const struct lapse_call_node *nodes =
        lapse_call_tree_nodes(sums->recording->sessions[sample->session].tree, &count);
    sums->samples += sample->node >= count || nodes[sample->node].function != NOT_SAMPLED;
    sums->weight_ns += sample->weight_ns;
    return 0;
}

/* Returns 0 when there is no such file. */
static int read_recording(const char *path, struct sums *sums)
{
    char error[512];
    if (access(path, F_OK))
        return 0;
    if (lapse_recording_open(&sums->recording, path, error, sizeof error)) {
        printf("unreadable: %s\n", error);
        return 1;
    }
    const struct lapse_damage *damage = &sums->recording->damage;
    int failed = lapse_recording_each_sample(sums->recording, add, sums) != 0 || damage->bad_chunks ||
                 damage->skipped_bytes || damage->bad_references;
    if (failed)
        printf("damaged: %lu chunks, %lu bytes, %lu references\n", damage->bad_chunks,
               damage->skipped_bytes, damage->bad_references);
    lapse_recording_close(sums->recording);
    return failed;
}

/* The spool, if there is one. */
static int read_folder(struct sums *sums)
{
    DIR *directory = opendir(folder);
    int failed = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            failed |= read_recording(path, sums);
    }
    if (directory)
        closedir(directory);
    return failed;
}

/* What the handlers had recorded, by the ring; ~0: it had not begun. */
static uint64_t recorded_in_ring(void)
{
    struct lapse_ring_control control = { 0 };
    uint64_t recorded = ~UINT64_C(0);
    DIR *directory = opendir(rings);
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        int fd = openat(dirfd(directory), entry->d_name, O_RDONLY);
        if (fd >= 0 && read(fd, &control, sizeof control) == sizeof control &&
            control.magic == LAPSE_RING_MAGIC)
            recorded = atomic_load(&control.recorded);
        close(fd);
    }
    if (directory)
        closedir(directory);
    return recorded;
}

static int recover(void)
{
    char command[512], link[64];
    snprintf(link, sizeof link, "%s/rings", folder);
    if (symlink(rings, link))
        return 1;
    snprintf(command, sizeof command, "cd %s && timeout 60 %s recover -o %s.out %s >/dev/null 2>&1", folder,
             lapse, folder, folder);
    return system(command) == -1;
}


static uint64_t total, from_rings;

static int kill_with_ring(int number)
{
    struct sums sums = { 0 }, before = { 0 };
    char path[64];
    mkdir(folder, 0700);
    mkdir(rings, 0700);
    run(true, KILL_WITHIN_US, number % 2);
    uint64_t recorded = recorded_in_ring();
    int failed = read_folder(&before) | recover();
    snprintf(path, sizeof path, "%s.out.lapse", folder);
    failed |= read_recording(path, &sums);
    /* A handler may have been killed between its record and the count. */
    if (!failed && recorded != ~UINT64_C(0) &&
        (sums.samples < recorded || sums.samples > recorded + THREADS)) {
        printf("kill %d: %lu samples recorded, %lu in the recording\n", number, recorded, sums.samples);
        failed = 1;
    }
    total += sums.samples;
    from_rings += sums.samples - before.samples;
    for (const char *suffix = ".lapse\0.folded\0.events\0"; *suffix; suffix += strlen(suffix) + 1) {
        snprintf(path, sizeof path, "%s.out%s", folder, suffix);
        unlink(path);
    }
    empty(folder);
    empty(rings);
    return failed;
}

static int kill_alone(int number, double *worst)
{
    struct sums sums = { 0 };
    mkdir(folder, 0700);
    double cpu = run(false, KILL_WITHIN_US_ALONE, false);
    int failed = read_folder(&sums);
    double lost = cpu - (double)sums.weight_ns * 1e-9, processors = (double)sysconf(_SC_NPROCESSORS_ONLN);
    if (lost > *worst)
        *worst = lost;
    if (lost > (INTERVAL_S + TOLERANCE_S) * (processors < THREADS ? processors : THREADS)) {
        printf("kill %d: %.3f s of CPU time, %.3f s are not in the spool\n", number, cpu, lost);
        failed = 1;
    }
    empty(folder);
    return failed;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "host"))
        host((unsigned)atoi(argv[2]));
    if (argc < 4)
        return 2;
    library = argv[1];
    lapse = argv[2];
    int kills = atoi(argv[3]), failed = 0, alone = kills / 8;
    long seed = argc > 4 ? atol(argv[4]) : (long)time(NULL) ^ (long)getpid() << 16;
    double worst = 0;
    printf("seed %ld\n", seed);
    fflush(stdout);
    srand48(seed);
    if (!mkdtemp(folder) || !mkdtemp(rings))
        return 1;
    for (int i = 0; i < kills - alone; i++)
        failed += kill_with_ring(i);
    for (int i = 0; i < alone; i++)
        failed += kill_alone(i, &worst);
    rmdir(folder);
    rmdir(rings);
    printf("%d kills with the ring in a file: %lu samples, %lu of them out of rings; %d without: at most %.3f s of CPU "
           "time lost\n", kills - alone, total, from_rings, alone, worst);
    printf("%d failed\n", failed);
    return failed != 0;
}
