/* SPDX-License-Identifier: MIT */
/* See options.h. A table names every variable; each kind of value has one reader. */
#include "options.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>

#define NS_PER_S UINT64_C(1000000000)

enum value_kind { NUMBER, FLAG, WORD, WORDS, SECONDS, MILLISECONDS, STRING, RUN_ID, SIGNAL, FOLDER };

struct word { const char *text; uint32_t value; };

static const struct word clock_words[] = {
    { "cpu", LAPSE_CLOCK_CPU }, { "perf", LAPSE_CLOCK_PERF }, { "wall", LAPSE_CLOCK_WALL }, { 0, 0 },
};
static const struct word export_words[] = {
    { "folded", LAPSE_EXPORT_FOLDED }, { "events", LAPSE_EXPORT_EVENTS }, { "none", 0 }, { 0, 0 },
};
static const struct word close_words[] = {
    { "last", LAPSE_CLOSE_LAST }, { "next", LAPSE_CLOSE_NEXT }, { "open", LAPSE_CLOSE_OPEN }, { 0, 0 },
};
static const struct word start_words[] = { { "now", 0 }, { "paused", 1 }, { 0, 0 } };

struct variable {
    const char *name;
    enum value_kind kind;
    size_t offset;
    uint64_t low, high;       /* NUMBER */
    const struct word *words; /* WORD, WORDS */
    const char *expected;     /* what a right value is, for the message */
};

#define AT(field) offsetof(struct lapse_settings, field)
static const struct variable variables[] = {
    { "LAPSE_OUT", STRING, AT(out), 0, 0, NULL, "not a path with %p, %e, %t or %% in it" },
    { "LAPSE_HZ", NUMBER, AT(hz), 1, 10000, NULL, "not a number from 1 to 10000" },
    { "LAPSE_CLOCK", WORD, AT(clock), 0, 0, clock_words, "not cpu, perf or wall" },
    { "LAPSE_DEPTH", NUMBER, AT(depth), 8, 4096, NULL, "not a number from 8 to 4096" },
    { "LAPSE_EXPORT", WORDS, AT(exports), 0, 0, export_words,
      "not folded, events, folded,events or none" },
    { "LAPSE_MIN_SAMPLES", NUMBER, AT(min_samples), 1, 1000000, NULL, "not a number from 1 to 1000000" },
    { "LAPSE_CLOSE", WORD, AT(close), 0, 0, close_words, "not last, next or open" },
    { "LAPSE_GAP", MILLISECONDS, AT(gap_ns), 0, 0, NULL, "not a number of milliseconds" },
    { "LAPSE_START", WORD, AT(start_paused), 0, 0, start_words, "not now or paused" },
    { "LAPSE_TOGGLE_SIGNAL", SIGNAL, AT(toggle_signal), 0, 0, NULL, "not a signal that can be caught" },
    { "LAPSE_DURATION", SECONDS, AT(duration_ns), 0, 0, NULL, "not a number of seconds" },
    { "LAPSE_DELAY", SECONDS, AT(delay_ns), 0, 0, NULL, "not a number of seconds" },
    { "LAPSE_FOLLOW", FLAG, AT(follow), 0, 0, NULL, "not 0 or 1" },
    { "LAPSE_SIGNAL", SIGNAL, AT(signal), 0, 0, NULL, "not a signal that can be caught" },
    { "LAPSE_RESPECT_MASK", FLAG, AT(respect_mask), 0, 0, NULL, "not 0 or 1" },
    { "LAPSE_QUIET", FLAG, AT(quiet), 0, 0, NULL, "not 0 or 1" },
    { "LAPSE_VERBOSE", FLAG, AT(verbose), 0, 0, NULL, "not 0 or 1" },
    { "LAPSE_EXIT_BUDGET_MS", NUMBER, AT(exit_budget_ms), 1, 3600000, NULL,
      "not a number from 1 to 3600000" },
    /* Between `lapse record` and its children. */
    { "LAPSE_RUN_ID", RUN_ID, AT(run_id), 0, 0, NULL, "not 32 hexadecimal digits" },
    { "LAPSE_RUN_INDEX", NUMBER, AT(run_index), 0, 0xffffffff, NULL, "not a number" },
    { "LAPSE_RUN_VARIANT", NUMBER, AT(run_variant), 0, 0xffffffff, NULL, "not a number" },
    { "LAPSE_RINGS", FOLDER, AT(rings), 0, 0, NULL, "not an absolute path of at most 255 bytes" },
    { "LAPSE_SHARED", FOLDER, AT(shared), 0, 0, NULL, "not an absolute path of at most 255 bytes" },
};

