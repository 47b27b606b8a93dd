/* SPDX-License-Identifier: MIT */
/* Names of code that this process made at run time, from the files that its JIT compiler wrote:
 * a jitdump file, which has times and lines, else /tmp/perf-PID.map (outputs.h; export/jit_code.h reads
 * them). /tmp is everybody's and numbers of processes come again, so only a plain file of this user or of
 * root counts that has been written since this program began. Context: the drain thread at the end
 * of a session; raw system calls, memory from the arena, within the exit budget. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "maps.h"
#include "outputs.h"
#include "sort.h"
#include "state.h"
#include "symbols.h"
#include "sys.h"

#define FILE_BYTES_MAX (UINT64_C(1) << 28)
#define ITEMS_MAX (1u << 20)
#define TURNS_MAX 64u
#define SECOND UINT64_C(1000000000)
/* Clocks of files tick every 10 ms at the slowest, and so do the kernel's starts of processes. */
#define CLOCK_STEP (20 * SECOND / 1000)

struct reading {
    uint64_t deadline_ns;
    int fd;
};

static long read_file(void *context, void *to, size_t size, uint64_t offset)
{
    const struct reading *reading = context;
    long got;
    if (lapse_sys_clock(CLOCK_MONOTONIC) >= reading->deadline_ns)
        return -ETIME;
    do
        got = lapse_sys(SYS_pread64, reading->fd, to, size, offset);
    while (got == -EINTR);
    return got;
}

/* The 22nd field of /proc/self/stat: ticks of 10 ms from the machine's start to this process's. */
static bool read_start_ticks(uint64_t *ticks)
{
    char text[1024];
    long fd = lapse_sys(SYS_open, "/proc/self/stat", O_RDONLY | O_CLOEXEC);
    long size = fd < 0 ? fd : lapse_sys(SYS_read, fd, text, sizeof text - 1);
    if (fd >= 0)
        lapse_sys(SYS_close, fd);
    text[size > 0 ? size : 0] = 0;
    char *at = strrchr(text, ')'); /* a name may hold anything */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    for (*ticks = 0, at += at != NULL; at && *at >= '0' && *at <= '9'; at++)
        *ticks = *ticks * 10 + (uint64_t)(*at - '0');
    return at != NULL;
}

/* What was written before is somebody else's: an earlier process's of this number, or that of the program
 * which this process ran before an exec. */
static uint64_t began_realtime_ns(void)
{
    uint64_t ticks, began = lapse_runtime.start_realtime_ns;
    if (read_start_ticks(&ticks))
        began = lapse_sys_clock(CLOCK_REALTIME) - (lapse_sys_clock(CLOCK_BOOTTIME) - ticks * (SECOND / 100));
    if (lapse_runtime.loaded_realtime_ns > began)
        began = lapse_runtime.loaded_realtime_ns;
    return began - CLOCK_STEP;
}

