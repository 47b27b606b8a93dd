/* SPDX-License-Identifier: MIT */
/* See importer.h. Chunks are cut before they reach the format's limit; a thread's samples of a chunk
 * are one block. Made-up addresses lie 2 GiB and more behind their module's start, where no program's
 * file has code: lines and names of a file of that path on this machine are not theirs. */
#include "importer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "call_tree.h"
#include "heap.h"
#include "intern.h"
#include "wire.h"

#define MODULE_SPAN (1ull << 33)
#define MODULE_BASE (1ull << 36)
#define BATCH 16384u                /* samples a chunk */
#define FIRST_PENDING 64u           /* room for samples at first */
#define EXPAND_MAX 20000000u        /* unless the caller says another bound */
#define NAME_MAX_BYTES 65536u
#define CHUNK_TAIL 32u              /* kept free for what every chunk ends with */

enum chunk_field {
    HEADER = 1, MODULES = 2, THREADS = 3, NODES = 4, SAMPLES = 5, SYMBOLS = 7, ADDRESSES = 8,
    LABEL_SETS = 9, COUNTERS = 11, END = 12, NOTES = 13, FIRST_NODE = 14, SESSION = 15,
};

struct function { const char *name, *system_name, *file; uint32_t line; uint64_t address; };
struct thread { uint32_t tid; const char *name; uint64_t last_ns; };
struct pending { uint32_t thread, node, labels; uint64_t pc, time_ns, weight_ns; uint32_t order; };
struct cell { uint64_t count, weight_ns; };

struct lapse_importer {
    FILE *to;
    int error;
    struct lapse_importer_head head;
    uint64_t start_ns, end_ns, samples, moved, expand_max;
    struct lapse_wire wire;
    struct lapse_strings strings;
    struct lapse_intern module_keys, function_keys, location_keys, thread_keys, cells;
    uint32_t *module_functions, *module_locations; /* how many each has */
    struct function *functions;
    struct { uint64_t address; uint32_t function; } *locations;
    struct thread *threads;
    struct lapse_strings label_texts;
    struct lapse_call_tree *tree;
    uint32_t node_count; /* written */
    uint32_t first_node; /* of the open chunk, 0 none yet */
    uint64_t session;    /* what every chunk repeats of the session's id */
    struct pending *pending;
    uint32_t pending_count, pending_capacity;
    struct cell *cell_sums;
};

static void fail(struct lapse_importer *importer, int error)
{
    if (!importer->error)
        importer->error = error;
}

static void flush_chunk(struct lapse_importer *importer)
{
    uint8_t head[LAPSE_CHUNK_HEAD];
    struct lapse_wire *wire = &importer->wire;
    if (wire->overflow)
        fail(importer, -EMSGSIZE);
    if (!wire->size || importer->error)
        return;
    wire->capacity += CHUNK_TAIL;
    lapse_wire_uint(wire, FIRST_NODE, importer->first_node);
    lapse_wire_fixed64(wire, SESSION, importer->session);
    wire->capacity -= CHUNK_TAIL;
    importer->first_node = 0;
    lapse_chunk_head(head, wire->bytes, (uint32_t)wire->size);
    if (fwrite(head, 1, sizeof head, importer->to) != sizeof head ||
        fwrite(wire->bytes, 1, wire->size, importer->to) != wire->size)
        fail(importer, errno ? -errno : -EIO);
    wire->size = 0;
}

static void make_room(struct lapse_importer *importer, size_t size)
{
    if (importer->wire.capacity - importer->wire.size < size)
        flush_chunk(importer);
}

/* Text in the schema is UTF-8 by contract of its readers, but never cut: only very long is. */
static void put_text(struct lapse_importer *importer, uint32_t field, const char *text)
{
    size_t size = text ? strlen(text) : 0;
    if (size)
        lapse_wire_bytes(&importer->wire, field, text,
                         size < NAME_MAX_BYTES ? size : NAME_MAX_BYTES);
}

