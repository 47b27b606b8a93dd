/* SPDX-License-Identifier: MIT */
/* How fast the engine and its tools are. Tab-separated: what, figure, unit, the demand, wall-clock
 * seconds. Engine figures are the best of several runs; those of the tools are one run each, with
 * the rate by CPU time and by the clock, since a shared machine stretches only the latter.
 *
 *   by names    stacks of depth 40, the innermost 5 frames differ from sample to sample
 *   by nodes    the same change at depth 40 and at depth 400: cost must not grow with depth
 *   lapse fold  edge text of such a stream, beside `cat` of the same file; then of a stream in which
 *               hardly a stack comes twice
 *   lapse merge four sorted folded files; the same files through `LC_ALL=C sort | awk` */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "call_tree.h"
#include "heap.h"
#include "lapse/diff.h"

enum { STACKS = 1024, SAMPLES = 400000, CHANGING = 5, ROUNDS = 5, NAMES = 400, DEEP = 400 };

static uint64_t edges;

static void count_edge(void *context, const struct lapse_edge *edge)
{
    (void)context;
    edges += edge->kind == LAPSE_EDGE_START;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double cpu_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void row(const char *what, double figure, const char *unit, const char *demand, double wall)
{
    printf("%s\t%.3g\t%s\t%s\t%.2f\n", what, figure, unit, demand, wall);
    fflush(stdout);
}

/* Function at `depth` of the i-th stack: fixed outside, always another one inside. */
static uint64_t function_at(uint32_t stack, uint32_t depth, uint32_t whole)
{
    if (depth + CHANGING < whole)
        return 1000 + depth;
    return 100000 + (stack * 7 + depth * 13) % NAMES;
}

static struct lapse_diff *make_engine(void)
{
    struct lapse_diff *diff;
    struct lapse_diff_options options = { .edge = count_edge };
    if (lapse_diff_create(&diff, &options))
        abort();
    return diff;
}

static double by_names(uint32_t depth)
{
    struct lapse_diff_frame *frames = calloc((size_t)STACKS * depth, sizeof *frames);
    double best = 1e9;
    for (uint32_t i = 0; i < STACKS * depth; i++)
        frames[i].function = function_at(i / depth, i % depth, depth);
    for (int round = 0; round < ROUNDS; round++) {
        struct lapse_diff *diff = make_engine();
        double start = cpu_now(), took;
        for (uint32_t i = 0; i < SAMPLES; i++)
            if (lapse_diff_push(diff, i + 1, 1, frames + (size_t)(i % STACKS) * depth, depth, 0))
                abort();
        took = cpu_now() - start;
        best = took < best ? took : best;
        lapse_diff_destroy(diff);
    }
    free(frames);
    return best;
}

static double by_nodes(uint32_t depth)
{
    struct lapse_call_tree *tree;
    uint32_t nodes[STACKS] = { 0 };
    double best = 1e9;
    if (lapse_call_tree_create(&tree, &lapse_heap))
        abort();
    for (uint32_t i = 0; i < STACKS; i++)
        for (uint32_t at = 0; at < depth; at++)
            nodes[i] = lapse_call_tree_child(tree, nodes[i], 0, function_at(i, at, depth), 0);
    for (int round = 0; round < ROUNDS; round++) {
        struct lapse_diff *diff = make_engine();
        double start = cpu_now(), took;
        for (uint32_t i = 0; i < SAMPLES; i++)
            if (lapse_diff_push_node(diff, i + 1, 1, tree, nodes[i % STACKS]))
                abort();
        took = cpu_now() - start;
        best = took < best ? took : best;
        lapse_diff_destroy(diff);
    }
    lapse_call_tree_destroy(tree);
    return best;
}

/* ---- tools ---- */

static char folder[] = "/tmp/lapse-bench-engine-XXXXXX";
static uint64_t state = 88172645463325252u;

static uint32_t roll(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)((state >> 20) % below);
}

static FILE *open_file(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        abort();
    return file;
}

static void write_edge(void *context, const struct lapse_edge *edge)
{
    fprintf(context, "%llu\t1\t%s\t%u\tmodule_%llu::function\n",
            (unsigned long long)edge->time_ns * 1000,
            edge->kind == LAPSE_EDGE_START ? "start" : "end", edge->depth,
            (unsigned long long)edge->function);
}

/* `stacks` different stacks in any order; 0: each frame that changes is drawn anew, so that hardly
 * a stack comes twice and the output is larger than the input. */
