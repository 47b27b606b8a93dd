/* SPDX-License-Identifier: MIT */
/* The table of output formats (format.h). Called by the command line only. */
#include "format.h"

#include <string.h>

const struct lapse_export_format lapse_export_formats[] = {
    { "folded", "folded", "one line a stack, root;...;leaf weight (flame graph tools)",
      lapse_write_folded },
    { "html", "html", "lapse's own page: flame graph, timeline, table in one file",
      lapse_write_html },
    { NULL, NULL, NULL, NULL },
};

const struct lapse_export_format *lapse_export_format_find(const char *name)
{
    for (const struct lapse_export_format *format = lapse_export_formats; format->name; format++)
        if (!strcmp(format->name, name))
            return format;
    return NULL;
}
