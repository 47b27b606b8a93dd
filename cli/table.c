/* SPDX-License-Identifier: MIT */
/* Tables of report and record; see table.h. */
#include "table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json_writer.h"
#include "statistics.h"
#include "text.h"

#define NAME_BYTES 65536
#define COMMAND_BYTES 200

static const char *const clock_names[] = { "cpu", "perf", "wall" };

void lapse_table_name(FILE *to, enum lapse_table_form form, const char *name)
{
    static char text[NAME_BYTES];
    if (form == LAPSE_FORM_JSON) {
        struct lapse_output output;
        if (lapse_output_init(&output, NULL))
            return;
        lapse_json_string(&output, name);
        fwrite(output.bytes, 1, output.size, to);
        lapse_output_fini(&output);
        return;
    }
    fwrite(text, 1, lapse_terminal_name(text, sizeof text, name), to);
}

const char *lapse_table_module(const struct lapse_profile *profile, uint32_t function)
{
    uint32_t module = function == LAPSE_NONE ? LAPSE_NONE : profile->functions[function].module;
    if (module == LAPSE_NONE)
        return "";
    const char *slash = strrchr(profile->modules[module].path, '/');
    return slash ? slash + 1 : profile->modules[module].path;
}

void lapse_table_weight(const struct lapse_table *table, uint64_t weight, int width)
{
    if (table->profile->weight_unit == LAPSE_WEIGHT_COUNT)
        fprintf(table->to, "%*" PRIu64, width, weight);
    else
        fprintf(table->to, "%*.3f s", width - 2, (double)weight * 1e-9);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole ? (double)part / (double)whole : 0;
}

static struct lapse_range interval(const struct lapse_view *view, uint64_t part, double squares)
{
    return lapse_share_interval((double)part, (double)view->weight_ns, squares, view->squares);
}

static int by_total(const void *a, const void *b, void *context)
{
    const struct lapse_view_function *functions = context;
    const struct lapse_view_function *left = &functions[*(const uint32_t *)a];
    const struct lapse_view_function *right = &functions[*(const uint32_t *)b];
    if (left->total_ns != right->total_ns)
        return left->total_ns > right->total_ns ? -1 : 1;
    return (left > right) - (left < right);
}

static int by_name(const void *a, const void *b, void *context)
{
    const struct lapse_view_function *functions = context;
    return strcmp(functions[*(const uint32_t *)a].name, functions[*(const uint32_t *)b].name);
}

/* Functions of the view in the order asked for; those of group frames are left out. */
static uint32_t *order_of(const struct lapse_table *table, uint32_t *count)
{
    const struct lapse_view *view = table->view;
    uint32_t *order = malloc((view->function_count + 1) * sizeof *order);
    *count = 0;
    if (!order)
        return NULL;
    for (uint32_t i = 0; i < view->function_count; i++)
        if (view->functions[i].function != LAPSE_NONE)
            order[(*count)++] = i;
    if (table->sort != LAPSE_SORT_SELF)
        qsort_r(order, *count, sizeof *order, table->sort == LAPSE_SORT_TOTAL ? by_total : by_name,
                view->functions);
    return order;
}

static void text_function(const struct lapse_table *table,
                          const struct lapse_view_function *function)
{
    const struct lapse_view *view = table->view;
    struct lapse_range self = interval(view, function->self_ns, function->self_squares);
    const char *module = lapse_table_module(table->profile, function->function);
    fprintf(table->to, "%6.2f %% %6.2f-%5.2f ", 100 * share(function->self_ns, view->weight_ns),
            100 * self.low, 100 * self.high);
    lapse_table_weight(table, function->self_ns, 12);
    fprintf(table->to, " %7.2f %%  %s", 100 * share(function->total_ns, view->weight_ns),
            table->colour ? "\033[1m" : "");
    lapse_table_name(table->to, LAPSE_FORM_TEXT, function->name);
    fputs(table->colour ? "\033[0m" : "", table->to);
    if (*module && strncmp(function->name, module, strlen(module))) {
        fputs(table->colour ? "  \033[2m[" : "  [", table->to);
        lapse_table_name(table->to, LAPSE_FORM_TEXT, module);
        fputs(table->colour ? "]\033[0m" : "]", table->to);
    }
    fputc('\n', table->to);
}

