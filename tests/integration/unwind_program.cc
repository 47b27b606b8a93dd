// SPDX-License-Identifier: MIT
// Burns time in every shape of frame that compilers make, for unwind_probe.c: small and large frames,
// alloca, variable-length arrays, realigned stacks, exceptions, tail calls, callbacks from libraries,
// handlers on the alternate stack, the vDSO.
// usage: unwind_program MILLISECONDS
#include <alloca.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <stdexcept>
#include <string>
#include <vector>

static volatile uint64_t sink;

#define NOINLINE __attribute__((noinline, noclone))

NOINLINE static uint64_t burn(uint64_t n)
{
    uint64_t x = n;
    for (uint64_t i = 0; i < 400 + n % 7; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    sink = sink + x;
    return x;
}

NOINLINE static uint64_t with_alloca(unsigned n)
{
    char *room = static_cast<char *>(alloca(n % 512 + 16));
    memset(room, static_cast<int>(n), n % 512 + 16);
    uint64_t x = burn(static_cast<unsigned char>(room[n % 16]));
    return x + static_cast<unsigned char>(room[3]);
}

NOINLINE static uint64_t with_array(unsigned n)
{
    char room[n % 300 + 8];
    room[0] = static_cast<char>(burn(n));
    return static_cast<uint64_t>(room[0]) + with_alloca(n);
}

NOINLINE static void fill(float *values, unsigned n)
{
    for (unsigned i = 0; i < 64; i++)
        values[i] = static_cast<float>(i * n);
    burn(n);
}

NOINLINE static uint64_t realigned(unsigned n, unsigned a, unsigned b, unsigned c, unsigned d,
                                   unsigned e, unsigned f, unsigned g)
{
    alignas(64) float values[64];
    fill(values, n);
    float sum = 0;
    for (float value : values)
        sum += value * static_cast<float>(a + b + c + d + e + f + g);
    return static_cast<uint64_t>(sum) + with_array(n);
}

NOINLINE static uint64_t large_frame(unsigned n)
{
    volatile char room[100000];
    room[n % 100000] = static_cast<char>(n);
    uint64_t x = realigned(n, 1, 2, 3, 4, 5, 6, 7);
    return x + static_cast<uint64_t>(room[n % 100000]);
}

NOINLINE static uint64_t tail(unsigned n)
{
    return n & 1 ? burn(n) : with_array(n);
}

struct guard {
    unsigned n;
    ~guard() { burn(n); }
};

NOINLINE static void throws(unsigned depth)
{
    guard at_exit{ depth };
    if (!depth)
        throw std::runtime_error("far enough");
    throws(depth - 1);
    burn(depth);
}

NOINLINE static uint64_t catches(unsigned n)
{
    try {
        throws(n % 12);
    } catch (const std::exception &error) {
        return burn(strlen(error.what()));
    }
    return 0;
}

static int by_value(const void *a, const void *b)
{
    sink = sink + 1;
    burn(1);
    return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

NOINLINE static uint64_t sorts(unsigned n)
{
    int values[40];
    for (int i = 0; i < 40; i++)
        values[i] = static_cast<int>((n * 7919u + static_cast<unsigned>(i) * 104729u) % 1000);
    qsort(values, 40, sizeof *values, by_value);
    return static_cast<uint64_t>(values[0]);
}

NOINLINE static uint64_t strings(unsigned n)
{
    std::vector<std::string> list;
    for (unsigned i = 0; i < 20; i++)
        list.push_back(std::to_string(i * n) + "some more text that does not fit inside");
    return list[n % 20].size();
}

NOINLINE static uint64_t clocks(unsigned n)
{
    struct timespec time;
    for (unsigned i = 0; i < 100; i++)
        clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<uint64_t>(time.tv_nsec) + n;
}

static void on_signal(int)
{
    for (unsigned i = 0; i < 20; i++)
        large_frame(i);
}

NOINLINE static uint64_t recurse(unsigned depth, unsigned n)
{
    if (!depth)
        return large_frame(n) + tail(n);
    return recurse(depth - 1, n) + burn(depth) % 3;
}

int main(int argc, char **argv)
{
    static char alternate[1 << 18];
    stack_t stack = {};
    stack.ss_sp = alternate;
    stack.ss_size = sizeof alternate;
    sigaltstack(&stack, nullptr);
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, nullptr);
    double limit = (argc > 1 ? atof(argv[1]) : 1000) / 1000;
    for (unsigned n = 0; static_cast<double>(clock()) / CLOCKS_PER_SEC < limit; n++) {
        recurse(n % 40, n);
        catches(n);
        sorts(n);
        strings(n);
        clocks(n);
        if (n % 4 == 0)
            raise(SIGUSR1);
    }
    printf("%d\n", sink != 0);
    return 0;
}
