/* SPDX-License-Identifier: MIT */
/* What is written beside the spool when a session ends: symbols into the spool, then OUT.folded.
 * OUT.events is in events.c; a snapshot of a running session. Context: the drain thread, within the exit budget.
 * Folded text: lines `name;name value`, sorted by their bytes, equal stacks summed, values in samples
 * of one period. No text is put together before it is written: nodes are compared where their paths
 * part, so that memory grows with the number of stacks and not with their length. */
#include "outputs.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "message.h"
#include "sort.h"
#include "state.h"
#include "symbols.h"
#include "sys.h"
#include "text.h"
#include "walk.h"

#define NAME_MAX_BYTES 4096u

static const char *const pseudo_names[] = {
    "", "[truncated]", "[unwind failed]", "[not sampled]",
};

void lapse_writer_open(struct lapse_writer *writer, struct lapse_store *store, const char *suffix)
{
    writer->offset = writer->size = 0;
    writer->store = store;
    writer->fd = lapse_spool_create_output(&store->spool, suffix, writer->path);
    writer->error = writer->fd < 0 ? writer->fd : 0;
    writer->bytes = lapse_arena_resize(&store->arena, NULL, 0, LAPSE_WRITER_SIZE);
    if (!writer->bytes)
        writer->error = -ENOMEM;
}

static void write_out(struct lapse_writer *writer)
{
    if (!writer->error)
        writer->error = lapse_spool_write_all(writer->fd, writer->bytes, writer->size, writer->offset);
    writer->offset += writer->size;
    writer->size = 0;
}

void lapse_writer_bytes(struct lapse_writer *writer, const char *bytes, size_t size)
{
    while (size && !writer->error) {
        size_t part = LAPSE_WRITER_SIZE - writer->size;
        part = part < size ? part : size;
        memcpy(writer->bytes + writer->size, bytes, part);
        writer->size += part;
        bytes += part;
        size -= part;
        if (writer->size == LAPSE_WRITER_SIZE)
            write_out(writer);
    }
}

void lapse_writer_string(struct lapse_writer *writer, const char *string)
{
    lapse_writer_bytes(writer, string, strlen(string));
}

void lapse_writer_number(struct lapse_writer *writer, uint64_t number)
{
    char digits[24];
    struct lapse_text text = { digits, 0, sizeof digits };
    lapse_text_number(&text, number);
    lapse_writer_bytes(writer, digits, text.size);
}

void lapse_writer_close(struct lapse_writer *writer)
{
    struct stat status;
    write_out(writer);
    if (writer->error && writer->fd >= 0 && lapse_sys(SYS_fstat, writer->fd, &status) == 0 &&
        status.st_size == 0)
        lapse_sys(SYS_unlink, writer->path); /* not a byte went in: no empty file stays behind */
    if (writer->fd >= 0)
        lapse_sys(SYS_close, writer->fd);
    if (writer->error) {
        lapse_message(LAPSE_MESSAGE_OUTPUT, writer->path, ": cannot be written: ",
                      lapse_error_text(writer->error), NULL);
        writer->store->write_errors++;
        if (!writer->store->first_error)
            writer->store->first_error = writer->error;
    }
    lapse_arena_resize(&writer->store->arena, writer->bytes, LAPSE_WRITER_SIZE, 0);
}

static bool function_less(void *context, uint32_t a, uint32_t b)
{
    const struct lapse_call_node *nodes = context;
    return nodes[a].function < nodes[b].function;
}

static void *array(struct lapse_store *store, size_t count, size_t item)
{
    void *memory = lapse_arena_resize(&store->arena, NULL, 0, count * item + 1);
    if (memory)
        memset(memory, 0, count * item);
    return memory;
}

/* The distinct functions of all nodes, ascending. */
static int collect_functions(struct lapse_names *names)
{
    struct lapse_store *store = names->store;
    uint32_t count;
    const struct lapse_call_node *nodes = lapse_call_tree_nodes(store->tree, &count);
    uint32_t *order = array(store, count, sizeof *order);
    names->functions = array(store, count, sizeof *names->functions);
    if (!order || !names->functions)
        return -ENOMEM;
    for (uint32_t i = 1; i < count; i++)
        order[i - 1] = i;
    lapse_sort(order, count - 1, function_less, (void *)nodes);
    for (uint32_t i = 0; i + 1 < count; i++) {
        uint64_t function = nodes[order[i]].function;
        if (function > LAPSE_PSEUDO_LAST &&
            (!names->count || names->functions[names->count - 1].function != function))
            names->functions[names->count++].function = function;
    }
    lapse_arena_resize(&store->arena, order, count * sizeof *order + 1, 0);
    return 0;
}

