/* SPDX-License-Identifier: MIT */
/* The public functions of lapse.h. Context: host threads, outside the handler. */
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include "control.h"
#include "drain.h"
#include "lapse.h"
#include "message.h"
#include "session.h"
#include "state.h"

extern char **environ;

int lapse_start_settings(const struct lapse_options *options, char *const *environment, uint64_t from_ns);

int lapse_start_settings(const struct lapse_options *options, char *const *environment, uint64_t from_ns)
{
    static struct lapse_settings settings; /* large, so not on a host's stack; the owner's of control.h */
    char line[512] = "";
    struct lapse_text error = { line, 0, sizeof line };
    if (getauxval(AT_SECURE)) {
        lapse_session_disable();
        return -EPERM;
    }
    int result = lapse_control_begin();
    if (result)
        return result;
    result = lapse_options_read(&settings, options, environment, &error);
    lapse_message_configure(settings.quiet, settings.verbose);
    if (!result)
        result = lapse_session_start(&settings, from_ns, &error);
    if (result && line[0])
        lapse_message(result == -EINVAL ? LAPSE_MESSAGE_OPTION : LAPSE_MESSAGE_SETUP, line,
                      "; this process is not profiled", NULL, NULL);
    lapse_control_end();
    return result;
}

LAPSE_API int lapse_start(const struct lapse_options *options)
{
    return lapse_start_settings(options, options && options->use_environment ? environ : NULL, ~UINT64_C(0));
}

LAPSE_API int lapse_stop(void)
{
    if (lapse_session_state() == LAPSE_STATE_DISABLED)
        return 0;
    return lapse_session_stop();
}

LAPSE_API int lapse_pause(void)
{
    return lapse_session_pause(true);
}

LAPSE_API int lapse_resume(void)
{
    return lapse_session_pause(false);
}

LAPSE_API int lapse_flush(void)
{
    return lapse_session_flush();
}

LAPSE_API int lapse_snapshot(const char *path)
{
    return lapse_session_snapshot(path);
}

LAPSE_API int lapse_status(struct lapse_status *status)
{
    struct lapse_slot_totals totals;
    enum lapse_state state = lapse_session_state();
    memset(status, 0, sizeof *status);
    lapse_slots_totals(&totals);
    status->running = state == LAPSE_STATE_RUNNING;
    status->paused = state == LAPSE_STATE_PAUSED;
    status->ticks = totals.ticks;
    status->merged_ticks = totals.merged;
    status->recorded = totals.recorded;
    status->dropped = totals.dropped_full;
    status->truncated = totals.truncated;
    status->unwind_failures = totals.failures;
    status->guessed_frames = totals.guessed;
    status->unsampled_threads = atomic_load_explicit(&lapse_runtime.unsampled_threads, memory_order_relaxed);
    status->late_ticks = totals.late;
    status->write_errors = atomic_load_explicit(&lapse_drain.write_errors, memory_order_relaxed);
    status->threads = atomic_load_explicit(&lapse_slots.next_thread, memory_order_relaxed);
    status->weight_ns = totals.weight;
    return 0;
}

LAPSE_API const char *lapse_version(void)
{
    return LAPSE_VERSION;
}
