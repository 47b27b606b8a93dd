/* SPDX-License-Identifier: MIT */
/* lapse power: how many runs a side are needed to see a change of a given size. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "comparison_report.h"
#include "text.h"

enum { MAX_GATES = 64 };

static const char help[] =
    "Usage: lapse power [options] --gate WHAT:>LIMIT FILE\n"
    "\n"
    "Says how many runs a side `lapse diff` needs to show a change of the gate's size, judged by how much\n"
    "the runs in FILE (lapse record --repeat N) differ and by their sampling error. Of two commands that were\n"
    "interleaved, the first one's runs count.\n"
    "\n"
    "  --gate WHAT:>LIMIT  as in lapse diff: total:>3%  func:NAME:>5%  self:NAME:>5%; may be repeated\n"
    "  --power P           wanted chance of seeing it, 0.5 to 0.99 (default 0.9)\n"
    "  -h, --help          this text\n"
    "\n"
    "Exit status: 0, or 2 on wrong usage, unreadable input or a gate that fits nothing.\n";

static void print_need(const struct lapse_gate *gate, const struct lapse_change *change, uint32_t runs, double power)
{
    const struct lapse_estimate *e = &change->base;
    double by = gate->by;
    if (e->mean_ns > 0 && gate->by_ns / e->mean_ns > by)
        by = gate->by_ns / e->mean_ns;
    uint32_t needed = lapse_runs_needed(e, runs, by, power);
    char name[200];
    name[lapse_terminal_name(name, sizeof name - 1, change->name)] = '\0';
    printf("%s (%.1f %% of the time, %.0f samples a run): a change of %.3g %% ", name, 100 * e->share,
           (double)e->samples / runs, 100 * by);
    if (needed == UINT32_MAX)
        printf("needs more than 100000 runs a side\n");
    else
        printf("needs %u runs a side, about %.0f samples of it each\n", needed, (double)e->samples / runs * needed);
}

/* Of two commands that were interleaved, the first: the other one is what a change would be. */
static uint32_t base_variant(const struct lapse_profile *profile)
{
    for (uint32_t i = 0; i < profile->process_count; i++)
        if (profile->processes[i].variant)
            return 0;
    return LAPSE_ANY_VARIANT;
}

static int print_needs(struct lapse_profile *profile, const struct lapse_gate *gates, uint32_t gate_count, double power)
{
    struct lapse_comparison_input side = { profile, base_variant(profile) };
    struct lapse_comparison *comparison;
    struct lapse_gate_findings findings;
    char error[256] = "";
    /* Held against itself: only the one side's estimates are used. */
    if (lapse_comparison_create(&comparison, &side, 1, &side, 1, NULL, error, sizeof error))
        return lapse_complain("power", "%s", error);
    int status = 0;
    if (comparison->base_runs < 2)
        status = lapse_complain("power", "one run shows no run-to-run noise; record more (lapse record --repeat 5)");
    else if (lapse_gates_check(&findings, comparison, gates, gate_count))
        status = lapse_complain("power", "not enough memory");
    else {
        for (uint32_t i = 0; i < findings.count; i++)
            print_need(findings.findings[i].gate, findings.findings[i].change, comparison->base_runs, power);
        for (uint32_t i = 0; i < findings.unmatched_count; i++)
            status = lapse_complain("power", "gate '%s' names nothing that was sampled", findings.unmatched[i]->text);
        lapse_gate_findings_fini(&findings);
    }
    lapse_comparison_destroy(comparison);
    return status;
}

int lapse_command_power(int argc, char **argv)
{
    static const struct option options[] = {
        { "gate", required_argument, NULL, 'g' }, { "power", required_argument, NULL, 'p' },
        { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 },
    };
    static const struct lapse_profile_options profile_options = { 0 };
    struct lapse_gate gates[MAX_GATES];
    uint32_t gate_count = 0;
    double power = 0.9;
    struct lapse_profile *profile;
    char error[512], *end;
    int option, status = 0;
    while (!status && (option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'g') {
            if (gate_count == MAX_GATES)
                status = lapse_complain("power", "too many gates");
            else if (lapse_gate_parse(&gates[gate_count], optarg, error, sizeof error))
                status = lapse_complain("power", "%s", error);
            else
                gate_count++;
        } else if (option == 'p') {
            power = strtod(optarg, &end);
            if (*end || !(power >= 0.5 && power <= 0.99))
                status = lapse_complain("power", "--power is a number from 0.5 to 0.99");
        } else if (option == 'h') {
            return lapse_show_help("power", help);
        } else
            status = LAPSE_STATUS_BAD;
    }
    if (!status && (optind != argc - 1 || !gate_count))
        status = lapse_complain("power", "one recording and at least one --gate are wanted (see --help)");
    if (!status && lapse_profile_open(&profile, (const char *const *)&argv[optind], 1, &profile_options, error, sizeof error))
        status = lapse_complain("power", "%s", error);
    else if (!status) {
        status = print_needs(profile, gates, gate_count, power);
        lapse_profile_close(profile);
    }
    while (gate_count)
        lapse_gate_fini(&gates[--gate_count]);
    return status;
}