int lapse_importer_create(struct lapse_importer **out, FILE *to)
{
    struct lapse_importer *importer = calloc(1, sizeof *importer);
    if (!importer)
        return -ENOMEM;
    importer->to = to;
    importer->expand_max = EXPAND_MAX;
    importer->wire.capacity = LAPSE_CHUNK_MAX - CHUNK_TAIL;
    importer->wire.bytes = malloc(LAPSE_CHUNK_MAX);
    int error = importer->wire.bytes ? 0 : -ENOMEM;
    if (!error)
        error = lapse_call_tree_create(&importer->tree, &lapse_heap);
    if (error) {
        lapse_importer_destroy(importer);
        return error;
    }
    *out = importer;
    return 0;
}

void lapse_importer_expand(struct lapse_importer *importer, uint64_t most)
{
    importer->expand_max = most;
}

void lapse_importer_destroy(struct lapse_importer *importer)
{
    if (!importer)
        return;
    if (importer->tree)
        lapse_call_tree_destroy(importer->tree);
    lapse_strings_free(&importer->strings);
    lapse_strings_free(&importer->label_texts);
    lapse_intern_fini(&importer->module_keys);
    lapse_intern_fini(&importer->function_keys);
    lapse_intern_fini(&importer->location_keys);
    lapse_intern_fini(&importer->thread_keys);
    lapse_intern_fini(&importer->cells);
    free(importer->wire.bytes);
    free(importer->module_functions);
    free(importer->module_locations);
    free(importer->functions);
    free(importer->locations);
    free(importer->threads);
    free(importer->pending);
    free(importer->cell_sums);
    free(importer);
}

void lapse_importer_head(struct lapse_importer *importer, const struct lapse_importer_head *head)
{
    uint64_t id[2] = { lapse_hash(0, head->identity), lapse_hash(1, head->identity) };
    importer->head = *head;
    importer->head.command = NULL; /* written below, not needed again */
    importer->head.program = lapse_strings_keep(&importer->strings, head->program);
    if (!importer->head.program) {
        importer->head.program = "";
        fail(importer, -ENOMEM);
    }
    importer->session = id[0];
    if (!importer->head.period_ns)
        importer->head.period_ns = 1;
    make_room(importer, 4 * NAME_MAX_BYTES);
    size_t mark = lapse_wire_begin(&importer->wire, HEADER);
    lapse_wire_uint(&importer->wire, 1, 1);
    lapse_wire_string(&importer->wire, 2, "lapse " LAPSE_VERSION " import");
    lapse_wire_bytes(&importer->wire, 3, id, sizeof id);
    lapse_wire_uint(&importer->wire, 6, head->pid ? head->pid : 1);
    put_text(importer, 9, head->program);
    if (head->command)
        put_text(importer, 10, head->command);
    lapse_wire_uint(&importer->wire, 12, head->wall ? 2 : 0);
    lapse_wire_uint(&importer->wire, 13, importer->head.period_ns);
    lapse_wire_uint(&importer->wire, 15, head->start_realtime_ns);
    lapse_wire_end(&importer->wire, mark);
}

static uint32_t text_number(struct lapse_importer *importer, const char *text)
{
    uint32_t number =
        lapse_strings_number(&importer->strings, text ? text : "", text ? strlen(text) : 0);
    if (number == LAPSE_INDEX_NONE)
        fail(importer, -ENOMEM);
    return number;
}

/* Number of a key; *is_new tells the caller to make room for what belongs to it. */
static uint32_t number_of(struct lapse_importer *importer, struct lapse_intern *intern,
                          struct lapse_key key, bool *is_new)
{
    uint32_t number = lapse_intern(intern, key, is_new);
    if (number == LAPSE_INDEX_NONE) {
        fail(importer, -ENOMEM);
        *is_new = false;
    }
    return number;
}

static void *grow(struct lapse_importer *importer, void *array, uint32_t count, size_t size)
{
    void *grown = lapse_array_grow(array, count, size);
    if (!grown)
        fail(importer, -ENOMEM);
    return grown;
}

