/* SPDX-License-Identifier: MIT */
/* The table of output formats (format.h). Called by the command line only. */
#include "format.h"

#include <string.h>

const struct lapse_export_format lapse_export_formats[] = {
    { "folded", "folded", "one line a stack, root;...;leaf weight (flame graph tools)",
      lapse_write_folded, false },
    { "events", "events", "start and end of calls, a line each (lapse fold reads it)",
      lapse_write_events, false },
    { "intervals", "intervals", "calls from start to end, a line each, as they complete",
      lapse_write_intervals, false },
    { "html", "html", "lapse's own page: flame graph, timeline, table in one file",
      lapse_write_html, true },
    { "pprof", "pb.gz", "pprof's profile.proto in gzip (go tool pprof)", lapse_write_pprof, true },
    { "chrome", "json", "Trace Event JSON: calls over time (Perfetto, chrome://tracing)",
      lapse_write_chrome, true },
    { "perfetto", "pftrace", "Perfetto's native trace: call stacks and calls over time",
      lapse_write_perfetto, true },
    { "speedscope", "speedscope.json", "speedscope's JSON", lapse_write_speedscope, true },
    { "firefox", "json", "the Firefox Profiler's processed format", lapse_write_firefox, true },
    { "callgrind", "callgrind.out", "call graph with costs by line (KCachegrind)",
      lapse_write_callgrind, true },
    { "svg", "svg", "a flame graph as a static picture", lapse_write_svg, false },
    { NULL, NULL, NULL, NULL, false },
};

const struct lapse_export_format *lapse_export_format_find(const char *name)
{
    for (const struct lapse_export_format *format = lapse_export_formats; format->name; format++)
        if (!strcmp(format->name, name))
            return format;
    return NULL;
}
