/* SPDX-License-Identifier: MIT */
/* Entry of liblapse.so as a preloaded library: a constructor starts a session (session.c ends it).
 * A library that was merely linked does nothing: no timer, thread, descriptor or handler. */
#include <stdbool.h>
#include <string.h>

#include "options.h"
#include "session.h"
#include "state.h"
#include "sys.h"

extern char **environ;

int lapse_start_settings(const struct lapse_options *options, char *const *environment, uint64_t from_ns);

/* LD_PRELOAD lists a file called liblapse.so*. */
static bool is_preloaded(void)
{
    const char *list = lapse_environment_get(environ, "LD_PRELOAD");
    while (list && (list = strstr(list, "liblapse.so"))) {
        if (list[-1] == '/' || list[-1] == '=' || list[-1] == ':' || list[-1] == ' ')
            return true;
        list++;
    }
    return false;
}

__attribute__((constructor)) static void at_load(void)
{
    if (!is_preloaded())
        return;
    lapse_runtime.preloaded = true;
    lapse_runtime.loaded_realtime_ns = lapse_sys_clock(CLOCK_REALTIME);
    /* From the first instruction of the process: what it used before us is due as well. */
    lapse_start_settings(NULL, environ, 0);
}