static size_t hex_bytes(uint8_t *to, size_t size, const char *hex)
{
    size_t count = 0;
    for (unsigned byte; count < size && hex[2 * count] && hex[2 * count + 1] &&
                        sscanf(hex + 2 * count, "%2x", &byte) == 1; count++)
        to[count] = (uint8_t)byte;
    return count;
}

uint32_t lapse_importer_module(struct lapse_importer *importer, const char *path,
                               const char *build_id_hex)
{
    bool is_new;
    uint8_t build_id[32];
    struct lapse_key key = { { text_number(importer, path), text_number(importer, build_id_hex), 0,
                               0 } };
    uint32_t number = number_of(importer, &importer->module_keys, key, &is_new);
    if (!is_new)
        return number;
    uint32_t *functions = grow(importer, importer->module_functions, number, sizeof *functions);
    uint32_t *locations = grow(importer, importer->module_locations, number, sizeof *locations);
    if (functions)
        importer->module_functions = functions;
    if (locations)
        importer->module_locations = locations;
    if (!functions || !locations)
        return LAPSE_INDEX_NONE;
    functions[number] = locations[number] = 0;
    uint64_t start = MODULE_BASE + number * MODULE_SPAN;
    make_room(importer, 2 * NAME_MAX_BYTES);
    size_t mark = lapse_wire_begin(&importer->wire, MODULES);
    lapse_wire_uint(&importer->wire, 1, number + 1u);
    put_text(importer, 2, path);
    lapse_wire_bytes(&importer->wire, 3, build_id,
                     build_id_hex ? hex_bytes(build_id, sizeof build_id, build_id_hex) : 0);
    lapse_wire_uint(&importer->wire, 4, start);
    lapse_wire_uint(&importer->wire, 5, start + MODULE_SPAN);
    lapse_wire_uint(&importer->wire, 6, start);
    lapse_wire_end(&importer->wire, mark);
    return number;
}