static const char *keep(struct lapse_store *store, const char *text, size_t size)
{
    char *copy = lapse_arena_resize(&store->arena, NULL, 0, size + 1);
    if (!copy)
        return NULL;
    memcpy(copy, text, size);
    copy[size] = 0;
    return copy;
}

void lapse_names_set(struct lapse_names *names, uint32_t i, const char *system_name)
{
    char name[NAME_MAX_BYTES];
    struct lapse_function_name *function = &names->functions[i];
    if (function->name)
        return;
    uint32_t size = lapse_demangle(name, sizeof name - 1, system_name, LAPSE_DEMANGLE_FULL);
    function->system_name = system_name;
    function->name = keep(names->store, name, size);
}

static void take_answers(struct lapse_names *names, const struct lapse_symbol_request *requests,
                         uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!requests[i].system_name)
            continue;
        lapse_names_set(names, first + i, requests[i].system_name);
        names->functions[first + i].start = requests[i].start;
        names->functions[first + i].size = requests[i].size;
    }
}

static void say_budget(void)
{
    lapse_message(LAPSE_MESSAGE_BUDGET, "LAPSE_EXIT_BUDGET_MS was not enough for all names", NULL, NULL, NULL);
}

/* Names for functions [first, first + count), all in one module. */
static void name_functions(struct lapse_names *names, const struct lapse_store_module *known,
                           uint32_t first, uint32_t count, uint64_t deadline_ns)
{
    struct lapse_store *store = names->store;
    struct lapse_symbol_request *requests = array(store, count, sizeof *requests);
    if (!requests)
        return;
    for (uint32_t i = 0; i < count; i++)
        requests[i].address = lapse_function_address(names->functions[first + i].function);
    int result = lapse_symbols_find_until(&known->module, requests, count, &store->allocator, deadline_ns);
    take_answers(names, requests, first, count);
    store->unread_modules += result == -ESTALE;
    if (result == -ETIME)
        say_budget();
    lapse_arena_resize(&store->arena, requests, count * sizeof *requests + 1, 0);
}

static const struct lapse_store_module *module_of(const struct lapse_names *names, uint32_t i)
{
    uint64_t from_ns, until_ns;
    return lapse_store_module_of(names->store, names->functions[i].function, &from_ns, &until_ns);
}

/* `module+0xstart` for what no symbol table names, where that says anything. */
static void name_by_address(struct lapse_names *names, uint32_t i)
{
    struct lapse_function_name *function = &names->functions[i];
    uint64_t address = lapse_function_address(function->function);
    char bytes[512];
    struct lapse_text text = { bytes, 0, sizeof bytes };
    const struct lapse_store_module *known = module_of(names, i);
    const char *path = known ? known->module.path : "[unknown]";
    const char *slash = path[0] == '/' ? strrchr(path, '/') : NULL;
    lapse_text_string(&text, slash ? slash + 1 : path);
    if (path[0] != '[') {
        lapse_text_string(&text, "+");
        lapse_text_hex(&text, (function->size ? function->start : address) - known->module.bias);
    }
    function->name = keep(names->store, bytes, text.size);
    if (!function->name)
        function->name = "[unknown]";
}

/* Code without names and without unwind information: the stretch that it lies in stands for it, so that
 * its addresses do not scatter. */
static void find_stretches(struct lapse_names *names)
{
    for (uint32_t i = 0; i < names->count; i++) {
        struct lapse_function_name *function = &names->functions[i];
        uint64_t address = lapse_function_address(function->function);
        int covered = 1;
        uint64_t start = function->name || function->run_time ? 0 : lapse_unwind_function(address, &covered);
        if (covered || !start || start > address)
            continue;
        function->start = start;
        function->size = address + 1 - start;
    }
}

static void resolve_names(struct lapse_names *names, uint64_t deadline_ns)
{
    for (uint32_t i = 0, next; i < names->count; i = next) {
        const struct lapse_store_module *known = module_of(names, i);
        bool run_time = !known || lapse_is_run_time_code(known->module.path);
        for (next = i; next < names->count && module_of(names, next) == known; next++)
            names->functions[next].run_time = run_time;
        if (run_time)
            continue;
        if (lapse_sys_clock(CLOCK_MONOTONIC) < deadline_ns)
            name_functions(names, known, i, next - i, deadline_ns);
        else
            say_budget();
    }
    if (lapse_run_time_names_find(names, deadline_ns) == -ETIME)
        say_budget();
    find_stretches(names);
}

/* Into the spool, or what stands for it. */
static void write_names(struct lapse_names *names)
{
    lapse_run_time_names_write(names);
    lapse_store_write_symbols(names->store, names->functions, names->count);
}