static int open_names(const char *path)
{
    struct stat status;
    long fd = lapse_sys(SYS_open, path,
                        O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return (int)fd;
    if (!lapse_sys(SYS_fstat, fd, &status) && S_ISREG(status.st_mode) &&
        (!status.st_uid || status.st_uid == (uid_t)lapse_sys(SYS_geteuid)) &&
        (uint64_t)status.st_mtim.tv_sec * SECOND + (uint64_t)status.st_mtim.tv_nsec >= began_realtime_ns())
        return (int)fd;
    lapse_sys(SYS_close, fd);
    return -EACCES;
}

static int open_named(const char *before, const char *after)
{
    char path[64];
    struct lapse_text text = { path, 0, sizeof path };
    lapse_text_string(&text, before);
    lapse_text_number(&text, lapse_runtime.pid);
    lapse_text_string(&text, after);
    return open_names(path);
}

static bool is_dump(const char *path)
{
    char bytes[40];
    struct lapse_text end = { bytes, 0, sizeof bytes };
    lapse_text_string(&end, "/jit-");
    lapse_text_number(&end, lapse_runtime.pid);
    lapse_text_string(&end, ".dump");
    size_t size = strlen(path);
    return size >= end.size && !memcmp(path + size - end.size, bytes, end.size);
}

/* Its writer maps a jitdump file executable, for this purpose. Some take that back at their end. */
static int open_mapped_dump(struct lapse_store *store)
{
    struct lapse_maps_line line;
    int fd = -ENOENT;
    for (uint32_t i = 0; i < store->known_count && fd < 0; i++)
        if (is_dump(store->known[i].module.path))
            fd = open_names(store->known[i].module.path);
    struct lapse_maps *maps = fd < 0 ? lapse_arena_resize(&store->arena, NULL, 0, sizeof *maps) : NULL;
    if (maps && !lapse_maps_open(maps)) {
        while (fd < 0 && lapse_maps_next(maps, &line) > 0)
            if (is_dump(line.path))
                fd = open_names(line.path);
        lapse_maps_close(maps);
    }
    if (maps)
        lapse_arena_resize(&store->arena, maps, sizeof *maps, 0);
    return fd;
}

static int open_dump(struct lapse_store *store)
{
    int fd = open_mapped_dump(store);
    if (fd < 0)
        fd = open_named("jit-", ".dump");
    return fd < 0 ? open_named("/tmp/jit-", ".dump") : fd;
}

typedef int reader(struct lapse_jit_code *code, const struct lapse_jit_source *source);

/* One file into the table, which stays empty when the file cannot be believed. */
static int take_file(struct lapse_jit_code *code, int fd, uint64_t deadline_ns, reader *read)
{
    struct reading reading = { deadline_ns, fd };
    struct lapse_jit_source source = { read_file, &reading, FILE_BYTES_MAX };
    if (fd < 0)
        return fd;
    int result = read(code, &source);
    lapse_sys(SYS_close, fd);
    if (result)
        lapse_jit_code_free(code);
    return result;
}

static bool address_less(void *context, uint32_t a, uint32_t b)
{
    const uint64_t *addresses = context;
    return addresses[a] < addresses[b];
}

/* The addresses of the functions without a file, ascending. */
static uint64_t *collect_wanted(struct lapse_names *names, uint32_t *count)
{
    struct lapse_store *store = names->store;
    uint32_t wanted = *count = 0;
    for (uint32_t i = 0; i < names->count; i++)
        wanted += names->functions[i].run_time;
    if (!wanted)
        return NULL;
    uint64_t *addresses = lapse_arena_resize(&store->arena, NULL, 0, wanted * 2 * sizeof *addresses);
    uint32_t *order = lapse_arena_resize(&store->arena, NULL, 0, wanted * sizeof *order);
    if (addresses && order) {
        for (uint32_t i = 0; i < names->count; i++) {
            if (!names->functions[i].run_time)
                continue;
            order[*count] = *count;
            addresses[wanted + (*count)++] = lapse_function_address(names->functions[i].function);
        }
        lapse_sort(order, wanted, address_less, addresses + wanted);
        for (uint32_t i = 0; i < wanted; i++)
            addresses[i] = addresses[wanted + order[i]];
    }
    if (order)
        lapse_arena_resize(&store->arena, order, wanted * sizeof *order, 0);
    return addresses;
}

/* In text without times a function has one name: that of what stood there last. */
static void name_functions(struct lapse_names *names)
{
    struct lapse_jit_load *loads[TURNS_MAX];
    for (uint32_t i = 0; i < names->count; i++) {
        uint64_t address = lapse_function_address(names->functions[i].function);
        uint32_t count = names->functions[i].run_time
                             ? lapse_jit_code_all(&names->code, address, loads, TURNS_MAX) : 0;
        if (count)
            lapse_names_set(names, i, loads[count - 1]->name);
    }
}

int lapse_run_time_names_find(struct lapse_names *names, uint64_t deadline_ns)
{
    struct lapse_store *store = names->store;
    uint32_t count;
    uint64_t *wanted = collect_wanted(names, &count);
    if (!count)
        return 0;
    names->code = (struct lapse_jit_code){
        .allocator = &store->allocator, .wanted = wanted, .wanted_count = count, .items_max = ITEMS_MAX,
    };
    int result = take_file(&names->code, open_dump(store), deadline_ns, lapse_jit_code_read_dump);
    if (result != -ETIME && !names->code.load_count) /* what a jitdump file says is better: it has times */
        result = take_file(&names->code, open_named("/tmp/perf-", ".map"), deadline_ns,
                           lapse_jit_code_read_map);
    name_functions(names);
    return result == -ETIME ? result : 0;
}

static void write_at(struct lapse_names *names, uint64_t address)
{
    char name[LAPSE_JIT_NAME_MAX + 1];
    struct lapse_jit_load *loads[TURNS_MAX];
    struct lapse_store *store = names->store;
    uint32_t count = lapse_jit_code_all(&names->code, address, loads, TURNS_MAX);
    /* Without times the last one is right; with them each is, at its time. */
    for (uint32_t i = count && !loads[count - 1]->from_ns ? count - 1 : 0; i < count; i++) {
        if (!lapse_store_room(store))
            return;
        uint32_t size = lapse_demangle(name, sizeof name - 1, loads[i]->name, LAPSE_DEMANGLE_FULL);
        name[size] = 0;
        lapse_jit_put_symbol(&store->wire, &names->code, loads[i], address, name);
        if (count > 1)
            continue;
        /* As a pc, and as what lies before a return address: each such address is a function here. */
        lapse_jit_put_line(&store->wire, &names->code, loads[i], address, false, name);
        lapse_jit_put_line(&store->wire, &names->code, loads[i], address + 1, true, name);
    }
}

void lapse_run_time_names_write(struct lapse_names *names)
{
    if (names->store->unsent)
        return;
    for (uint32_t i = 0; i < names->code.wanted_count && names->code.load_count; i++)
        write_at(names, names->code.wanted[i]);
}

void lapse_run_time_names_free(struct lapse_names *names)
{
    struct lapse_jit_code *code = &names->code;
    if (!code->allocator)
        return;
    lapse_jit_code_free(code);
    lapse_arena_resize(&names->store->arena, (void *)code->wanted,
                       code->wanted_count * 2 * sizeof *code->wanted, 0);
}
