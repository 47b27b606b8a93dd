/* SPDX-License-Identifier: MIT */
/* A server in small: a pool of threads takes requests from a queue, each under a label and a span.
 * Afterwards `lapse report --by=request OUT.lapse` tells what each kind of request cost.
 * usage: thread_pool OUT */
#include <lapse.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { WORKERS = 4, REQUESTS = 400 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int next_request;
static volatile uint64_t sink;

static const char *const kinds[] = { "search", "checkout", "static page" };

static void spend(uint64_t steps)
{
    uint64_t state = steps | 1;
    while (steps--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    sink = state;
}

static void read_index(void) { spend(600000); }
static void rank(void) { spend(300000); }
static void charge_card(void) { spend(250000); }
static void render(void) { spend(50000); }

static void serve(int number)
{
    const char *kind = kinds[number % 3];
    lapse_label_push("request", kind);
    lapse_span_begin(kind);
    if (number % 3 == 0) {
        read_index();
        rank();
    } else if (number % 3 == 1) {
        charge_card();
    }
    render();
    lapse_span_end();
    lapse_label_pop();
}

static void *worker(void *context)
{
    char name[32];
    snprintf(name, sizeof name, "worker %d", (int)(intptr_t)context);
    lapse_thread_name(name);
    for (;;) {
        pthread_mutex_lock(&lock);
        int number = next_request < REQUESTS ? next_request++ : -1;
        pthread_mutex_unlock(&lock);
        if (number < 0)
            return NULL;
        serve(number);
    }
}

int main(int argc, char **argv)
{
    struct lapse_options options = { .out = argc > 1 ? argv[1] : NULL, .hz = 250, .exports = LAPSE_EXPORT_NONE };
    pthread_t threads[WORKERS];
    int error = lapse_start(&options);
    if (error)
        return fprintf(stderr, "thread_pool: lapse_start: %s\n", strerror(-error)), 1;
    for (intptr_t i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)i);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    error = lapse_stop();
    if (error)
        return fprintf(stderr, "thread_pool: lapse_stop: %s\n", strerror(-error)), 1;
    return 0;
}
