/* SPDX-License-Identifier: MIT */
/* lapse.hpp: scope guards for C++17. Each does on construction and destruction what the functions of
 * lapse.h do in pairs; see there for what the strings must promise. */
#ifndef LAPSE_HPP
#define LAPSE_HPP

#include "lapse.h"

namespace lapse {

class scope {
public:
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

protected:
    scope() = default;
    ~scope() = default;
};

/* `lapse::label request("request", "checkout");` */
class [[nodiscard]] label : scope {
public:
    label(const char *key, const char *value) noexcept { lapse_label_push(key, value); }
    ~label() { lapse_label_pop(); }
};

/* `lapse::span parse("parse");` */
class [[nodiscard]] span : scope {
public:
    explicit span(const char *name) noexcept { lapse_span_begin(name); }
    ~span() { lapse_span_end(); }
};

/* The calling thread is left out of the profile while it lives. */
class [[nodiscard]] pause : scope {
public:
    pause() noexcept { lapse_thread_pause(); }
    ~pause() { lapse_thread_resume(); }
};

} // namespace lapse

#endif
