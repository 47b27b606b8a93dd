// SPDX-License-Identifier: MIT
// What bench/symbols.sh multiplies into a big binary: one translation unit that makes compilers
// inline deeply and write much debug information, as programs on the standard library do. VARIANT
// keeps the copies' types apart.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#ifndef VARIANT
#define VARIANT 0
#endif

template <int> struct tag {};

namespace {

template <class Key, class Value, int N>
struct table {
    std::map<Key, std::vector<Value>> ordered;
    std::unordered_map<Key, std::unique_ptr<Value>> hashed;

    void put(const Key &key, const Value &value)
    {
        ordered[key].push_back(value);
        hashed[key] = std::make_unique<Value>(value);
    }

    Value total(const std::function<Value(const Value &, tag<N>)> &weigh) const
    {
        Value sum{};
        for (const auto &[key, values] : ordered)
            sum = std::accumulate(values.begin(), values.end(), sum,
                                  [&](Value a, const Value &b) { return a + weigh(b, {}); });
        for (const auto &[key, value] : hashed)
            sum += weigh(*value, {});
        return sum;
    }
};

template <int N>
long numbers(long seed)
{
    table<long, long, N> kept;
    std::vector<std::tuple<long, std::string>> rows;
    for (long i = 0; i < seed; i++) {
        kept.put(i % (N + 7), i * seed);
        rows.emplace_back(i ^ seed, std::to_string(i));
    }
    std::sort(rows.begin(), rows.end());
    std::stable_sort(rows.begin(), rows.end(), [](auto &a, auto &b) { return std::get<1>(a) < std::get<1>(b); });
    std::set<std::string> names;
    std::transform(rows.begin(), rows.end(), std::inserter(names, names.end()),
                   [](auto &row) { return std::get<1>(row); });
    return kept.total([&](const long &value, tag<N>) { return value % N + (long)names.size(); });
}

template <int N>
std::string texts(long seed)
{
    table<std::string, std::string, N> kept;
    std::ostringstream out;
    std::regex digits("[0-9]+");
    for (long i = 0; i < seed; i++)
        kept.put("key" + std::to_string(i % (N + 3)), std::string(N, 'a' + i % 26));
    out << kept.total([](const std::string &text, tag<N>) { return text.substr(0, N); });
    return std::regex_replace(out.str(), digits, "#");
}

template <int... N>
long all(long seed, std::integer_sequence<int, N...>)
{
    return (numbers<VARIANT * 100 + N + 1>(seed) + ...)
        + (long)(texts<VARIANT * 100 + N + 1>(seed).size() + ...);
}

}

long symbols_program(long seed)
{
    return all(seed, std::make_integer_sequence<int, PARTS>{});
}