/* Names that stand for missing frames are the schema's pseudo functions. */
static uint64_t pseudo_address(const char *name)
{
    static const char *const names[] = { "[truncated]", "[unwind failed]", "[not sampled]" };
    for (uint64_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return i + 1;
    return 0;
}

static void put_symbol(struct lapse_importer *importer, const struct function *function)
{
    make_room(importer, 4 * NAME_MAX_BYTES);
    size_t mark = lapse_wire_begin(&importer->wire, SYMBOLS);
    lapse_wire_uint(&importer->wire, 1, function->address);
    lapse_wire_uint(&importer->wire, 2, 1);
    put_text(importer, 3, *function->name ? function->name : "[unknown]");
    put_text(importer, 4, function->system_name);
    put_text(importer, 5, function->file);
    lapse_wire_uint(&importer->wire, 6, function->line);
    lapse_wire_end(&importer->wire, mark);
}

uint32_t lapse_importer_function(struct lapse_importer *importer,
                                 const struct lapse_imported_function *from)
{
    bool is_new;
    uint32_t module = from->module;
    if (module == LAPSE_INDEX_NONE)
        module = lapse_importer_module(importer, importer->head.program, NULL);
    struct lapse_key key = { { text_number(importer, from->name), text_number(importer, from->file),
                               module, text_number(importer, from->system_name) } };
    uint32_t number = number_of(importer, &importer->function_keys, key, &is_new);
    if (!is_new || importer->error)
        return number;
    struct function *functions = grow(importer, importer->functions, number, sizeof *functions);
    if (!functions)
        return LAPSE_INDEX_NONE;
    importer->functions = functions;
    functions[number] = (struct function){
        .name = importer->strings.texts[key.word[0]], .line = from->line,
        .system_name = from->system_name ? importer->strings.texts[key.word[3]] : NULL,
        .file = from->file ? importer->strings.texts[key.word[1]] : NULL,
        .address = pseudo_address(from->name),
    };
    if (!functions[number].address) {
        functions[number].address =
            MODULE_BASE + module * MODULE_SPAN + MODULE_SPAN / 4 + importer->module_functions[module]++;
        put_symbol(importer, &functions[number]);
    }
    return number;
}

/* Both as the pc of a leaf and as a return address: which one it is shows only later. */
static void put_address(struct lapse_importer *importer, uint64_t address,
                        const struct lapse_imported_line *lines, uint32_t count, bool is_return)
{
    size_t mark = lapse_wire_begin(&importer->wire, ADDRESSES);
    lapse_wire_uint(&importer->wire, 1, address);
    for (uint32_t i = 0; i < count; i++) {
        const struct function *function = &importer->functions[lines[i].function];
        size_t frame = lapse_wire_begin(&importer->wire, 2);
        put_text(importer, 1, *function->name ? function->name : "[unknown]");
        put_text(importer, 2, function->system_name);
        put_text(importer, 3, function->file);
        lapse_wire_uint(&importer->wire, 4, lines[i].line);
        lapse_wire_end(&importer->wire, frame);
    }
    lapse_wire_uint(&importer->wire, 3, is_return);
    lapse_wire_end(&importer->wire, mark);
}

static size_t lines_size(const struct lapse_importer *importer,
                         const struct lapse_imported_line *lines, uint32_t count)
{
    size_t size = 64;
    for (uint32_t i = 0; i < count; i++) {
        const struct function *function = &importer->functions[lines[i].function];
        size += 64 + strlen(function->name) + (function->file ? strlen(function->file) : 0) +
                (function->system_name ? strlen(function->system_name) : 0);
    }
    return size;
}

uint32_t lapse_importer_location(struct lapse_importer *importer,
                                 const struct lapse_imported_line *lines, uint32_t count)
{
    bool is_new = false;
    uint32_t number = LAPSE_INDEX_NONE;
    if (importer->error || !count)
        return LAPSE_INDEX_NONE;
    /* A chain of lines is known by its last line and the number of the rest. */
    for (uint32_t i = 0; i < count; i++) {
        struct lapse_key key = { { lines[i].function, lines[i].line, i ? number : UINT64_MAX, 0 } };
        number = number_of(importer, &importer->location_keys, key, &is_new);
        if (!is_new)
            continue;
        void *grown = grow(importer, importer->locations, number, sizeof *importer->locations);
        if (!grown)
            return LAPSE_INDEX_NONE;
        importer->locations = grown;
        importer->locations[number].address = 0;
        importer->locations[number].function = lines[0].function;
    }
    if (number == LAPSE_INDEX_NONE || importer->locations[number].address ||
        (count == 1 && !lines[0].line) || importer->functions[lines[0].function].address < 16)
        return number;
    uint64_t module = (importer->functions[lines[0].function].address - MODULE_BASE) / MODULE_SPAN;
    uint64_t address = MODULE_BASE + module * MODULE_SPAN + MODULE_SPAN / 2 +
                       importer->module_locations[module]++;
    size_t size = lines_size(importer, lines, count);
    if (size > LAPSE_CHUNK_MAX / 4)
        return number; /* absurd: keep the real function alone */
    importer->locations[number].address = address;
    make_room(importer, 2 * size);
    put_address(importer, address, lines, count, false);
    put_address(importer, address, lines, count, true);
    return number;
}

uint32_t lapse_importer_thread(struct lapse_importer *importer, uint32_t tid, const char *name)
{
    bool is_new;
    struct lapse_key key = { { tid, text_number(importer, name), 0, 0 } };
    uint32_t number = number_of(importer, &importer->thread_keys, key, &is_new);
    if (!is_new)
        return number;
    struct thread *threads = grow(importer, importer->threads, number, sizeof *threads);
    if (!threads)
        return LAPSE_INDEX_NONE;
    importer->threads = threads;
    threads[number] = (struct thread){ .tid = tid };
    make_room(importer, 2 * NAME_MAX_BYTES);
    size_t mark = lapse_wire_begin(&importer->wire, THREADS);
    lapse_wire_uint(&importer->wire, 1, number + 1u);
    lapse_wire_uint(&importer->wire, 2, tid);
    put_text(importer, 3, name);
    lapse_wire_end(&importer->wire, mark);
    return number;
}

uint32_t lapse_importer_labels(struct lapse_importer *importer, const char *const *pairs,
                               uint32_t count)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = count ? open_memstream(&text, &size) : NULL;
    if (!to)
        return 0;
    for (uint32_t i = 0; i < 2 * count; i++)
        fwrite(pairs[i], 1, strlen(pairs[i]) + 1, to);
    fclose(to);
    uint32_t before = importer->label_texts.count;
    uint32_t number =
        text ? lapse_strings_number(&importer->label_texts, text, size) : LAPSE_INDEX_NONE;
    free(text);
    if (number == LAPSE_INDEX_NONE || size > LAPSE_CHUNK_MAX / 4)
        return 0;
    if (number < before)
        return number + 1;
    make_room(importer, size + 32 * (size_t)count + 64);
    size_t mark = lapse_wire_begin(&importer->wire, LABEL_SETS);
    lapse_wire_uint(&importer->wire, 1, number + 1u);
    for (uint32_t i = 0; i < count; i++) {
        size_t label = lapse_wire_begin(&importer->wire, 2);
        put_text(importer, 1, pairs[2 * i]);
        put_text(importer, 2, pairs[2 * i + 1]);
        lapse_wire_end(&importer->wire, label);
    }
    lapse_wire_end(&importer->wire, mark);
    return number + 1;
}

