/* SPDX-License-Identifier: MIT */
/* For cli_killed.sh. Works long enough for the drain thread to wake rarely, then under a label, in a
 * library and in a span that are new to it, and kills itself. usage: cli-killed LIBRARY
 * With -DLATE, the library. */
#include <dlfcn.h>
#include <lapse.h>
#include <signal.h>
#include <stdint.h>
#include <time.h>

static volatile uint64_t sink;

/* Until so many more samples were recorded. */
static void burn(unsigned samples)
{
    struct lapse_status status;
    uint64_t end = 0;
    do {
        for (int i = 0; i < 20000; i++)
            sink = sink * 6364136223846793005u + 1;
        lapse_status(&status);
        end = end ? end : status.recorded + samples;
    } while (status.recorded < end);
}

#ifdef LATE
extern void work_late(unsigned samples);
__attribute__((noinline)) void work_late(unsigned samples)
{
    burn(samples);
    sink++;
}
#else
__attribute__((noinline)) static void work_early(unsigned samples)
{
    burn(samples);
    sink++;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    lapse_label_push("phase", lapse_intern("early"));
    lapse_span_begin("early span");
    work_early(100);
    lapse_span_end();
    lapse_flush();
    work_early(2); /* of known labels, in the ring alone */
    lapse_label_pop();
    void *library = dlopen(argv[1], RTLD_NOW);
    void (*work_late)(unsigned) = library ? (void (*)(unsigned))(uintptr_t)dlsym(library, "work_late") : NULL;
    if (!work_late)
        return 1;
    lapse_label_push("phase", lapse_intern("late"));
    lapse_span_begin("last span");
    work_late(1);
    lapse_span_end();
    nanosleep(&(struct timespec){ 0, 30000000 }, NULL); /* what is new must be written 10 ms after it came */
    lapse_span_begin("last span");
    work_late(2); /* in the ring alone, most often */
    lapse_span_end();
    return raise(SIGKILL);
}
#endif