/* Decimal digits only; no sign, no space, no locale. */
static bool read_number(const char *text, uint64_t *number)
{
    uint64_t value = 0;
    if (!*text)
        return false;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > UINT64_MAX / 10 - 1)
            return false;
        value = value * 10 + (uint64_t)(*text - '0');
    }
    *number = value;
    return true;
}

/* "1", "0.25", ".5", in units of `scale` ns; at most about 30 years. */
static bool read_decimal(const char *text, uint64_t scale, uint64_t *ns)
{
    uint64_t whole = 0, part = 0, digits = 0, unit = scale;
    for (; *text >= '0' && *text <= '9'; text++, digits++)
        if ((whole = whole * 10 + (uint64_t)(*text - '0')) > NS_PER_S * NS_PER_S / scale)
            return false;
    if (*text == '.')
        for (text++; *text >= '0' && *text <= '9'; text++, digits++)
            part += (uint64_t)(*text - '0') * (unit /= 10);
    *ns = whole * scale + part;
    return digits && !*text;
}

static bool signal_can_be_caught(uint64_t signal)
{
    return signal >= 1 && signal <= 64 && signal != SIGKILL && signal != SIGSTOP && signal != 32 &&
           signal != 33; /* 32 and 33 belong to the C library */
}

static const struct word *find_word(const struct word *words, const char *text, size_t size)
{
    for (; words->text; words++)
        if (strlen(words->text) == size && !memcmp(words->text, text, size))
            return words;
    return NULL;
}

/* Words by comma; `none` stands alone. */
static bool read_words(const struct word *words, const char *text, uint32_t *value)
{
    *value = 0;
    for (const char *end = text;; text = ++end) {
        while (*end && *end != ',')
            end++;
        const struct word *word = find_word(words, text, (size_t)(end - text));
        if (!word || (!word->value && (*end || *value)) || (*value & word->value))
            return false;
        *value |= word->value;
        if (!*end)
            return true;
    }
}

static bool read_hex(const char *text, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count * 2; i++) {
        const char *digits = "0123456789abcdef";
        const char *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return false;
        bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | (digit - digits));
    }
    return !text[count * 2];
}

static bool read_string(char *to, const char *text)
{
    size_t size = strlen(text);
    if (!size || size >= LAPSE_PATH_MAX)
        return false;
    memcpy(to, text, size + 1);
    char path[LAPSE_PATH_MAX];
    struct lapse_path_values none = { 0, "", 0, "/" };
    return lapse_path_expand(path, text, &none) == 0;
}

static bool read_value(struct lapse_settings *settings, const struct variable *variable,
                       const char *text)
{
    char *field = (char *)settings + variable->offset;
    uint64_t number = 0;
    uint32_t value = 0;
    const struct word *word;
    switch (variable->kind) {
    case NUMBER:
        if (!read_number(text, &number) || number < variable->low || number > variable->high)
            return false;
        value = (uint32_t)number;
        memcpy(field, &value, sizeof value);
        return true;
    case SIGNAL:
        if (!read_number(text, &number) || !signal_can_be_caught(number))
            return false;
        value = (uint32_t)number;
        memcpy(field, &value, sizeof value);
        return true;
    case FLAG:
        if ((*text != '0' && *text != '1') || text[1])
            return false;
        *(bool *)field = *text == '1';
        return true;
    case WORD:
        word = find_word(variable->words, text, strlen(text));
        if (!word)
            return false;
        if (variable->words == start_words)
            *(bool *)field = word->value;
        else
            memcpy(field, &word->value, sizeof word->value);
        return true;
    case WORDS:
        if (!read_words(variable->words, text, &value))
            return false;
        memcpy(field, &value, sizeof value);
        return true;
    case SECONDS:
    case MILLISECONDS:
        if (!read_decimal(text, variable->kind == SECONDS ? NS_PER_S : NS_PER_S / 1000, &number))
            return false;
        memcpy(field, &number, sizeof number);
        return true;
    case STRING:
        return read_string(field, text);
    case FOLDER:
        if (*text != '/' || strlen(text) >= LAPSE_RINGS_MAX)
            return false;
        memcpy(field, text, strlen(text) + 1);
        return true;
    case RUN_ID:
        return settings->has_run_id = read_hex(text, settings->run_id, sizeof settings->run_id);
    }
    return false;
}