static void tsv_function(const struct lapse_table *table,
                         const struct lapse_view_function *function)
{
    const struct lapse_view *view = table->view;
    struct lapse_range self = interval(view, function->self_ns, function->self_squares);
    struct lapse_range total = interval(view, function->total_ns, function->total_squares);
    lapse_table_name(table->to, LAPSE_FORM_TSV, function->name);
    fputc('\t', table->to);
    lapse_table_name(table->to, LAPSE_FORM_TSV,
                     lapse_table_module(table->profile, function->function));
    fprintf(table->to,
            "\t%.6f\t%.6f\t%.6f\t%.6f\t%.6f\t%.6f\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
            "\n",
            share(function->self_ns, view->weight_ns), self.low, self.high,
            share(function->total_ns, view->weight_ns), total.low, total.high, function->self_ns,
            function->total_ns, function->self_count, function->total_count);
}

static void json_function(const struct lapse_table *table,
                          const struct lapse_view_function *function)
{
    const struct lapse_view *view = table->view;
    struct lapse_range self = interval(view, function->self_ns, function->self_squares);
    struct lapse_range total = interval(view, function->total_ns, function->total_squares);
    const char *file = table->profile->functions[function->function].file;
    fputs("{\"function\":", table->to);
    lapse_table_name(table->to, LAPSE_FORM_JSON, function->name);
    fputs(",\"module\":", table->to);
    lapse_table_name(table->to, LAPSE_FORM_JSON,
                     lapse_table_module(table->profile, function->function));
    if (file) {
        fputs(",\"file\":", table->to);
        lapse_table_name(table->to, LAPSE_FORM_JSON, file);
    }
    fprintf(table->to,
            ",\"self\":%.6f,\"self_low\":%.6f,\"self_high\":%.6f,\"total\":%.6f,"
            "\"total_low\":%.6f,\"total_high\":%.6f,\"self_weight\":%" PRIu64
            ",\"total_weight\":%" PRIu64 ",\"self_samples\":%" PRIu64 ",\"total_samples\":%" PRIu64
            ",\"recursive\":%s}",
            share(function->self_ns, view->weight_ns), self.low, self.high,
            share(function->total_ns, view->weight_ns), total.low, total.high, function->self_ns,
            function->total_ns, function->self_count, function->total_count,
            function->recursive ? "true" : "false");
}

static void json_head(const struct lapse_table *table, const char *rows)
{
    const struct lapse_profile *profile = table->profile;
    bool counts = profile->weight_unit == LAPSE_WEIGHT_COUNT;
    fprintf(table->to,
            "{\"unit\":\"%s\",\"period_ns\":%" PRIu64 ",\"weight\":%" PRIu64 ",\"samples\":%" PRIu64
            ",\"notes\":[",
            counts ? "count" : "ns", profile->period_ns, table->view->weight_ns,
            table->view->count);
    for (uint32_t i = 0; i < profile->note_count; i++) {
        fputs(i ? "," : "", table->to);
        lapse_table_name(table->to, LAPSE_FORM_JSON, profile->notes[i]);
    }
    fprintf(table->to, "],\"%s\":[", rows);
}

int lapse_table_functions(const struct lapse_table *table)
{
    uint32_t count;
    uint32_t *order = order_of(table, &count);
    if (!order)
        return -ENOMEM;
    uint32_t rows = table->limit && table->limit < count ? table->limit : count;
    if (table->form == LAPSE_FORM_TEXT)
        fputs("    self    95 % of it      weight     total  function\n", table->to);
    else if (table->form == LAPSE_FORM_TSV)
        fputs(
            "function\tmodule\tself\tself_low\tself_high\ttotal\ttotal_low\ttotal_high\tself_weight\t"
            "total_weight\tself_samples\ttotal_samples\n",
            table->to);
    else
        json_head(table, "functions");
    for (uint32_t i = 0; i < rows && !ferror(table->to); i++) {
        const struct lapse_view_function *function = &table->view->functions[order[i]];
        if (table->form == LAPSE_FORM_TEXT) {
            text_function(table, function);
        } else if (table->form == LAPSE_FORM_TSV) {
            tsv_function(table, function);
        } else {
            fputs(i ? ",\n" : "\n", table->to);
            json_function(table, function);
        }
    }
    if (table->form == LAPSE_FORM_JSON)
        fputs("]}\n", table->to);
    if (table->form == LAPSE_FORM_TEXT && rows < count)
        fprintf(table->to, "  ... %u more functions (--limit=0 shows all)\n", count - rows);
    free(order);
    return 0;
}

