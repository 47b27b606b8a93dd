/* SPDX-License-Identifier: MIT */
/* Finding and keeping the files (record_jit.h); record_jit_names.c writes what they say. Each spool has
 * a pid in its name, as its own process sees it; the process is found under that number or, in another
 * pid namespace, by its NSpid line, and is known by the folder of the spools in its environment. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "index.h"
#include "record_jit.h"
#include "record_jit_names.h"

#define LOOK_NS 100000000L
#define FILES_MAX 256u   /* descriptors that are kept at most */
#define MAPS_BYTES (1u << 20)
#define ENVIRONMENT_BYTES (1u << 20)

struct watched {
    char *name;             /* of the spool */
    uint32_t pid, host_pid; /* in its namespace, in ours (0: not found) */
    uint32_t looks;
    enum { NEW, SOUGHT, LIVING, GONE } state;
    bool twice;             /* two processes may be it */
    int map, dump;          /* -1: none yet */
};

struct lapse_record_jit {
    const struct lapse_record_place *place;
    struct watched *watched;
    uint32_t count, files;
    struct timespec start;
    time_t sought;
    pthread_t thread;
    pthread_mutex_t lock; /* guards `stopping` */
    pthread_cond_t wake;
    bool stopping;
};

/* A plain file of that process's user, of root or of ours; perhaps through its own root. */
static int open_file(const struct lapse_record_jit *jit, const char *path, uid_t user)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    bool good = !fstat(fd, &status) && S_ISREG(status.st_mode) &&
                (status.st_uid == user || !status.st_uid || status.st_uid == geteuid()) &&
                status.st_mtim.tv_sec >= jit->start.tv_sec; /* else of an earlier process of that number */
    if (good)
        return fd;
    close(fd);
    return -1;
}

/* A file of /proc up to `size` bytes, zero at its end; NULL when it cannot be read. */
static char *read_proc(uint32_t pid, const char *name, size_t size, size_t *length)
{
    char path[64], *bytes = malloc(size + 1);
    snprintf(path, sizeof path, "/proc/%u/%s", pid, name);
    int fd = bytes ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    size_t done = 0;
    for (ssize_t got = 1; fd >= 0 && got > 0 && done < size; done += got > 0 ? (size_t)got : 0)
        got = read(fd, bytes + done, size - done);
    if (fd < 0) {
        free(bytes);
        return NULL;
    }
    close(fd);
    bytes[done] = 0;
    *length = done;
    return bytes;
}

/* Was it started by this run? */
static bool is_ours(const struct lapse_record_jit *jit, uint32_t host_pid)
{
    size_t length = 0;
    char *environment = read_proc(host_pid, "environ", ENVIRONMENT_BYTES, &length);
    const char *folder = strrchr(jit->place->spools, '/'); /* the part of it that nothing else is called */
    bool found = environment && memmem(environment, length, folder, strlen(folder));
    free(environment);
    return found;
}

/* Its number in its own pid namespace: the last of the NSpid line. */
static uint32_t own_pid(uint32_t host_pid)
{
    size_t length = 0;
    char *status = read_proc(host_pid, "status", 8192, &length);
    const char *line = status ? strstr(status, "\nNSpid:") : NULL;
    uint32_t pid = 0;
    for (const char *at = line ? line + 7 : ""; *at && *at != '\n';) {
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        if (end == at)
            break;
        pid = (uint32_t)number;
        at = end + strspn(end, "\t ");
    }
    free(status);
    return pid;
}

/* Processes whose own number is another than ours for them: those of pid namespaces. What is found in no
 * way, or in two, is left alone. */
static void find_others(struct lapse_record_jit *jit)
{
    DIR *folder = opendir("/proc");
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        uint32_t host_pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        uint32_t pid = host_pid ? own_pid(host_pid) : 0;
        for (uint32_t i = 0; pid && pid != host_pid && i < jit->count; i++) {
            struct watched *watched = &jit->watched[i];
            if (watched->state == SOUGHT && watched->pid == pid && is_ours(jit, host_pid)) {
                watched->twice = watched->host_pid != 0;
                watched->host_pid = host_pid;
            }
        }
    }
    if (folder)
        closedir(folder);
    for (uint32_t i = 0; i < jit->count; i++)
        if (jit->watched[i].state == SOUGHT)
            jit->watched[i].state = jit->watched[i].host_pid && !jit->watched[i].twice ? LIVING : GONE;
}

