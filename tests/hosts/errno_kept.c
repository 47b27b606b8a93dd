/* SPDX-License-Identifier: MIT */
/* errno, the rounding mode and vector registers do not change under running code. */
#include "host.h"

#include <xmmintrin.h>

static int look(double seed)
{
    double a = seed, b = seed + 1, c = seed + 2, d = seed + 3;
    for (int i = 0; i < 20000; i++) {
        a = a * 0.5 + b;
        b = b * 0.25 + c;
        c = c * 0.125 + d;
        d = d * 0.0625 + 1;
    }
    return a > 0 && b > 0 && c > 0 && d > 1 && d < 2;
}

int main(void)
{
    _MM_SET_ROUNDING_MODE(_MM_ROUND_UP);
    int64_t end = host_clock_us(CLOCK_THREAD_CPUTIME_ID) + 300000;
    int code = 0;
    while (host_clock_us(CLOCK_THREAD_CPUTIME_ID) < end) {
        errno = ++code;
        HOST_CHECK(look(code), "numbers changed");
        HOST_CHECK(errno == code, "errno changed from %d to %d", code, errno);
        HOST_CHECK(_MM_GET_ROUNDING_MODE() == _MM_ROUND_UP, "rounding mode changed");
    }
    return host_end();
}