/* The recorded node of a stack; new ones are written as they come. */
static uint32_t stack_node(struct lapse_importer *importer,
                           const struct lapse_imported_sample *sample)
{
    uint32_t node = 0;
    for (uint32_t i = 0; i < sample->depth; i++) {
        uint64_t site = i ? importer->locations[sample->locations[i - 1]].address : 0;
        uint64_t function =
            importer->functions[importer->locations[sample->locations[i]].function].address;
        uint32_t parent = node;
        node = lapse_call_tree_child(importer->tree, parent, site, function, 0);
        if (!node) {
            fail(importer, -ENOMEM);
            return 0;
        }
        if (node <= importer->node_count)
            continue;
        importer->node_count = node;
        make_room(importer, 64);
        if (!importer->first_node)
            importer->first_node = node;
        size_t mark = lapse_wire_begin(&importer->wire, NODES);
        lapse_wire_uint(&importer->wire, 1, parent);
        lapse_wire_uint(&importer->wire, 2, site);
        lapse_wire_uint(&importer->wire, 3, function);
        lapse_wire_end(&importer->wire, mark);
    }
    return node;
}

static int by_thread_and_time(const void *a, const void *b)
{
    const struct pending *left = a, *right = b;
    if (left->thread != right->thread)
        return left->thread < right->thread ? -1 : 1;
    if (left->time_ns != right->time_ns)
        return left->time_ns < right->time_ns ? -1 : 1;
    return left->order < right->order ? -1 : 1;
}

enum list { TIME_DELTA = 3, NODE_DELTA = 4, LEAF_DELTA = 5, WEIGHT = 6, LABELS = 7 };

static void put_list(struct lapse_wire *wire, enum list list, const struct pending *samples,
                     uint32_t count)
{
    size_t mark = lapse_wire_begin(wire, list);
    for (uint32_t i = 0; i < count; i++) {
        struct pending none = { .time_ns = samples[0].time_ns };
        const struct pending *now = &samples[i], *last = i ? &samples[i - 1] : &none;
        switch (list) {
        case TIME_DELTA: lapse_wire_varint(wire, now->time_ns - last->time_ns); break;
        case NODE_DELTA: lapse_wire_zigzag(wire, (int64_t)now->node - (int64_t)last->node); break;
        case LEAF_DELTA: lapse_wire_zigzag(wire, (int64_t)(now->pc - last->pc)); break;
        case WEIGHT: lapse_wire_varint(wire, now->weight_ns); break;
        case LABELS: lapse_wire_varint(wire, now->labels); break;
        }
    }
    lapse_wire_end(wire, mark);
}

