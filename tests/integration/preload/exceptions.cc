// SPDX-License-Identifier: MIT
// Host: templates and exceptions, for argv[1] seconds of CPU time.
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>

template <int N> struct Tower {
    static int climb(int x)
    {
        if (x % 97 == 0)
            throw std::runtime_error("too high");
        return Tower<N - 1>::climb(x * 3 + 1) + 1;
    }
};
template <> struct Tower<0> {
    static int climb(int x) { return x; }
};

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? std::atof(argv[1]) : 1;
    volatile int sum = 0;
    for (int i = 1; std::clock() < seconds * CLOCKS_PER_SEC; i++)
        for (int k = 0; k < 1000; k++)
            try {
                sum = sum + Tower<12>::climb(i + k);
            } catch (const std::exception &error) {
                sum = sum + static_cast<int>(std::string(error.what()).size());
            }
    return 0;
}
