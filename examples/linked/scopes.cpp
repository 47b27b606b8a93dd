/* SPDX-License-Identifier: MIT */
/* Scope guards of lapse.hpp: labels and spans that end with their block, also when an exception leaves
 * it. usage: scopes OUT */
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <lapse.hpp>
#include <stdexcept>

static volatile std::uint64_t sink;

static void spend(std::uint64_t steps)
{
    std::uint64_t state = steps | 1;
    while (steps--) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    sink = state;
}

[[gnu::noinline]] static void parse(int document)
{
    lapse::span span("parse");
    spend(4000000);
    if (document % 3 == 0)
        throw std::runtime_error("not well-formed");
    sink = sink + 1;
}

[[gnu::noinline]] static void housekeeping()
{
    lapse::pause pause; /* of no interest */
    spend(4000000);
    sink = sink + 1;
}

int main(int argc, char **argv)
{
    lapse_options options = {};
    options.out = argc > 1 ? argv[1] : nullptr;
    options.hz = 250;
    options.exports = LAPSE_EXPORT_NONE;
    if (int error = lapse_start(&options)) {
        std::fprintf(stderr, "scopes: lapse_start: %s\n", std::strerror(-error));
        return 1;
    }
    for (int document = 0; document < 60; document++) {
        lapse::label label("document", document % 3 ? "good" : "bad");
        try {
            parse(document);
        } catch (const std::runtime_error &) {
            housekeeping();
        }
    }
    return lapse_stop() != 0;
}
