/* SPDX-License-Identifier: MIT */
/* What the subcommands share: messages, numbers, the end of the output. */
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "event_text.h"

int lapse_complain(const char *command, const char *format, ...)
{
    va_list arguments;
    fflush(stdout);
    fprintf(stderr, "lapse %s: ", command);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    return LAPSE_STATUS_BAD;
}

bool lapse_option_number(const char *command, const char *option, const char *text, uint64_t *value)
{
    if (lapse_decimal_parse(text, text + strlen(text), value))
        return true;
    lapse_complain(command, "--%s: '%s' is not a whole number", option, text);
    return false;
}

int lapse_show_help(const char *command, const char *text)
{
    if (fputs(text, stdout) >= 0 && !fflush(stdout))
        return 0;
    return lapse_complain(command, "standard output: %s", strerror(errno));
}

int lapse_finish_output(const char *command, struct lapse_output *output)
{
    int error = lapse_output_finish(output);
    if (!error && (fflush(stdout) || ferror(stdout)))
        error = errno ? -errno : -EIO;
    return error ? lapse_complain(command, "standard output: %s", strerror(-error)) : 0;
}
