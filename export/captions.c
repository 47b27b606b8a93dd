/* SPDX-License-Identifier: MIT */
/* See captions.h. */
#include "captions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "index.h"

#define BEYOND_KERNEL_IDS 4194305u /* PID_MAX_LIMIT is 2^22 */

void lapse_caption_title(char *to, size_t size, const struct lapse_profile *profile,
                         const struct lapse_export_options *options)
{
    if (options->title || !profile->process_count) {
        snprintf(to, size, "%s", options->title ? options->title : "profile");
        return;
    }
    size_t used = (size_t)snprintf(to, size, "%s", profile->processes[0].name);
    for (uint32_t i = 1; i < profile->process_count && used < size; i++) {
        bool known = false;
        for (uint32_t j = 0; j < i && !known && i < 64; j++)
            known = !strcmp(profile->processes[i].name, profile->processes[j].name);
        if (!known && i < 64)
            used += (size_t)snprintf(to + used, size - used, ", %s", profile->processes[i].name);
    }
}

const char *lapse_caption_thread(const struct lapse_profile *profile, uint32_t thread)
{
    const struct lapse_profile_thread *t = &profile->threads[thread];
    const char *name = *t->name ? t->name : profile->processes[t->process].name;
    return *name ? name : "thread";
}

const char *lapse_module_name(const struct lapse_profile_module *module)
{
    const char *slash = strrchr(module->path, '/');
    return slash && slash[1] ? slash + 1 : module->path;
}

uint64_t lapse_profile_zero(const struct lapse_profile *profile)
{
    uint64_t zero = profile->has_times ? profile->first_ns : 0;
    for (uint32_t i = 0; i < profile->process_count; i++)
        if (profile->processes[i].start_ns && profile->processes[i].start_ns < zero)
            zero = profile->processes[i].start_ns;
    return zero;
}

uint64_t lapse_profile_zero_utc(const struct lapse_profile *profile)
{
    uint64_t zero = lapse_profile_zero(profile);
    for (uint32_t i = 0; i < profile->process_count; i++) {
        const struct lapse_profile_process *process = &profile->processes[i];
        uint64_t since = process->start_ns > zero ? process->start_ns - zero : 0;
        if (process->start_realtime_ns > since)
            return process->start_realtime_ns - since;
    }
    return 0;
}

uint64_t lapse_profile_end(const struct lapse_profile *profile)
{
    uint64_t end = profile->last_ns;
    for (uint32_t i = 0; i < profile->process_count; i++)
        if (profile->processes[i].end_ns > end)
            end = profile->processes[i].end_ns;
    return end;
}

/* The number itself when it is free, else the next one beyond the kernel's. */
static int take_id(struct lapse_map *taken, uint32_t *next, uint32_t wanted, uint32_t *id)
{
    uint32_t owner;
    *id = wanted;
    if (!wanted || lapse_map_get(taken, wanted, &owner))
        *id = (*next)++;
    return lapse_map_put(taken, *id, 1);
}

int lapse_ids_init(struct lapse_ids *ids, const struct lapse_profile *profile)
{
    struct lapse_map pids = { 0 }, tids = { 0 };
    uint32_t next_pid = BEYOND_KERNEL_IDS, next_tid = BEYOND_KERNEL_IDS;
    ids->processes = calloc(profile->process_count + 1u, sizeof *ids->processes);
    ids->threads = calloc(profile->thread_count + 1u, sizeof *ids->threads);
    int error = ids->processes && ids->threads ? 0 : -ENOMEM;
    for (uint32_t i = 0; !error && i < profile->process_count; i++)
        error = take_id(&pids, &next_pid, profile->processes[i].pid, &ids->processes[i]);
    for (uint32_t i = 0; !error && i < profile->thread_count; i++)
        error = take_id(&tids, &next_tid, profile->threads[i].tid, &ids->threads[i]);
    lapse_map_free(&pids);
    lapse_map_free(&tids);
    if (error)
        lapse_ids_fini(ids);
    return error;
}

void lapse_ids_fini(struct lapse_ids *ids)
{
    free(ids->processes);
    free(ids->threads);
    *ids = (struct lapse_ids){ 0 };
}

/* Functions of the C library that do little but enter the kernel. */
static bool enters_kernel(const char *name)
{
    static const char *const names[] = {
        "accept", "accept4", "brk", "clock_nanosleep", "clone", "close", "connect", "epoll_pwait",
        "epoll_wait", "fdatasync", "fstat64", "fsync", "ftruncate64", "futex", "getdents64",
        "ioctl", "kill", "lll_lock_wait", "lseek64", "madvise", "mmap", "mmap64", "mprotect",
        "mremap", "munmap", "nanosleep", "open", "open64", "openat", "openat64", "poll", "ppoll",
        "pread64", "pwrite64", "read", "readv", "recv", "recvfrom", "recvmsg", "sched_yield",
        "select", "send", "sendfile64", "sendmsg", "sendto", "stat64", "syscall", "unlink",
        "vfork", "wait4", "write", "writev",
    };
    if (!strncmp(name, "__GI_", 5))
        name += 5;
    while (*name == '_')
        name++;
    if (!strncmp(name, "libc_", 5))
        name += 5;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

static bool is_c_library(const char *module)
{
    static const char *const names[] = {
        "libc.so", "libc-", "ld-linux", "ld-musl", "libpthread", "libm.so", "libm-", "[vdso]",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strncmp(module, names[i], strlen(names[i])))
            return true;
    return false;
}

enum lapse_code_kind lapse_code_kind(const struct lapse_profile *profile, uint32_t function)
{
    const struct lapse_profile_function *f = &profile->functions[function];
    const char *module = f->module == LAPSE_NONE ? "" : lapse_module_name(&profile->modules[f->module]);
    if (f->flags & LAPSE_FUNCTION_PSEUDO)
        return LAPSE_CODE_PSEUDO;
    if (f->flags & LAPSE_FUNCTION_JIT)
        return LAPSE_CODE_JIT;
    if (is_c_library(module))
        return enters_kernel(f->name) ? LAPSE_CODE_KERNEL_ENTRY : LAPSE_CODE_LIBC;
    return strstr(module, ".so") ? LAPSE_CODE_LIBRARY : LAPSE_CODE_USER;
}

void lapse_each_loss(const struct lapse_profile *profile, void *context,
                     void (*each)(void *context, const char *name, uint64_t value))
{
    const struct lapse_counters *c = &profile->counters;
    const struct { const char *name; uint64_t value; } losses[] = {
        { "dropped: ring full", c->dropped_ring_full },
        { "cut: code being resolved", c->dropped_gate_closed },
        { "dropped spans", c->dropped_spans },
        { "lost: not written", c->lost_samples },
        { "merged ticks", c->merged_ticks },
        { "late ticks", c->late_ticks },
        { "truncated stacks", c->truncated },
        { "unwind failures", c->unwind_failures },
        { "guessed frames", c->guessed_frames },
        { "unsampled threads", c->unsampled_threads },
        { "unsampled ns", c->unsampled_ns },
        { "signal taken by the program", c->signal_taken },
        { "bad chunks", profile->damage.bad_chunks },
    };
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++)
        if (losses[i].value)
            each(context, losses[i].name, losses[i].value);
}

void lapse_export_failed(char *error, size_t size, const char *format, int result)
{
    if (result == -ENOTSUP)
        snprintf(error, size, "%s: the input has no times; `lapse import` makes some up", format);
    else
        snprintf(error, size, "%s: %s", format, strerror(-result));
}