static void find(struct lapse_record_jit *jit)
{
    bool sought = false;
    time_t now = time(NULL);
    for (uint32_t i = 0; i < jit->count; i++) {
        struct watched *watched = &jit->watched[i];
        if (watched->state == NEW && own_pid(watched->pid) == watched->pid && is_ours(jit, watched->pid)) {
            watched->host_pid = watched->pid;
            watched->state = LIVING;
        } else if (watched->state == NEW) {
            watched->state = SOUGHT;
        }
        sought |= watched->state == SOUGHT;
    }
    if (sought && now != jit->sought) { /* a look at all processes is dear: once a second */
        jit->sought = now;
        find_others(jit);
    }
}

/* A writer of jitdump maps its file executable once, so that it is seen in the maps. */
static int open_mapped_dump(const struct lapse_record_jit *jit, const struct watched *watched, uid_t user)
{
    char end[40], path[PATH_MAX];
    size_t length = 0;
    int fd = -1;
    char *maps = read_proc(watched->host_pid, "maps", MAPS_BYTES, &length);
    snprintf(end, sizeof end, "/jit-%u.dump\n", watched->pid);
    char *found = maps ? strstr(maps, end) : NULL;
    if (found) {
        char *line = memrchr(maps, '\n', (size_t)(found - maps));
        char *slash = strchr(line ? line : maps, '/');
        int size = (int)(found - slash) + (int)strlen(end) - 1;
        if (slash <= found &&
            snprintf(path, sizeof path, "/proc/%u/root%.*s", watched->host_pid, size, slash) < PATH_MAX)
            fd = open_file(jit, path, user);
    }
    free(maps);
    return fd;
}

static int open_in(const struct lapse_record_jit *jit, const struct watched *watched, uid_t user,
                   const char *folder, const char *form)
{
    char path[96];
    int size = snprintf(path, sizeof path, "/proc/%u/%s", watched->host_pid, folder);
    snprintf(path + size, sizeof path - (size_t)size, form, watched->pid);
    return open_file(jit, path, user);
}

static void look_at(struct lapse_record_jit *jit, struct watched *watched)
{
    struct stat status;
    char path[32];
    uint32_t look = watched->looks++;
    snprintf(path, sizeof path, "/proc/%u", watched->host_pid);
    if (stat(path, &status)) {
        watched->state = GONE;
        return;
    }
    if (watched->map < 0 && jit->files < FILES_MAX) {
        watched->map = open_in(jit, watched, status.st_uid, "root/tmp/", "perf-%u.map");
        jit->files += watched->map >= 0;
    }
    if (watched->dump >= 0 || jit->files >= FILES_MAX)
        return;
    watched->dump = open_in(jit, watched, status.st_uid, "cwd/", "jit-%u.dump");
    if (watched->dump < 0)
        watched->dump = open_in(jit, watched, status.st_uid, "root/tmp/", "jit-%u.dump");
    if (watched->dump < 0 && !(look & (look - 1))) /* ever more rarely: maps can be long */
        watched->dump = open_mapped_dump(jit, watched, status.st_uid);
    jit->files += watched->dump >= 0;
}

static void add_spool(struct lapse_record_jit *jit, const char *name)
{
    const char *dash = strrchr(name, '-');
    char *end = NULL, *copy;
    unsigned long pid = dash ? strtoul(dash + 1, &end, 10) : 0;
    if (!pid || !end || *end != '.')
        return;
    for (uint32_t i = 0; i < jit->count; i++)
        if (!strcmp(jit->watched[i].name, name))
            return;
    struct watched *watched = lapse_array_grow(jit->watched, jit->count, sizeof *watched);
    if (watched)
        jit->watched = watched;
    if (watched && (copy = strdup(name)))
        watched[jit->count++] = (struct watched){ .name = copy, .pid = (uint32_t)pid, .map = -1, .dump = -1 };
}

