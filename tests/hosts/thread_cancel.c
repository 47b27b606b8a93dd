/* SPDX-License-Identifier: MIT */
/* Cancellation: deferred in a sleep, asynchronous in running code, refused for a while; clean-up runs
 * once, and the result says that the thread was cancelled. */
#include "host.h"

static atomic_int cleaned;
static void clean(void *unused) { (void)unused; atomic_fetch_add(&cleaned, 1); }

static void *sleeper(void *unused)
{
    pthread_cleanup_push(clean, NULL);
    for (;;) {
        host_burn_us(300);
        usleep(1000);
    }
    pthread_cleanup_pop(0);
    return unused;
}

static void *runner(void *started)
{
    pthread_cleanup_push(clean, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    atomic_store((atomic_int *)started, 1);
    for (volatile unsigned spin = 0;; spin++)
        ;
    pthread_cleanup_pop(0);
    return NULL;
}

static void *refuser(void *started)
{
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    atomic_store((atomic_int *)started, 1);
    host_burn_us(4000);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    pthread_cleanup_push(clean, NULL);
    for (;;)
        pthread_testcancel();
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel(void *(*function)(void *), int64_t after_us)
{
    atomic_int started = 0;
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, function, &started);
    while (function != sleeper && !atomic_load(&started))
        sched_yield();
    host_burn_us(after_us);
    pthread_cancel(thread);
    pthread_join(thread, &result);
    HOST_CHECK(result == PTHREAD_CANCELED, "not cancelled");
}

int main(void)
{
    for (int i = 0; i < 40; i++) {
        cancel(sleeper, 700);
        cancel(runner, 1000 + i * 37);
        cancel(refuser, 300);
    }
    HOST_CHECK(cleaned == 120, "cleaned up %d times", cleaned);
    return host_end();
}