struct row { uint64_t weight, count, cpu_ns; uint32_t index; };

static int by_weight(const void *a, const void *b)
{
    const struct row *left = a, *right = b;
    if (left->weight != right->weight)
        return left->weight > right->weight ? -1 : 1;
    return (left->index > right->index) - (left->index < right->index);
}

static void text_row(const struct lapse_table *table, const struct row *row, const char *kind,
                     uint32_t id, const char *name, const char *note)
{
    fprintf(table->to, "%6.2f %% ", 100 * share(row->weight, table->profile->weight_ns));
    lapse_table_weight(table, row->weight, 12);
    if (row->cpu_ns)
        fprintf(table->to, " of %.3f s", (double)row->cpu_ns * 1e-9);
    fprintf(table->to, " %9" PRIu64 " samples  %s %-7u ", row->count, kind, id);
    lapse_table_name(table->to, LAPSE_FORM_TEXT, name);
    fprintf(table->to, "%s\n", note);
}

static void tsv_or_json_row(const struct lapse_table *table, const struct row *row, bool first,
                            const char *kind, uint32_t id, const char *name, uint32_t pid)
{
    FILE *to = table->to;
    double part = share(row->weight, table->profile->weight_ns);
    if (table->form == LAPSE_FORM_TSV) {
        fprintf(to, "%u\t%u\t", pid, id);
        lapse_table_name(to, table->form, name);
        fprintf(to, "\t%.6f\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", part, row->weight,
                row->count, row->cpu_ns);
        return;
    }
    fprintf(to, "%s{\"pid\":%u,\"%s\":%u,\"name\":", first ? "\n" : ",\n", pid, kind, id);
    lapse_table_name(to, table->form, name);
    fprintf(to,
            ",\"share\":%.6f,\"weight\":%" PRIu64 ",\"samples\":%" PRIu64 ",\"cpu_ns\":%" PRIu64
            "}",
            part, row->weight, row->count, row->cpu_ns);
}

static int write_rows(const struct lapse_table *table, struct row *rows, uint32_t count,
                      bool threads)
{
    const struct lapse_profile *profile = table->profile;
    qsort(rows, count, sizeof *rows, by_weight);
    if (table->form == LAPSE_FORM_TSV)
        fprintf(table->to, "pid\t%s\tname\tshare\tweight\tsamples\tcpu_ns\n",
                threads ? "tid" : "session");
    if (table->form == LAPSE_FORM_JSON)
        json_head(table, threads ? "threads" : "processes");
    for (uint32_t i = 0; i < count && (!table->limit || i < table->limit); i++) {
        const struct lapse_profile_thread *thread =
            threads ? &profile->threads[rows[i].index] : NULL;
        const struct lapse_profile_process *process =
            &profile->processes[threads ? thread->process : rows[i].index];
        const char *name = threads && *thread->name ? thread->name : process->name;
        if (table->form != LAPSE_FORM_TEXT)
            tsv_or_json_row(table, &rows[i], !i, threads ? "tid" : "session",
                            threads ? thread->tid : process->session,
                            threads ? name : process->command, process->pid);
        else if (threads)
            text_row(table, &rows[i], "tid", thread->tid, name,
                     thread->unsampled ? "  not sampled" : "");
        else
            text_row(table, &rows[i], "pid", process->pid,
                     *process->command ? process->command : name,
                     process->ended ? "" : "  no end mark");
    }
    if (table->form == LAPSE_FORM_JSON)
        fputs("]}\n", table->to);
    return 0;
}

