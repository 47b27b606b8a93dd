/* SPDX-License-Identifier: MIT */
#include "debuginfod.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <stdlib.h>
#include <unistd.h>

struct client {
    __typeof__(debuginfod_begin) *begin;
    __typeof__(debuginfod_end) *end;
    __typeof__(debuginfod_find_debuginfo) *find_debuginfo;
    __typeof__(debuginfod_set_progressfn) *set_progressfn;
    __typeof__(debuginfod_set_user_data) *set_user_data;
    __typeof__(debuginfod_get_user_data) *get_user_data;
};

static struct client client; /* filled at the first use, then constant */

static bool load(void)
{
    void *library = dlopen(DEBUGINFOD_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return false;
    *(void **)&client.begin = dlsym(library, "debuginfod_begin");
    *(void **)&client.end = dlsym(library, "debuginfod_end");
    *(void **)&client.find_debuginfo = dlsym(library, "debuginfod_find_debuginfo");
    *(void **)&client.set_progressfn = dlsym(library, "debuginfod_set_progressfn");
    *(void **)&client.set_user_data = dlsym(library, "debuginfod_set_user_data");
    *(void **)&client.get_user_data = dlsym(library, "debuginfod_get_user_data");
    return client.begin && client.end && client.find_debuginfo && client.set_progressfn
           && client.set_user_data && client.get_user_data;
}

static int report(debuginfod_client *session, long done, long total)
{
    const struct lapse_offline_options *options = client.get_user_data(session);
    options->progress(options->progress_context, "debuginfod", done > 0 ? (uint64_t)done : 0,
                      total > 0 ? (uint64_t)total : 0);
    return 0;
}

char *lapse_debuginfod_find(const struct lapse_build_id *id,
                            const struct lapse_offline_options *options)
{
    const char *urls = getenv("DEBUGINFOD_URLS");
    char *path = NULL;
    if (options->no_debuginfod || !urls || !*urls || !id->size || (!client.begin && !load()))
        return NULL;
    debuginfod_client *session = client.begin();
    if (!session)
        return NULL;
    if (options->progress) {
        client.set_user_data(session, (void *)options);
        client.set_progressfn(session, report);
    }
    int fd = client.find_debuginfo(session, id->bytes, (int)id->size, &path);
    if (fd >= 0)
        close(fd);
    client.end(session);
    return fd >= 0 ? path : NULL;
}
