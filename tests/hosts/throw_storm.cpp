// SPDX-License-Identifier: MIT
// C++ exceptions by the thousand in several threads, through many frames, while libraries come and go:
// the unwinder of the language and that of the profiler do not meet.
#include <atomic>
#include <cstdio>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>
#include <string>

static std::atomic<bool> stop;
static std::atomic<long> caught, destroyed;

struct Guard {
    ~Guard() { destroyed++; }
};

__attribute__((noinline)) static void dive(int depth)
{
    Guard guard;
    if (depth == 0)
        throw std::runtime_error(std::string("bottom"));
    dive(depth - 1);
    asm volatile("");
}

static void *throw_on(void *)
{
    long destroyed_here = 0;
    while (!stop) {
        try {
            dive(20);
        } catch (const std::runtime_error &error) {
            caught++;
            destroyed_here += 21;
        }
    }
    return reinterpret_cast<void *>(destroyed_here);
}

int main()
{
    pthread_t threads[3];
    long want = 0;
    for (pthread_t &thread : threads)
        pthread_create(&thread, nullptr, throw_on, nullptr);
    for (int i = 0; i < 60; i++) {
        void *library = dlopen("libresolv.so.2", RTLD_NOW);
        if (library)
            dlclose(library);
        timespec nap = { 0, 10000000 };
        nanosleep(&nap, nullptr);
    }
    stop = true;
    for (pthread_t &thread : threads) {
        void *result;
        pthread_join(thread, &result);
        want += reinterpret_cast<long>(result);
    }
    if (caught < 100 || destroyed != want) {
        std::printf("FAIL %ld caught, %ld destroyed of %ld\n", caught.load(), destroyed.load(), want);
        return 1;
    }
    std::puts("OK");
    return 0;
}
