/* SPDX-License-Identifier: MIT */
/* A recursion 100,000 deep that goes up and down while it is sampled: right result, and time that is
 * still the program's. */
#include "host.h"

#include <sys/resource.h>

__attribute__((noinline)) static unsigned climb(unsigned depth, volatile unsigned *work)
{
    *work = *work * 1664525u + 1013904223u;
    if (depth == 0) {
        host_burn_us(3000);
        return 1;
    }
    unsigned below = climb(depth - 1, work);
    return below + (*work != 0 ? 1 : 1);
}

static void *climb_here(void *unused)
{
    volatile unsigned work = 3;
    for (int i = 0; i < 60; i++)
        HOST_CHECK(climb(100000, &work) == 100001, "depth");
    return unused;
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64u << 20);
    HOST_CHECK(pthread_create(&thread, &attributes, climb_here, NULL) == 0, "create");
    pthread_join(thread, NULL);
    return host_end();
}