int lapse_table_threads(const struct lapse_table *table)
{
    const struct lapse_profile *profile = table->profile;
    struct row *rows = malloc((profile->thread_count + 1) * sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (uint32_t i = 0; i < profile->thread_count; i++)
        rows[i] = (struct row){ profile->threads[i].weight_ns, profile->threads[i].count,
                                profile->threads[i].cpu_ns, i };
    write_rows(table, rows, profile->thread_count, true);
    free(rows);
    return 0;
}

int lapse_table_processes(const struct lapse_table *table)
{
    const struct lapse_profile *profile = table->profile;
    struct row *rows = calloc(profile->process_count + 1, sizeof *rows);
    if (!rows)
        return -ENOMEM;
    for (uint32_t i = 0; i < profile->process_count; i++) {
        rows[i].cpu_ns = profile->processes[i].cpu_ns;
        rows[i].index = i;
    }
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        rows[profile->threads[i].process].weight += profile->threads[i].weight_ns;
        rows[profile->threads[i].process].count += profile->threads[i].count;
    }
    write_rows(table, rows, profile->process_count, false);
    free(rows);
    return 0;
}

void lapse_table_notes(const struct lapse_table *table)
{
    for (uint32_t i = 0; i < table->profile->note_count; i++) {
        fputs(table->colour ? "\033[33m! " : "! ", table->to);
        lapse_table_name(table->to, LAPSE_FORM_TEXT, table->profile->notes[i]);
        fputs(table->colour ? "\033[0m\n" : "\n", table->to);
    }
}

/* The rate that was reached: samples and merged ticks per second of CPU time, against the rate asked. */
static void write_rate(const struct lapse_table *table)
{
    const struct lapse_profile *profile = table->profile;
    double asked = 1e9 / (double)profile->period_ns;
    double reached = (double)profile->count / ((double)profile->weight_ns * 1e-9);
    fprintf(table->to, ", %s clock, %.0f Hz", clock_names[profile->processes[0].clock], asked);
    if (reached < 0.9 * asked)
        fprintf(table->to, " asked, %.0f Hz reached", reached);
}

/* The process that most samples are of stands for all. */
static void write_command(const struct lapse_table *table)
{
    const struct lapse_profile *profile = table->profile;
    uint64_t weight = 0, most = 0;
    uint32_t main_process = 0;
    for (uint32_t i = 0; i < profile->thread_count; i++) {
        bool same = i && profile->threads[i].process == profile->threads[i - 1].process;
        weight = (same ? weight : 0) + profile->threads[i].weight_ns;
        if (weight > most) {
            most = weight;
            main_process = profile->threads[i].process;
        }
    }
    const struct lapse_profile_process *process = &profile->processes[main_process];
    char text[COMMAND_BYTES];
    int size =
        snprintf(text, sizeof text, "%s", *process->command ? process->command : process->name);
    lapse_table_name(table->to, LAPSE_FORM_TEXT, text);
    fputs(size >= COMMAND_BYTES ? "...\n" : "\n", table->to);
}

void lapse_table_summary(const struct lapse_table *table)
{
    const struct lapse_profile *profile = table->profile;
    uint64_t cpu_ns = 0;
    for (uint32_t i = 0; i < profile->process_count; i++)
        cpu_ns += profile->processes[i].cpu_ns;
    if (profile->process_count) {
        write_command(table);
        fprintf(table->to, "%u process%s, %u thread%s", profile->process_count,
                profile->process_count == 1 ? "" : "es", profile->thread_count,
                profile->thread_count == 1 ? "" : "s");
        if (profile->period_ns && profile->weight_ns)
            write_rate(table);
        fputc('\n', table->to);
    }
    lapse_table_weight(table, table->view->weight_ns, 0);
    fprintf(table->to, "%s in %" PRIu64 " samples",
            profile->weight_unit == LAPSE_WEIGHT_COUNT ? "" : " of CPU time", table->view->count);
    if (cpu_ns && table->view->weight_ns == profile->weight_ns)
        fprintf(table->to, "; the kernel counted %.3f s", (double)cpu_ns * 1e-9);
    if (profile->counters.handler_ns + profile->counters.drain_ns)
        fprintf(table->to, "; lapse itself used %.3f s",
                (double)(profile->counters.handler_ns + profile->counters.drain_ns) * 1e-9);
    fputc('\n', table->to);
    lapse_table_notes(table);
}