/* Times of a thread must grow: what is late or equal is moved by as little as can be. */
static void order_times(struct lapse_importer *importer, struct pending *samples, uint32_t count)
{
    struct thread *thread = &importer->threads[samples[0].thread];
    for (uint32_t i = 0; i < count; i++) {
        if (samples[i].time_ns <= thread->last_ns) {
            samples[i].time_ns = thread->last_ns + 1;
            importer->moved++;
        }
        thread->last_ns = samples[i].time_ns;
        if (thread->last_ns > importer->end_ns)
            importer->end_ns = thread->last_ns;
    }
}

static void put_block(struct lapse_importer *importer, struct pending *samples, uint32_t count)
{
    order_times(importer, samples, count);
    size_t mark = lapse_wire_begin(&importer->wire, SAMPLES);
    lapse_wire_uint(&importer->wire, 1, samples[0].thread + 1u);
    lapse_wire_uint(&importer->wire, 2, samples[0].time_ns);
    for (enum list list = TIME_DELTA; list <= LABELS; list++)
        put_list(&importer->wire, list, samples, count);
    lapse_wire_end(&importer->wire, mark);
}

static void flush_samples(struct lapse_importer *importer)
{
    uint32_t count = importer->pending_count;
    struct pending *samples = importer->pending;
    if (!count)
        return;
    qsort(samples, count, sizeof *samples, by_thread_and_time);
    for (uint32_t i = 0, first = 0; i < count; i++) {
        if (i + 1 < count && samples[i + 1].thread == samples[i].thread)
            continue;
        make_room(importer, 42 * (size_t)(i + 1 - first) + 256);
        put_block(importer, samples + first, i + 1 - first);
        first = i + 1;
    }
    importer->samples += count;
    importer->pending_count = 0;
}
_Static_assert(42 * BATCH + 256 <= LAPSE_CHUNK_MAX - CHUNK_TAIL,
               "a batch of one thread fits into a chunk");

/* Few samples want little room: many imports are small. */
static bool make_pending_room(struct lapse_importer *importer)
{
    uint32_t capacity = importer->pending_capacity ? importer->pending_capacity * 2 : FIRST_PENDING;
    if (importer->pending_capacity == BATCH) {
        flush_samples(importer);
        return true;
    }
    struct pending *pending = realloc(importer->pending, capacity * sizeof *pending);
    if (!pending) {
        fail(importer, -ENOMEM);
        return false;
    }
    importer->pending = pending;
    importer->pending_capacity = capacity;
    return true;
}
_Static_assert(!(BATCH & (BATCH - 1)) && BATCH > FIRST_PENDING, "room is doubled up to a batch");

static void add_pending(struct lapse_importer *importer, const struct pending *sample)
{
    if (importer->error)
        return;
    if (importer->pending_count == importer->pending_capacity && !make_pending_room(importer))
        return;
    importer->pending[importer->pending_count] = *sample;
    importer->pending[importer->pending_count].order = importer->pending_count;
    importer->pending_count++;
}