static int refuse(struct lapse_text *error, const char *name, const char *value, const char *why)
{
    lapse_text_string(error, name);
    lapse_text_string(error, "=");
    lapse_text_string(error, value);
    lapse_text_string(error, ": ");
    lapse_text_string(error, why);
    return -EINVAL;
}

static int refuse_number(struct lapse_text *error, const char *name, uint64_t value, const char *why)
{
    char digits[24];
    struct lapse_text text = { digits, 0, sizeof digits };
    lapse_text_number(&text, value);
    return refuse(error, name, digits, why);
}

static const char *expected(const char *name)
{
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++)
        if (!strcmp(variables[i].name, name))
            return variables[i].expected;
    return "";
}

static int take_numbers(struct lapse_settings *settings, const struct lapse_options *options,
                        struct lapse_text *error)
{
    if (options->hz > 10000)
        return refuse_number(error, "hz", options->hz, expected("LAPSE_HZ"));
    if ((unsigned)options->clock > LAPSE_CLOCK_WALL)
        return refuse_number(error, "clock", options->clock, expected("LAPSE_CLOCK"));
    if (options->depth && (options->depth < 8 || options->depth > 4096))
        return refuse_number(error, "depth", options->depth, expected("LAPSE_DEPTH"));
    if (options->toggle_signal && !signal_can_be_caught((uint64_t)options->toggle_signal))
        return refuse_number(error, "toggle_signal", (uint64_t)options->toggle_signal,
                             expected("LAPSE_TOGGLE_SIGNAL"));
    if (options->signal && !signal_can_be_caught((uint64_t)options->signal))
        return refuse_number(error, "signal", (uint64_t)options->signal, expected("LAPSE_SIGNAL"));
    if (!(options->duration_s >= 0 && options->duration_s < 1e9))
        return refuse(error, "duration_s", "?", expected("LAPSE_DURATION"));
    if (!(options->delay_s >= 0 && options->delay_s < 1e9))
        return refuse(error, "delay_s", "?", expected("LAPSE_DELAY"));
    settings->hz = options->hz ? options->hz : settings->hz;
    settings->clock = options->clock;
    settings->depth = options->depth ? options->depth : settings->depth;
    settings->min_samples = options->min_samples ? options->min_samples : 1;
    settings->gap_ns = options->gap_ns;
    settings->toggle_signal = options->toggle_signal;
    settings->signal = options->signal ? options->signal : settings->signal;
    settings->duration_ns = (uint64_t)(options->duration_s * 1e9);
    settings->delay_ns = (uint64_t)(options->delay_s * 1e9);
    if (options->exit_budget_ms)
        settings->exit_budget_ms = options->exit_budget_ms;
    return 0;
}

static int take_options(struct lapse_settings *settings, const struct lapse_options *options,
                        struct lapse_text *error)
{
    if (options->out && !read_string(settings->out, options->out))
        return refuse(error, "out", options->out, expected("LAPSE_OUT"));
    if (options->close) {
        const struct word *word = find_word(close_words, options->close, strlen(options->close));
        if (!word)
            return refuse(error, "close", options->close, expected("LAPSE_CLOSE"));
        settings->close = (enum lapse_close)word->value;
    }
    if (options->exports & ~(uint32_t)(LAPSE_EXPORT_NONE | LAPSE_EXPORT_FOLDED | LAPSE_EXPORT_EVENTS) ||
        ((options->exports & LAPSE_EXPORT_NONE) && options->exports != LAPSE_EXPORT_NONE))
        return refuse_number(error, "exports", options->exports, expected("LAPSE_EXPORT"));
    if (options->exports)
        settings->exports = options->exports & ~(uint32_t)LAPSE_EXPORT_NONE;
    settings->start_paused = options->start_paused != 0;
    settings->follow = !options->no_follow;
    settings->respect_mask = options->respect_mask != 0;
    settings->quiet = options->quiet != 0;
    settings->verbose = options->verbose != 0;
    return take_numbers(settings, options, error);
}

