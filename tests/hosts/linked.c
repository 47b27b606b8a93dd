/* SPDX-License-Identifier: MIT */
/* A program that starts and stops the profiler itself, again and again, with threads that run all the
 * time: samples in between, none after, late ticks harm nobody, its own SIGPROF action is back. */
#include "host.h"

#include <lapse.h>

static atomic_int stop, ticks;
static void on_tick(int number) { (void)number; atomic_fetch_add(&ticks, 1); }

static void *burn(void *unused)
{
    while (!atomic_load(&stop))
        host_burn_us(3000);
    return unused;
}

int main(void)
{
    struct lapse_options options = { .out = "linked-%p", .hz = 1000, .quiet = 1 };
    struct lapse_status status;
    pthread_t threads[2];
    if (host_is_profiled()) {
        /* A session runs already: it is not ours to start. */
        HOST_CHECK(lapse_start(&options) == -EALREADY, "started twice");
        host_burn_us(20000);
        return host_end();
    }
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, burn, NULL);
    signal(SIGPROF, on_tick);
    for (int round = 0; round < 4; round++) {
        int result = lapse_start(&options);
        HOST_CHECK(result == 0, "start: %d", result);
        HOST_CHECK(lapse_start(&options) == -EALREADY, "started twice");
        HOST_CHECK(lapse_pause() == 0 && lapse_resume() == 0, "pause");
        host_burn_us(60000);
        usleep(60000);
        HOST_CHECK(lapse_status(&status) == 0 && status.running && status.recorded > 0,
                   "round %d: recorded %lu of %lu", round, status.recorded, status.ticks);
        HOST_CHECK(lapse_flush() == 0, "flush");
        HOST_CHECK((result = lapse_stop()) == 0, "stop: %d", result);
        host_burn_us(20000);
        raise(SIGPROF);
        HOST_CHECK(ticks == round + 1, "%d own ticks", ticks);
    }
    HOST_CHECK(lapse_pause() == -EPERM, "pause without a session");
    atomic_store(&stop, 1);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    char command[128];
    snprintf(command, sizeof command, "test $(ls linked-%d*.folded | wc -l) = 4", (int)getpid());
    HOST_CHECK(system(command) == 0, "four folded files");
    return host_end();
}