static void look(struct lapse_record_jit *jit)
{
    static const char suffix[] = ".lapse";
    DIR *folder = opendir(jit->place->spools);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        size_t size = strlen(entry->d_name);
        if (size > sizeof suffix && !strcmp(entry->d_name + size - sizeof suffix + 1, suffix))
            add_spool(jit, entry->d_name);
    }
    if (folder)
        closedir(folder);
    find(jit);
    for (uint32_t i = 0; i < jit->count; i++)
        if (jit->watched[i].state == LIVING && (jit->watched[i].map < 0 || jit->watched[i].dump < 0))
            look_at(jit, &jit->watched[i]);
}

static void *watch(void *context)
{
    struct lapse_record_jit *jit = context;
    pthread_mutex_lock(&jit->lock);
    while (!jit->stopping) {
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += LOOK_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&jit->wake, &jit->lock, &until);
        pthread_mutex_unlock(&jit->lock);
        look(jit);
        pthread_mutex_lock(&jit->lock);
    }
    pthread_mutex_unlock(&jit->lock);
    return NULL;
}

struct lapse_record_jit *lapse_record_jit_start(const struct lapse_record_place *place)
{
    struct lapse_record_jit *jit = calloc(1, sizeof *jit);
    pthread_condattr_t attributes;
    sigset_t all, before;
    if (!jit)
        return NULL;
    jit->place = place;
    clock_gettime(CLOCK_REALTIME, &jit->start);
    pthread_mutex_init(&jit->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&jit->wake, &attributes);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the main thread's */
    int error = pthread_create(&jit->thread, NULL, watch, jit);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!error)
        return jit;
    free(jit);
    return NULL;
}

void lapse_record_jit_stop(struct lapse_record_jit *jit)
{
    if (!jit)
        return;
    pthread_mutex_lock(&jit->lock);
    jit->stopping = true;
    pthread_cond_signal(&jit->wake);
    pthread_mutex_unlock(&jit->lock);
    pthread_join(jit->thread, NULL);
}

/* What nobody saw while the process lived may still lie in our own /tmp. */
static void look_afterwards(struct lapse_record_jit *jit, struct watched *watched)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/%u", watched->pid);
    if (jit->files >= FILES_MAX || !stat(path, &status)) /* the number is somebody's */
        return;
    snprintf(path, sizeof path, "/tmp/perf-%u.map", watched->pid);
    if (watched->map < 0)
        watched->map = open_file(jit, path, geteuid());
    snprintf(path, sizeof path, "/tmp/jit-%u.dump", watched->pid);
    if (watched->dump < 0)
        watched->dump = open_file(jit, path, geteuid());
}

void lapse_record_jit_write(struct lapse_record_jit *jit)
{
    char path[2 * PATH_MAX];
    for (uint32_t i = 0; jit && i < jit->count; i++) {
        struct watched *watched = &jit->watched[i];
        snprintf(path, sizeof path, "/proc/%u", watched->host_pid);
        if (watched->host_pid && !access(path, F_OK))
            continue; /* it lives on, and its spool is its own */
        look_afterwards(jit, watched);
        snprintf(path, sizeof path, "%s/%s", jit->place->spools, watched->name);
        if (watched->map >= 0 || watched->dump >= 0)
            lapse_record_jit_names(path, watched->map, watched->dump);
        if (watched->map >= 0)
            close(watched->map);
        if (watched->dump >= 0)
            close(watched->dump);
        watched->map = watched->dump = -1;
    }
}

void lapse_record_jit_free(struct lapse_record_jit *jit)
{
    if (!jit)
        return;
    for (uint32_t i = 0; i < jit->count; i++) {
        if (jit->watched[i].map >= 0)
            close(jit->watched[i].map);
        if (jit->watched[i].dump >= 0)
            close(jit->watched[i].dump);
        free(jit->watched[i].name);
    }
    free(jit->watched);
    pthread_cond_destroy(&jit->wake);
    pthread_mutex_destroy(&jit->lock);
    free(jit);
}
