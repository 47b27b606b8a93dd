/* SPDX-License-Identifier: MIT */
/* Many runs into one recording: a command again and again, or two commands in turn (A B A B), so that
 * whatever drifts on the machine meets both alike. Each run's spools carry a name of their own, by
 * which the runs that do not count are taken out again. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "distributions.h"
#include "record.h"

enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

double lapse_record_cpu_seconds(const struct rusage *usage)
{
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1e-6;
}

/* One command line of words without anything that a shell would act on is run as it is: a shell's own
 * CPU time would count as the command's. */
int lapse_record_split(struct lapse_record_command *command, char *line)
{
    static char *shell[] = { "sh", "-c", NULL, NULL };
    uint32_t count = 0;
    if (!line[strspn(line, " \t")])
        return lapse_complain("record", "--interleave: no command");
    if (line[strcspn(line, "|&;<>()$`\\\"'*?[]#~={}!\n")]) {
        shell[2] = line;
        command->arguments = shell;
        return 0;
    }
    command->arguments = calloc(strlen(line) / 2 + 2, sizeof *command->arguments);
    if (!command->arguments)
        return lapse_complain("record", "%s", strerror(ENOMEM));
    for (char *word = strtok(line, " \t"); word; word = strtok(NULL, " \t"))
        command->arguments[count++] = word;
    return 0;
}

/* Spools of one run, by the start of their names. */
static void drop_spools(const struct lapse_record_place *place, const char *prefix)
{
    DIR *folder = opendir(place->spools);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (!strncmp(entry->d_name, prefix, strlen(prefix)))
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder)
        closedir(folder);
}

static void set_number(const char *name, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    setenv(name, text, 1);
}

static void add_usage(struct lapse_record_series *series, uint32_t variant, const struct lapse_record_run *run)
{
    struct lapse_record_sum *sum = &series->sums[variant];
    double cpu = lapse_record_cpu_seconds(&run->usage), before = cpu - sum->cpu_mean;
    sum->runs++;
    sum->cpu_mean += before / sum->runs; /* Welford's way: no large sums of squares */
    sum->cpu_squares += before * (cpu - sum->cpu_mean);
    sum->seconds += run->seconds;
    series->cpu_seconds += cpu;
}

/* One run; `number` counts from 0, warm-ups apart. Returns 0 to go on, else the status to end with. */
static int run_once(struct lapse_record_series *series, const struct lapse_record_place *place,
                    uint32_t number, uint32_t variant, bool warm_up)
{
    const struct lapse_record_command *command = &series->commands[variant];
    struct lapse_record_run *run = &series->last;
    char prefix[48], out[2 * PATH_MAX + 64];
    int held = lapse_record_held_signal();
    bool single = series->repeat == 1 && series->command_count == 1 && !series->warmup;
    if (held)
        return 128 + held;
    snprintf(prefix, sizeof prefix, "%s%u-%u-", warm_up ? "warm" : "run", number, variant);
    snprintf(out, sizeof out, "%s/%s%%e-%%p", series->out_folder, single ? "" : prefix);
    setenv("LAPSE_OUT", out, 1);
    lapse_record_shared_set(place, single ? "" : prefix);
    set_number("LAPSE_RUN_INDEX", number);
    set_number("LAPSE_RUN_VARIANT", variant);
    *run = (struct lapse_record_run){ .arguments = command->arguments, .path = command->path,
                                      .environment = environ, .place = place };
    int error = lapse_record_run(run);
    if (error) {
        bool is_there = error == -ENOENT && !access(command->path, F_OK);
        lapse_complain("record", "%s: %s", command->path,
                       is_there ? "the interpreter that it names is not there" : strerror(-error));
        series->started = number > 0 || variant > 0;
        return error == -ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
    }
    series->started = true;
    if (run->status && !single)
        lapse_complain("record", "%s %u of %u of %s ended with status %d; it is not kept and no more are made",
                       warm_up ? "warm-up" : "run", number + 1, warm_up ? series->warmup : series->repeat,
                       command->path, run->status);
    if (warm_up || (run->status && !single))
        drop_spools(place, prefix);
    else
        add_usage(series, variant, run);
    return run->status;
}

int lapse_record_series_run(struct lapse_record_series *series, const struct lapse_record_place *place)
{
    int status = 0;
    for (uint32_t i = 0; i < series->warmup && !status; i++)
        for (uint32_t variant = 0; variant < series->command_count && !status; variant++)
            status = run_once(series, place, i, variant, true);
    for (uint32_t i = 0; i < series->repeat && !status; i++)
        for (uint32_t variant = 0; variant < series->command_count && !status; variant++)
            status = run_once(series, place, i, variant, false);
    return status;
}

void lapse_record_series_tell(const struct lapse_record_series *series, FILE *to)
{
    for (uint32_t variant = 0; variant < series->command_count; variant++) {
        const struct lapse_record_sum *sum = &series->sums[variant];
        const char *side = series->command_count == 1 ? "" : variant ? "new   " : "base  ";
        double error = sum->runs > 1 ? sqrt(sum->cpu_squares / (sum->runs - 1) / sum->runs) *
                                           lapse_student_quantile(0.975, sum->runs - 1) : 0;
        fprintf(to, "%s%u run%s of %s: ", side, sum->runs, sum->runs == 1 ? "" : "s",
                series->commands[variant].path);
        if (sum->runs > 1)
            fprintf(to, "%.4f s +- %.4f (95 %%) of CPU time a run, %.4f s elapsed\n", sum->cpu_mean, error,
                    sum->seconds / sum->runs);
        else
            fprintf(to, "%.4f s of CPU time\n", sum->cpu_mean);
    }
}
