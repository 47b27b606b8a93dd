/* SPDX-License-Identifier: MIT */
/* lapse annotate: a function's instructions (by objdump) with the weight of each and the source
 * lines between them. A weight stands at the instruction that was about to run when the sample
 * came. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "input.h"
#include "name_source.h"
#include "source_text.h"
#include "table.h"

extern char **environ;

static const char help[] =
    "usage: lapse annotate FUNCTION RECORDING...\n"
    "\n"
    "Shows the instructions of a function with the share of its own time that each one had, and "
    "the\n"
    "source lines (of inlined functions too) where the files are there. Instructions come from "
    "objdump\n"
    "(Debian: binutils); without it, or without the file that ran, only addresses are listed.\n"
    "\n"
    "      --symfs=DIR, --debug-dir=DIR, --demangle=full|simple|none\n"
    "  -h, --help   this text\n";

struct hot_pc {
    uint64_t address, count, weight_ns;
}; /* address as linked */

struct annotation {
    struct lapse_profile *profile;
    struct lapse_offline *offline;
    const struct lapse_profile_module *module;
    const char *name;
    struct hot_pc *pcs;
    uint32_t pc_count;
    uint64_t weight_ns, count;
    struct lapse_source_text source;
    const char *last_file;
    uint32_t last_line;
};

static int by_address(const void *a, const void *b)
{
    const struct hot_pc *x = a, *y = b;
    return (x->address > y->address) - (x->address < y->address);
}

/* The compiled function that a leaf's pc lies in: inlined frames are parts of it. */
static uint32_t compiled_function(const struct lapse_profile *profile, uint32_t node)
{
    while (node && profile->nodes[node].flags & LAPSE_NODE_INLINED)
        node = profile->nodes[node].parent;
    return node ? profile->nodes[node].function : LAPSE_NONE;
}

/* A function by its full name, else by a part of it that only one name has; of several modules with
 * that name the first that was sampled. */
static uint32_t find_function(const struct lapse_profile *profile, const char *name)
{
    uint32_t found = LAPSE_NONE, others = 0;
    for (int exact = 1; exact >= 0 && found == LAPSE_NONE; exact--) {
        for (uint32_t i = 0; i < profile->leaf_count; i++) {
            uint32_t function = compiled_function(profile, profile->leaves[i].node);
            if (function == LAPSE_NONE || !profile->leaves[i].pc)
                continue;
            const char *has = profile->functions[function].name;
            if (exact ? strcmp(has, name) != 0 : !strstr(has, name))
                continue;
            if (found == LAPSE_NONE)
                found = function;
            others += strcmp(has, profile->functions[found].name) != 0;
        }
    }
    if (found == LAPSE_NONE)
        lapse_complain("annotate", "%s: no sample is in such a function", name);
    else if (others)
        lapse_complain("annotate", "%s: several functions have that in their name", name);
    return others ? LAPSE_NONE : found;
}

static int collect(struct annotation *annotation, uint32_t wanted)
{
    const struct lapse_profile *profile = annotation->profile;
    uint32_t kept = 0;
    annotation->pcs = calloc(profile->leaf_count + 1, sizeof *annotation->pcs);
    if (!annotation->pcs)
        return -ENOMEM;
    for (uint32_t i = 0; i < profile->leaf_count; i++) {
        const struct lapse_profile_leaf *leaf = &profile->leaves[i];
        if (!leaf->pc || compiled_function(profile, leaf->node) != wanted)
            continue;
        annotation->pcs[annotation->pc_count++] = (struct hot_pc){
            leaf->pc - annotation->module->bias, leaf->count, leaf->weight_ns
        };
        annotation->weight_ns += leaf->weight_ns;
        annotation->count += leaf->count;
    }
    qsort(annotation->pcs, annotation->pc_count, sizeof *annotation->pcs, by_address);
    for (uint32_t i = 0; i < annotation->pc_count; i++) {
        if (kept && annotation->pcs[kept - 1].address == annotation->pcs[i].address) {
            annotation->pcs[kept - 1].weight_ns += annotation->pcs[i].weight_ns;
            annotation->pcs[kept - 1].count += annotation->pcs[i].count;
        } else {
            annotation->pcs[kept++] = annotation->pcs[i];
        }
    }
    annotation->pc_count = kept;
    return 0;
}

/* The line of source that an instruction belongs to, when it is another than before. */
static void write_source(struct annotation *annotation, uint64_t address)
{
    struct lapse_inline_frame frames[64];
    uint32_t count;
    if (lapse_offline_file_frames(annotation->offline, annotation->module->path,
                                  annotation->module->build_id, address, frames, 64, &count)
        || !count)
        return;
    const struct lapse_inline_frame *inner = &frames[count - 1];
    if (!inner->file || !inner->line
        || (inner->line == annotation->last_line && inner->file == annotation->last_file))
        return;
    annotation->last_file = inner->file;
    annotation->last_line = inner->line;
    const char *text = lapse_source_line(&annotation->source, inner->file, inner->line);
    const char *slash = strrchr(inner->file, '/');
    fputs("                              ", stdout);
    lapse_table_name(stdout, LAPSE_FORM_TEXT, slash ? slash + 1 : inner->file);
    printf(":%" PRIu32 "  ", inner->line);
    lapse_table_name(stdout, LAPSE_FORM_TEXT, text ? text : "");
    putchar('\n');
}