/* Where the function stands, or would stand, in the ascending list. */
static uint32_t position_of(const struct lapse_names *names, uint64_t function)
{
    uint32_t low = 0, high = names->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (names->functions[middle].function < function)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const char *lapse_names_of(const struct lapse_names *names, uint64_t function)
{
    if (function <= LAPSE_PSEUDO_LAST)
        return pseudo_names[function];
    uint32_t at = position_of(names, function);
    return at < names->count && names->functions[at].function == function
               ? names->functions[at].name : "[unknown]";
}

/* Stacks by name: a call tree whose functions are numbers of folded names. */
struct folding {
    struct lapse_store *store;
    struct lapse_call_tree *tree;
    const struct lapse_call_node *nodes;
    const char **names; /* folded, by number */
    uint32_t name_count;
    uint64_t *weights;  /* by node of `tree` */
    uint32_t count;
};

static bool name_less(void *context, uint32_t a, uint32_t b)
{
    const char **names = context;
    return strcmp(names[a], names[b]) < 0;
}

/* The ancestor of `node` right below `ancestor`. */
static uint32_t below(const struct folding *folding, uint32_t node, uint32_t ancestor)
{
    while (folding->nodes[node].parent != ancestor)
        node = folding->nodes[node].parent;
    return node;
}

static bool line_less(void *context, uint32_t a, uint32_t b)
{
    const struct folding *folding = context;
    uint32_t common = lapse_call_tree_common(folding->tree, a, b);
    if (common == a || common == b)
        return common == a && a != b;
    uint32_t child_a = below(folding, a, common), child_b = below(folding, b, common);
    const unsigned char *x = (const unsigned char *)folding->names[folding->nodes[child_a].function];
    const unsigned char *y = (const unsigned char *)folding->names[folding->nodes[child_b].function];
    for (; *x && *x == *y; x++)
        y++;
    /* Where a name ends its line goes on with `;`, or ends too. */
    unsigned char end_a = *x ? *x : child_a == a ? 0 : ';', end_b = *y ? *y : child_b == b ? 0 : ';';
    return end_a < end_b;
}

/* Number of the folded form of each distinct name: equal names get one number. `ids[i]` is that of
 * names->functions[i]; the pseudo-functions come first. */
static int number_names(struct folding *folding, const struct lapse_names *names, uint32_t *ids,
                        uint32_t *order)
{
    char folded[NAME_MAX_BYTES];
    uint32_t total = names->count + LAPSE_PSEUDO_LAST + 1;
    for (uint32_t i = 0; i < total; i++) {
        const char *name = i <= LAPSE_PSEUDO_LAST ? pseudo_names[i] : names->functions[i - LAPSE_PSEUDO_LAST - 1].name;
        size_t size = lapse_folded_name(folded, sizeof folded, name);
        folding->names[i] = keep(folding->store, folded, size);
        if (!folding->names[i])
            return -ENOMEM;
        order[i] = i;
    }
    lapse_sort(order, total, name_less, folding->names);
    for (uint32_t i = 0; i < total; i++)
        ids[order[i]] = i && !strcmp(folding->names[order[i]], folding->names[order[i - 1]])
                            ? ids[order[i - 1]] : order[i];
    return 0;
}

static uint32_t function_number(const struct lapse_names *names, uint64_t function)
{
    if (function <= LAPSE_PSEUDO_LAST)
        return (uint32_t)function;
    return position_of(names, function) + LAPSE_PSEUDO_LAST + 1;
}

/* The store's tree, merged by name. */
static int merge_by_name(struct folding *folding, const struct lapse_names *names, const uint32_t *ids)
{
    struct lapse_store *store = folding->store;
    uint32_t count;
    const struct lapse_call_node *nodes = lapse_call_tree_nodes(store->tree, &count);
    uint32_t *merged = array(store, count, sizeof *merged);
    folding->weights = array(store, count, sizeof *folding->weights);
    int result = lapse_call_tree_create(&folding->tree, &store->allocator);
    if (result || !merged || !folding->weights)
        return result ? result : -ENOMEM;
    for (uint32_t i = 1; i < count; i++) {
        uint64_t id = ids[function_number(names, nodes[i].function)];
        merged[i] = lapse_call_tree_child(folding->tree, merged[nodes[i].parent], 0, id, 0);
        if (!merged[i])
            return -ENOMEM;
        if (i < store->weights_capacity)
            folding->weights[merged[i]] += store->weights[i];
    }
    folding->nodes = lapse_call_tree_nodes(folding->tree, &folding->count);
    lapse_arena_resize(&store->arena, merged, count * sizeof *merged + 1, 0);
    return 0;
}

static void write_line(const struct folding *folding, struct lapse_writer *writer, uint32_t *path,
                       uint32_t node)
{
    uint64_t period = lapse_runtime.period_ns;
    uint64_t value = (folding->weights[node] + period / 2) / period;
    uint32_t depth = 0;
    if (!value)
        return;
    for (uint32_t at = node; at; at = folding->nodes[at].parent)
        path[depth++] = at;
    while (depth--) {
        lapse_writer_string(writer, folding->names[folding->nodes[path[depth]].function]);
        lapse_writer_string(writer, depth ? ";" : " ");
    }
    lapse_writer_number(writer, value);
    lapse_writer_string(writer, "\n");
}

static int fold(struct folding *folding, const struct lapse_names *names, struct lapse_writer *writer)
{
    struct lapse_store *store = folding->store;
    uint32_t total = names->count + LAPSE_PSEUDO_LAST + 1, lines = 0, deepest = 0;
    uint32_t *ids = array(store, total, sizeof *ids), *order = array(store, total, sizeof *order);
    folding->names = array(store, total, sizeof *folding->names);
    if (!ids || !order || !folding->names)
        return -ENOMEM;
    int result = number_names(folding, names, ids, order);
    if (!result)
        result = merge_by_name(folding, names, ids);
    if (result)
        return result;
    uint32_t *stacks = array(store, folding->count, sizeof *stacks);
    for (uint32_t i = 1; stacks && i < folding->count; i++) {
        if (folding->weights[i])
            stacks[lines++] = i;
        deepest = folding->nodes[i].depth > deepest ? folding->nodes[i].depth : deepest;
    }
    uint32_t *path = array(store, deepest + 1, sizeof *path);
    if (!stacks || !path)
        return -ENOMEM;
    lapse_sort(stacks, lines, line_less, folding);
    for (uint32_t i = 0; i < lines; i++)
        write_line(folding, writer, path, stacks[i]);
    return 0;
}

static void write_folded(struct lapse_names *names)
{
    struct folding folding = { .store = names->store };
    struct lapse_writer writer;
    lapse_writer_open(&writer, names->store, ".folded");
    int result = writer.error ? 0 : fold(&folding, names, &writer);
    if (!writer.error)
        writer.error = result;
    lapse_writer_close(&writer);
}

void lapse_outputs_write(struct lapse_store *store, uint64_t deadline_ns)
{
    struct lapse_names names = { .store = store };
    if (collect_functions(&names))
        return;
    resolve_names(&names, deadline_ns);
    write_names(&names);
    for (uint32_t i = 0; i < names.count; i++)
        if (!names.functions[i].name)
            name_by_address(&names, i);
    if (lapse_runtime.settings.exports & LAPSE_EXPORT_FOLDED)
        write_folded(&names);
    if (lapse_runtime.settings.exports & LAPSE_EXPORT_EVENTS)
        lapse_events_write(&names);
}

/* The spool's bytes so far. */
static int copy_spool(struct lapse_spool *from, int to)
{
    static char bytes[65536];
    for (uint64_t at = 0; at < from->size;) {
        long got = lapse_spool_read(from, bytes, sizeof bytes, at);
        int error = got > 0 ? lapse_spool_write_all(to, bytes, (size_t)got, at) : (int)got;
        if (got <= 0 || error)
            return got ? error : -EIO;
        at += (uint64_t)got;
    }
    return 0;
}

/* Names into the snapshot alone: the store writes chunks, so it is lent the other file for a moment. */
static void add_names(struct lapse_store *store, int fd)
{
    struct lapse_names names = { .store = store };
    struct stat status;
    if (collect_functions(&names) || lapse_sys(SYS_fstat, fd, &status))
        return;
    resolve_names(&names, lapse_sys_clock(CLOCK_MONOTONIC) + lapse_runtime.settings.exit_budget_ms * UINT64_C(500000));
    static struct lapse_spool own;
    memcpy((void *)&own, &store->spool, sizeof own);
    atomic_store_explicit(&store->spool.fd, fd, memory_order_relaxed);
    store->spool.device = status.st_dev;
    store->spool.inode = status.st_ino;
    write_names(&names);
    store->wire.size = 0; /* a failed write stays out of the session's own file */
    store->unsent = false;
    memcpy((void *)&store->spool, &own, sizeof own);
    for (uint32_t i = 0; i < names.count; i++)
        if (names.functions[i].name)
            lapse_arena_resize(&store->arena, (char *)names.functions[i].name,
                               strlen(names.functions[i].name) + 1, 0);
    lapse_run_time_names_free(&names);
}

int lapse_outputs_snapshot(struct lapse_store *store, const char *path)
{
    if (!store->header_written || store->unsent)
        return store->unsent ? store->first_error : -ENODATA;
    long fd = lapse_sys(SYS_open, path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0)
        return (int)fd;
    int result = copy_spool(&store->spool, (int)fd);
    if (!result)
        add_names(store, (int)fd);
    else
        lapse_sys(SYS_unlink, path);
    lapse_sys(SYS_close, fd);
    return result;
}