void lapse_importer_sample(struct lapse_importer *importer,
                           const struct lapse_imported_sample *sample)
{
    bool is_new;
    if (importer->error)
        return;
    for (uint32_t i = 0; i < sample->depth; i++)
        if (sample->locations[i] == LAPSE_INDEX_NONE) {
            fail(importer, -ENOMEM);
            return;
        }
    uint32_t node = stack_node(importer, sample);
    uint64_t pc =
        sample->depth ? importer->locations[sample->locations[sample->depth - 1]].address : 0;
    if (sample->time_ns) {
        add_pending(importer, &(struct pending){ sample->thread, node, sample->labels, pc,
                                                 sample->time_ns, sample->weight_ns, 0 });
        return;
    }
    struct lapse_key key = { { sample->thread, node, pc, sample->labels } };
    uint32_t cell = number_of(importer, &importer->cells, key, &is_new);
    if (is_new) {
        struct cell *sums = grow(importer, importer->cell_sums, cell, sizeof *sums);
        if (!sums)
            return;
        importer->cell_sums = sums;
        sums[cell] = (struct cell){ 0 };
    }
    if (cell == LAPSE_INDEX_NONE)
        return;
    uint64_t weight_ns = sample->weight_ns;
    struct cell *sum = &importer->cell_sums[cell];
    if ((importer->head.counts &&
         __builtin_mul_overflow(sample->count, importer->head.period_ns, &weight_ns)) ||
        __builtin_add_overflow(sum->weight_ns, weight_ns, &sum->weight_ns) ||
        __builtin_add_overflow(sum->count, sample->count, &sum->count))
        fail(importer, -EOVERFLOW);
}

void lapse_importer_note(struct lapse_importer *importer, const char *text)
{
    make_room(importer, 2 * NAME_MAX_BYTES);
    put_text(importer, NOTES, text);
}

/* A stack's weight over its samples, the rest spread so that the sum is exact. */
static void expand_cell(struct lapse_importer *importer, uint32_t index, uint64_t count,
                        uint64_t *clocks)
{
    const uint64_t *word = importer->cells.keys[index].word;
    uint64_t weight = importer->cell_sums[index].weight_ns;
    for (uint64_t i = 0; i < count && !importer->error; i++) {
        uint64_t share = weight / count + (i < weight % count);
        clocks[word[0]] += share ? share : 1;
        add_pending(importer,
                    &(struct pending){ (uint32_t)word[0], (uint32_t)word[1], (uint32_t)word[3],
                                       word[2], clocks[word[0]], share, 0 });
    }
}

static void expand_cells(struct lapse_importer *importer)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < importer->cells.count; i++)
        total = total + importer->cell_sums[i].count < total ? UINT64_MAX
                                                             : total + importer->cell_sums[i].count;
    uint64_t *clocks = calloc(importer->thread_keys.count + 1u, sizeof *clocks);
    if (!clocks) {
        fail(importer, -ENOMEM);
        return;
    }
    if (importer->cells.count)
        lapse_importer_note(importer,
                            "the input had no times: those shown follow from the weights");
    if (total > importer->expand_max)
        lapse_importer_note(importer, "the input had too many counts: each stack is one sample");
    for (uint32_t i = 0; i < importer->cells.count; i++) {
        uint64_t count = importer->cell_sums[i].count;
        if (total > importer->expand_max || (!count && importer->cell_sums[i].weight_ns))
            count = count || importer->cell_sums[i].weight_ns ? 1 : 0;
        expand_cell(importer, i, count, clocks);
    }
    free(clocks);
}

int lapse_importer_finish(struct lapse_importer *importer)
{
    char text[96];
    expand_cells(importer);
    flush_samples(importer);
    if (importer->moved) {
        snprintf(text, sizeof text, "%llu times were out of order and moved",
                 (unsigned long long)importer->moved);
        lapse_importer_note(importer, text);
    }
    make_room(importer, 256);
    size_t mark = lapse_wire_begin(&importer->wire, COUNTERS);
    lapse_wire_uint(&importer->wire, 1, importer->samples);
    lapse_wire_uint(&importer->wire, 3, importer->samples);
    lapse_wire_uint(&importer->wire, 17, importer->thread_keys.count);
    lapse_wire_end(&importer->wire, mark);
    mark = lapse_wire_begin(&importer->wire, END);
    lapse_wire_uint(&importer->wire, 1, 1);
    lapse_wire_uint(&importer->wire, 3, importer->end_ns);
    lapse_wire_end(&importer->wire, mark);
    flush_chunk(importer);
    return importer->error;
}