static void write_instruction(const struct annotation *annotation, uint64_t address,
                              const char *text)
{
    struct hot_pc key = { .address = address };
    const struct hot_pc *pc = bsearch(&key, annotation->pcs, annotation->pc_count, sizeof key,
                                      by_address);
    if (pc)
        printf("%6.2f %% %8" PRIu64,
               annotation->weight_ns ? 100.0 * (double)pc->weight_ns / (double)annotation->weight_ns
                                     : 0.0,
               pc->count);
    else
        printf("%17s", "");
    printf("  %8" PRIx64 "  ", address);
    lapse_table_name(stdout, LAPSE_FORM_TEXT, text);
    putchar('\n');
}

/* `  401136:<tab>instruction` lines; everything else that objdump writes is passed over. */
static uint32_t write_listing(struct annotation *annotation, FILE *listing)
{
    char *line = NULL, *end;
    size_t capacity = 0;
    uint32_t written = 0;
    while (getline(&line, &capacity, listing) >= 0) {
        uint64_t address = strtoull(line, &end, 16);
        if (end == line || *end != ':' || (end[1] != '\t' && end[1] != ' '))
            continue;
        end += 1 + strspn(end + 1, " \t");
        for (char *at = end; *at; at++)
            if (*at == '\t' || *at == '\n')
                *at = ' ';
        write_source(annotation, address);
        write_instruction(annotation, address, end);
        written++;
    }
    free(line);
    return written;
}

/* Returns the number of instructions; 0 when objdump is missing or could not read the file. */
static uint32_t disassemble(struct annotation *annotation, const char *file, uint64_t start,
                            uint64_t end)
{
    char from[48], to[48];
    char *arguments[] = {
        "objdump", "-d", "-C", "--no-show-raw-insn", from, to, (char *)file, NULL
    };
    posix_spawn_file_actions_t actions;
    int pipes[2], status;
    pid_t pid;
    uint32_t written = 0;
    snprintf(from, sizeof from, "--start-address=%#" PRIx64, start);
    snprintf(to, sizeof to, "--stop-address=%#" PRIx64, end);
    if (pipe(pipes))
        return 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO);
    posix_spawn_file_actions_addclose(&actions, pipes[0]);
    posix_spawn_file_actions_addclose(&actions, pipes[1]);
    int error = posix_spawnp(&pid, "objdump", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(pipes[1]);
    FILE *listing = fdopen(pipes[0], "r");
    if (!error && listing)
        written = write_listing(annotation, listing);
    if (listing)
        fclose(listing);
    else
        close(pipes[0]);
    if (!error)
        waitpid(pid, &status, 0);
    return written;
}

static void write_addresses(struct annotation *annotation)
{
    for (uint32_t i = 0; i < annotation->pc_count; i++) {
        write_source(annotation, annotation->pcs[i].address);
        write_instruction(annotation, annotation->pcs[i].address, "");
    }
}

static int annotate(struct annotation *annotation)
{
    struct lapse_offline_function function;
    uint32_t wanted = find_function(annotation->profile, annotation->name);
    if (wanted == LAPSE_NONE)
        return LAPSE_STATUS_BAD;
    annotation->name = annotation->profile->functions[wanted].name;
    uint32_t module = annotation->profile->functions[wanted].module;
    if (module == LAPSE_NONE)
        return lapse_complain("annotate", "%s: not in a file with code", annotation->name);
    annotation->module = &annotation->profile->modules[module];
    if (collect(annotation, wanted))
        return lapse_complain("annotate", "%s", strerror(ENOMEM));
    const char *path = annotation->module->path, *id = annotation->module->build_id;
    const char *file = lapse_offline_file_code(annotation->offline, path, id);
    bool found = lapse_offline_file_function(annotation->offline, path, id,
                                             annotation->pcs[0].address, &function)
                 && function.size;
    lapse_name_source_notes("annotate");
    lapse_table_name(stdout, LAPSE_FORM_TEXT, annotation->name);
    fputs("  in ", stdout);
    lapse_table_name(stdout, LAPSE_FORM_TEXT, path);
    printf(
        ": %" PRIu64
        " samples, %.3f s, inlined functions included\n\n   self  samples   address  instruction\n",
        annotation->count, (double)annotation->weight_ns * 1e-9);
    if (found && file
        && disassemble(annotation, file, function.start, function.start + function.size))
        return 0;
    fprintf(stderr, "lapse annotate: %s\n",
            file && found ? "objdump gave nothing; addresses only"
                          : "the file that ran is not here; addresses only");
    write_addresses(annotation);
    return 0;
}

int lapse_command_annotate(int argc, char **argv)
{
    static const struct option options[] = { { "help", no_argument, NULL, 'h' }, { 0 } };
    const struct lapse_input_options how = { .lines = true };
    for (int option; (option = getopt_long(argc, argv, "h", options, NULL)) != -1;) {
        if (option == 'h')
            return lapse_show_help("annotate", help);
        return LAPSE_STATUS_BAD;
    }
    if (argc - optind < 2)
        return lapse_complain("annotate", "a function and a recording are needed");
    struct annotation annotation = { .name = argv[optind], .offline = lapse_name_source() };
    if (!annotation.offline)
        return lapse_complain("annotate", "%s", strerror(ENOMEM));
    int status = lapse_input_open("annotate", &annotation.profile, argv + optind + 1,
                                  argc - optind - 1, &how);
    if (status)
        return status;
    status = annotate(&annotation);
    if (fflush(stdout) && !status && errno != EPIPE)
        status = lapse_complain("annotate", "standard output: %s", strerror(errno));
    lapse_source_text_free(&annotation.source);
    free(annotation.pcs);
    lapse_input_close(annotation.profile);
    return status;
}
