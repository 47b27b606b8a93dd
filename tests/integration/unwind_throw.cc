// SPDX-License-Identifier: MIT
// An exception for unwind_stepping.c: thrown some frames down, caught in a function with a large frame, so
// that a walk which takes another frame for that one finds its zeros.
#include <stdexcept>

extern "C" void throw_and_catch(void (*begin)(void), void (*end)(void));

__attribute__((noinline)) static int climb(int depth)
{
    if (!depth)
        throw std::runtime_error("too high");
    return climb(depth - 1) + 1;
}

void throw_and_catch(void (*begin)(void), void (*end)(void))
{
    volatile char room[1024] = {};
    begin();
    try {
        climb(6 + room[7]);
    } catch (const std::exception &) {
    }
    end();
}