const char *lapse_environment_get(char *const *environment, const char *name)
{
    size_t size = strlen(name);
    for (; environment && *environment; environment++)
        if (!strncmp(*environment, name, size) && (*environment)[size] == '=')
            return *environment + size + 1;
    return NULL;
}

int lapse_options_read(struct lapse_settings *settings, const struct lapse_options *options,
                       char *const *environment, struct lapse_text *error)
{
    memset(settings, 0, sizeof *settings);
    memcpy(settings->out, "lapse-%e-%p", sizeof "lapse-%e-%p");
    settings->hz = 199;
    settings->depth = 1024;
    settings->exports = LAPSE_EXPORT_FOLDED | LAPSE_EXPORT_EVENTS;
    settings->min_samples = 1;
    settings->follow = true;
    settings->signal = SIGPROF;
    settings->exit_budget_ms = 2000;
    int result = options ? take_options(settings, options, error) : 0;
    for (size_t i = 0; !result && environment && i < sizeof variables / sizeof *variables; i++) {
        const char *text = lapse_environment_get(environment, variables[i].name);
        if (text && !read_value(settings, &variables[i], text))
            result = refuse(error, variables[i].name, text, variables[i].expected);
    }
    if (options && options->out) /* the program's own file is the program's own */
        settings->shared[0] = 0;
    if (!result && settings->toggle_signal == settings->signal)
        result = refuse_number(error, "LAPSE_TOGGLE_SIGNAL", (uint64_t)settings->toggle_signal,
                               "is the signal that samples");
    settings->period_ns = NS_PER_S / settings->hz;
    return result;
}

/* YYYYMMDD-HHMMSS in UTC. Days to civil date by counting years and months: no tables of the host. */
static void put_time(struct lapse_text *text, uint64_t seconds)
{
    uint64_t days = seconds / 86400, rest = seconds % 86400, year = 1970;
    static const uint8_t lengths[12] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    for (;; year++) {
        uint64_t leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        if (days < 365 + leap)
            break;
        days -= 365 + leap;
    }
    uint64_t leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0, month = 0;
    for (; month < 11 && days >= lengths[month] + (month == 1 ? leap : 0); month++)
        days -= lengths[month] + (month == 1 ? leap : 0);
    uint64_t fields[6] = { year, month + 1, days + 1, rest / 3600, rest / 60 % 60, rest % 60 };
    for (int i = 0; i < 6; i++) {
        if (i == 3)
            lapse_text_string(text, "-");
        if (fields[i] < 10)
            lapse_text_string(text, "0");
        lapse_text_number(text, fields[i]);
    }
}

static void put_program(struct lapse_text *text, const char *program)
{
    for (; *program; program++)
        lapse_text_bytes(text, *program == '/' || (unsigned char)*program < ' ' ? "_" : program, 1);
}

int lapse_path_expand(char path[LAPSE_PATH_MAX], const char *pattern,
                      const struct lapse_path_values *values)
{
    struct lapse_text text = { path, 0, LAPSE_PATH_MAX };
    path[0] = 0;
    if (*pattern != '/') {
        lapse_text_string(&text, values->cwd);
        lapse_text_string(&text, "/");
    }
    for (; *pattern; pattern++) {
        if (*pattern != '%') {
            lapse_text_bytes(&text, pattern, 1);
            continue;
        }
        switch (*++pattern) {
        case 'p': lapse_text_number(&text, values->pid); break;
        case 'e': put_program(&text, values->program); break;
        case 't': put_time(&text, values->realtime_s); break;
        case '%': lapse_text_string(&text, "%"); break;
        default: return -EINVAL;
        }
    }
    /* Room is kept for a number and a suffix. */
    return text.size + 32 < LAPSE_PATH_MAX ? 0 : -ENAMETOOLONG;
}
