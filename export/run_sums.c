/* SPDX-License-Identifier: MIT */
#include "run_sums.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static bool is_chosen(const struct lapse_comparison_input *input,
                      const struct lapse_profile_process *process)
{
    return input->variant == LAPSE_ANY_VARIANT || process->variant == input->variant;
}

/* Number the runs of a side: those of the first input, then those of the next. */
static int number_runs(struct lapse_run_sums *side)
{
    side->first_run = calloc(side->input_count + 1, sizeof *side->first_run);
    if (!side->first_run)
        return -ENOMEM;
    for (uint32_t i = 0; i < side->input_count; i++) {
        const struct lapse_profile *profile = side->inputs[i].profile;
        uint32_t runs = profile->process_count ? 0 : 1;
        for (uint32_t p = 0; p < profile->process_count; p++)
            if (is_chosen(&side->inputs[i], &profile->processes[p]) &&
                profile->processes[p].run_index >= runs)
                runs = profile->processes[p].run_index + 1;
        side->first_run[i] = side->run_count;
        side->run_count += runs;
    }
    return 0;
}

/* CPU time of each run, where every process of it told its own. */
static int add_exact_totals(struct lapse_run_sums *side)
{
    side->exact_ns = calloc(side->run_count ? side->run_count : 1, sizeof *side->exact_ns);
    if (!side->exact_ns)
        return -ENOMEM;
    for (uint32_t i = 0; i < side->input_count; i++) {
        const struct lapse_profile *profile = side->inputs[i].profile;
        if (!profile->process_count)
            side->exact_ns[side->first_run[i]] = NAN;
        for (uint32_t p = 0; p < profile->process_count; p++) {
            const struct lapse_profile_process *process = &profile->processes[p];
            if (!is_chosen(&side->inputs[i], process))
                continue;
            bool known = process->clock == LAPSE_RECORDED_CPU && process->cpu_ns;
            side->exact_ns[side->first_run[i] + process->run_index] +=
                known ? (double)process->cpu_ns : NAN;
        }
    }
    return 0;
}

struct gather {
    struct lapse_run_sums *side;
    const struct lapse_comparison_input *input;
    uint32_t first_run;
    const uint32_t *map;
    double seen; /* weight so far, for blocks */
};

static void add(struct gather *g, uint32_t column, uint32_t leaf, double weight, double squares,
                uint64_t count)
{
    const struct lapse_profile *profile = g->input->profile;
    struct lapse_run_cell *cells[2] = {
        &g->side->sums[column],
        &g->side->self[(size_t)g->map[profile->leaves[leaf].node] * g->side->columns + column],
    };
    for (int i = 0; i < 2; i++) {
        cells[i]->weight += weight;
        cells[i]->squares += squares;
        cells[i]->count += count;
    }
}

static int add_sample(void *context, const struct lapse_profile_sample *sample)
{
    struct gather *g = context;
    const struct lapse_profile *profile = g->input->profile;
    const struct lapse_profile_process *process =
        &profile->processes[profile->threads[sample->thread].process];
    double weight = (double)sample->weight_ns;
    if (!is_chosen(g->input, process))
        return 0;
    uint32_t column = g->first_run + process->run_index;
    if (g->side->blocks) {
        column = (uint32_t)(g->seen / g->side->weight * g->side->columns);
        if (column >= g->side->columns)
            column = g->side->columns - 1;
        g->seen += weight;
    }
    add(g, column, sample->leaf, weight, weight * weight, 1);
    return 0;
}

/* Folded text: one column, values are counts of samples of one unit. */
static void add_leaves(struct gather *g)
{
    const struct lapse_profile *profile = g->input->profile;
    for (uint32_t i = 0; i < profile->leaf_count; i++)
        add(g, g->first_run, i, (double)profile->leaves[i].weight_ns,
            (double)profile->leaves[i].weight_ns, profile->leaves[i].count);
}

static int weigh(void *context, const struct lapse_profile_sample *sample)
{
    struct gather *g = context;
    const struct lapse_profile *profile = g->input->profile;
    if (is_chosen(g->input, &profile->processes[profile->threads[sample->thread].process]))
        g->side->weight += (double)sample->weight_ns;
    return 0;
}

static int each_input(struct lapse_run_sums *side, uint32_t **maps, lapse_each_profile_sample *each,
                      bool leaves)
{
    struct gather g = { .side = side };
    for (uint32_t i = 0; i < side->input_count; i++) {
        g.input = &side->inputs[i];
        g.first_run = side->first_run[i];
        g.map = maps[i];
        int result = 0;
        if (g.input->profile->has_times)
            result = lapse_profile_each_sample(g.input->profile, each, &g);
        else if (leaves)
            add_leaves(&g);
        if (result < 0)
            return result;
    }
    return 0;
}

int lapse_run_sums_fill(struct lapse_run_sums *side, uint32_t **maps, uint32_t node_count,
                        uint32_t blocks)
{
    bool has_times = side->input_count && side->inputs[0].profile->has_times;
    side->blocks = side->run_count == 1 && has_times;
    side->columns = side->blocks ? blocks : side->run_count;
    side->sums = calloc(side->columns + 1, sizeof *side->sums);
    side->scale = calloc(side->columns + 1, sizeof *side->scale);
    side->self = calloc((size_t)node_count * side->columns + 1, sizeof *side->self);
    if (!side->sums || !side->scale || !side->self)
        return -ENOMEM;
    int result = side->blocks ? each_input(side, maps, weigh, false) : 0;
    if (!result)
        result = each_input(side, maps, add_sample, true);
    for (uint32_t column = 0; column < side->columns; column++) {
        double sampled = side->blocks ? side->weight : side->sums[column].weight;
        double exact = side->exact_ns[side->blocks ? 0 : column];
        side->scale[column] =
            (exact > 0 && sampled > 0 ? exact / sampled : 1) * (side->blocks ? blocks : 1);
    }
    return result;
}

int lapse_run_sums_count(struct lapse_run_sums *side)
{
    int result = number_runs(side);
    return result ? result : add_exact_totals(side);
}

bool lapse_run_sums_know_totals(const struct lapse_run_sums *side)
{
    for (uint32_t i = 0; i < side->run_count; i++)
        if (!(side->exact_ns[i] > 0))
            return false;
    return side->run_count > 0;
}

void lapse_run_sums_forget_totals(struct lapse_run_sums *side)
{
    for (uint32_t i = 0; i < side->run_count; i++)
        side->exact_ns[i] = NAN;
}

void lapse_run_sums_fini(struct lapse_run_sums *side)
{
    free(side->first_run);
    free(side->exact_ns);
    free(side->scale);
    free(side->sums);
    free(side->self);
}