static void make_edges(const char *name, uint32_t stacks)
{
    struct lapse_diff *diff;
    struct lapse_diff_frame frames[40] = { 0 };
    FILE *file = open_file(name);
    struct lapse_diff_options options = { .edge = write_edge, .context = file };
    if (lapse_diff_create(&diff, &options))
        abort();
    for (uint32_t i = 0; i < 150000; i++) {
        uint32_t stack = stacks ? roll(stacks) : 0;
        for (uint32_t at = 0; at < 40; at++)
            frames[at].function = function_at(stacks ? stack : roll(40), at, 40);
        lapse_diff_push(diff, i + 1, 1, frames, 40, 0);
    }
    lapse_diff_finish(diff);
    lapse_diff_destroy(diff);
    fclose(file);
}

/* Sorted stacks with long common beginnings; most of them are in several files. */
static void make_folded(int number)
{
    char name[16];
    snprintf(name, sizeof name, "%d.folded", number);
    FILE *file = open_file(name);
    for (uint32_t i = 0; i < 300000; i++) {
        if (!roll(3))
            continue;
        fprintf(file, "program;main;run_the_loop;dispatch_event");
        for (uint32_t digit = 100000; digit; digit /= 10)
            fprintf(file, ";handler_number_%u_of_the_layer", i / digit % 10);
        fprintf(file, " %u\n", 1 + roll(1000000));
    }
    fclose(file);
}

static double megabytes(const char *pattern)
{
    char command[256];
    double bytes = 0;
    snprintf(command, sizeof command, "cat %s/%s | wc -c", folder, pattern);
    FILE *pipe = popen(command, "r");
    if (!pipe || fscanf(pipe, "%lf", &bytes) != 1)
        abort();
    pclose(pipe);
    return bytes / 1e6;
}

/* Run a shell command; returns its CPU seconds, children included. */
static double timed(const char *command, double *wall)
{
    struct rusage before, after;
    getrusage(RUSAGE_CHILDREN, &before);
    double start = now();
    if (system(command))
        fprintf(stderr, "failed: %s\n", command);
    *wall = now() - start;
    getrusage(RUSAGE_CHILDREN, &after);
    return (double)(after.ru_utime.tv_sec - before.ru_utime.tv_sec) +
           (double)(after.ru_stime.tv_sec - before.ru_stime.tv_sec) +
           1e-6 * (double)(after.ru_utime.tv_usec - before.ru_utime.tv_usec) +
           1e-6 * (double)(after.ru_stime.tv_usec - before.ru_stime.tv_usec);
}

static double tool(const char *what, const char *command, double size, const char *demand)
{
    char name[64];
    double wall, cpu = timed(command, &wall);
    snprintf(name, sizeof name, "%s, CPU time", what);
    row(name, size / cpu, "MB/s", demand, wall);
    snprintf(name, sizeof name, "%s, clock", what);
    row(name, size / wall, "MB/s", demand, wall);
    return wall;
}

static void tools(void)
{
    char command[1024];
    if (!mkdtemp(folder) || chdir(folder))
        abort();
    make_edges("edges", STACKS);
    make_edges("edges_new", 0);
    for (int i = 0; i < 4; i++)
        make_folded(i);
    double edge_size = megabytes("edges");
    tool("cat of the edges", "cat edges > copy", edge_size, "");
    tool("lapse fold", LAPSE_COMMAND " fold edges > folded", edge_size, ">= 150");
    tool("lapse fold, each stack new", LAPSE_COMMAND " fold edges_new > folded",
         megabytes("edges_new"), ">= 150");
    double size = megabytes("?.folded");
    double ours = tool("lapse merge", LAPSE_COMMAND " merge ?.folded > merged", size, ">= 200");
    snprintf(command, sizeof command, "LC_ALL=C sort ?.folded | awk '{ value = $NF; "
             "key = substr($0, 1, length($0) - length(value) - 1); "
             "if (key != before) { if (NR > 1) print before, sum; before = key; sum = 0 } "
             "sum += value } END { print before, sum }' > by_sort");
    double theirs = tool("sort | awk", command, size, "");
    row("merge against sort | awk, clock", ours / theirs, "ratio", "<= 1", ours + theirs);
    if (system("cmp merged by_sort"))
        fprintf(stderr, "merge and sort | awk differ\n");
    if (chdir("/"))
        abort();
    snprintf(command, sizeof command, "rm -r %s", folder);
    if (system(command))
        fprintf(stderr, "%s is left\n", folder);
}

int main(void)
{
    double names, nodes, deep;
    printf("what\tfigure\tunit\tdemand\tseconds\n");
    names = by_names(40);
    row("engine by names, depth 40", 40.0 * SAMPLES / names / 1e6, "M frames/s", ">= 20", names);
    nodes = by_nodes(40);
    row("engine by nodes, depth 40", 1e9 * nodes / SAMPLES, "ns/sample", "", nodes);
    deep = by_nodes(DEEP);
    row("engine by nodes, depth 400", 1e9 * deep / SAMPLES, "ns/sample", "", deep);
    row("depth 400 against depth 40", deep / nodes, "ratio", "0.8 to 1.2", 0);
    if (!edges)
        return 1;
    tools();
    return 0;
}
