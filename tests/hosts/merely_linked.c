/* SPDX-License-Identifier: MIT */
/* Linked with lapse but never started: no handler, timer, thread, descriptor or file. */
#include "host.h"

#include <dirent.h>
#include <lapse.h>

static int entries(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    while (folder && readdir(folder))
        count++;
    closedir(folder);
    return count;
}

int main(int count, char **arguments)
{
    (void)arguments;
    if (count == 1) { /* without descriptors that somebody left open for us */
        closefrom(3);
        execl(host_self(), host_self(), "--check", (char *)NULL);
    }
    struct sigaction action;
    struct lapse_status status;
    char line[128];
    int timers = 0;
    HOST_CHECK(lapse_version()[0] != '\0', "version");
    if (host_is_profiled())
        return host_end();
    host_burn_us(50000);
    sigaction(SIGPROF, NULL, &action);
    HOST_CHECK(action.sa_handler == SIG_DFL, "a handler");
    HOST_CHECK(entries("/proc/self/task") == 3, "a thread");
    HOST_CHECK(entries("/proc/self/fd") <= 6, "a descriptor");
    FILE *file = fopen("/proc/self/timers", "r");
    while (file && fgets(line, sizeof line, file))
        timers++;
    HOST_CHECK(timers == 0, "a timer");
    HOST_CHECK(entries(".") == 2, "a file");
    HOST_CHECK(lapse_status(&status) == 0 && !status.running && status.ticks == 0, "status");
    HOST_CHECK(lapse_stop() == 0, "stop without start");
    return host_end();
}
