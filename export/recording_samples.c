/* SPDX-License-Identifier: MIT */
/* Reader of recordings: samples, streamed from the file, and look-ups by address. Raw samples (taken
 * but not interned when their process died) get their functions here. Called by recording.c in the
 * first pass and by profile.c. Offline only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "recording_source.h"

#define PC_GUESSED (UINT64_C(1) << 63)
/* Nested and overlapping ranges are few where they are honest. */
#define SEARCH_MAX 4096

enum { LAPSE_RAW_KNOWN = LAPSE__RAW_FLAG__RAW_TRUNCATED | LAPSE__RAW_FLAG__RAW_UNWIND_FAILED |
                         LAPSE__RAW_FLAG__RAW_NOT_SAMPLED };

/* A module is noticed some time after it was loaded, and samples may come before that. So what counts
 * is when modules went away: the first to go after `time_ns` was there at that time. */
const struct lapse_module *lapse_session_module_while(const struct lapse_session *session,
                                                      uint64_t address, uint64_t time_ns,
                                                      struct lapse_validity *validity)
{
    const struct lapse_module *found = NULL;
    uint64_t found_end = 0, gone_before = 0;
    uint32_t low = 0, high = session->module_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (session->modules[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t i = low, tries = SEARCH_MAX; i > 0 && tries > 0; i--, tries--) {
        const struct lapse_module *module = &session->modules[i - 1];
        uint64_t end = module->unloaded_ns ? module->unloaded_ns : UINT64_MAX;
        if (module->reach <= address)
            break;
        if (module->end <= address)
            continue;
        if (end <= time_ns)
            gone_before = end > gone_before ? end : gone_before;
        else if (!found || end < found_end)
            found = module, found_end = end;
    }
    if (gone_before || found_end)
        lapse_validity_narrow(validity, gone_before, found ? found_end : UINT64_MAX);
    return found;
}

const struct lapse_module *lapse_session_module(const struct lapse_session *session,
                                                uint64_t address, uint64_t time_ns)
{
    struct lapse_validity validity = { 0, UINT64_MAX };
    return lapse_session_module_while(session, address, time_ns, &validity);
}

static bool symbol_covers(const struct lapse_symbol *symbol, uint64_t address)
{
    return address == symbol->address ||
           (address > symbol->address && address - symbol->address < symbol->size);
}

/* Of those that cover the address at that time: the one that begins last, then the youngest. */
static bool is_same_file(const struct lapse_module *a, const struct lapse_module *b)
{
    return a->bias == b->bias && a->build_id_size == b->build_id_size &&
           !strcmp(a->path, b->path) && !memcmp(a->build_id, b->build_id, a->build_id_size);
}

bool lapse_session_is_reused(const struct lapse_session *session, uint64_t address)
{
    const struct lapse_module *first = NULL;
    for (uint32_t i = 0; i < session->module_count; i++) {
        const struct lapse_module *module = &session->modules[i];
        if (address < module->start || address >= module->end)
            continue;
        if (first && !is_same_file(first, module))
            return true;
        first = module;
    }
    return false;
}

const struct lapse_symbol *lapse_session_symbol(const struct lapse_session *session,
                                                uint64_t address, uint64_t time_ns,
                                                struct lapse_validity *validity)
{
    const struct lapse_symbol *found = NULL;
    struct lapse_validity unused = { 0, UINT64_MAX };
    uint32_t low = 0, high = session->symbol_count;
    if (!validity)
        validity = &unused;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (session->symbols[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    for (uint32_t i = low, tries = SEARCH_MAX; i > 0 && tries > 0; i--, tries--) {
        const struct lapse_symbol *symbol = &session->symbols[i - 1];
        if (symbol->reach <= address || (found && symbol->address < found->address))
            break;
        if (!symbol_covers(symbol, address))
            continue;
        uint64_t until = symbol->until_ns ? symbol->until_ns : UINT64_MAX;
        if (until <= time_ns)
            lapse_validity_narrow(validity, until, UINT64_MAX);
        else if (symbol->from_ns > time_ns)
            lapse_validity_narrow(validity, 0, symbol->from_ns);
        else if (!found)
            lapse_validity_narrow(validity, symbol->from_ns, until), found = symbol;
    }
    return found;
}

const struct lapse_address_info *lapse_session_address(const struct lapse_session *session,
                                                       uint64_t pc, bool is_return)
{
    uint32_t low = 0, high = session->address_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct lapse_address_info *info = &session->addresses[middle];
        if (info->address == pc && info->is_return == is_return)
            return info;
        if (info->address < pc || (info->address == pc && info->is_return < is_return))
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static int give(struct lapse_sample_pass *pass, struct lapse_recorded_sample *sample)
{
    struct lapse_recording *recording = pass->recording;
    struct lapse_session_state *state = &recording->source->states[sample->session];
    struct lapse_session *session = &recording->sessions[sample->session];
    if (!pass->each) {
        if (!session->sample_count++ || sample->time_ns < session->first_sample_ns)
            session->first_sample_ns = sample->time_ns;
        if (sample->time_ns > session->last_sample_ns)
            session->last_sample_ns = sample->time_ns;
        return 0;
    }
    if (sample->thread_index >= state->thread_last_count) /* the file has changed since it was opened */
        return -ESTALE;
    /* Honest times of a thread increase. Readers rely on it, so the others are made to. */
    uint64_t *last_ns = &state->thread_last_ns[sample->thread_index];
    if (sample->time_ns <= *last_ns)
        sample->time_ns = *last_ns + 1;
    *last_ns = sample->time_ns;
    return pass->each(pass->context, sample);
}

static int block_samples(struct lapse_sample_pass *pass, uint32_t session,
                         const Lapse__SampleBlock *block)
{
    const struct lapse_session_state *state = &pass->recording->source->states[session];
    size_t count = block->n_time_delta;
    uint64_t time = block->base_time_ns, node = 0, leaf = 0, ahead = 0;
    int error = 0;
    if (block->n_node_delta != count || block->n_leaf_delta != count ||
        block->n_weight_ns != count || (block->n_labels && block->n_labels != count) ||
        (block->n_cut_cfa && block->n_cut_cfa != count)) {
        pass->damage->bad_chunks++;
        return 0;
    }
    /* Also when none of the samples can be placed: each pass must come upon the same threads. */
    uint32_t thread = lapse_recording_thread(pass->recording, session, block->thread);
    if (thread == LAPSE_INDEX_NONE)
        return -ENOMEM;
    /* Looks into the table miss the cache, one after the other: all are asked for first. */
    for (size_t i = 0; i < count; i++) {
        ahead += (uint64_t)block->node_delta[i];
        if (ahead < state->node_count)
            __builtin_prefetch(&state->nodes[ahead]);
    }
    for (size_t i = 0; i < count && !error; i++) {
        time += block->time_delta[i];
        node += (uint64_t)block->node_delta[i];
        leaf += (uint64_t)block->leaf_delta[i];
        if (node >= state->node_count || state->nodes[node] == LAPSE_INDEX_NONE) {
            pass->damage->bad_references++;
            continue;
        }
        struct lapse_recorded_sample sample = {
            .session = session, .thread = block->thread, .node = state->nodes[node],
            .labels = block->n_labels ? block->labels[i] : 0, .time_ns = time, .leaf_pc = leaf,
            .weight_ns = block->weight_ns[i], .cut_cfa = block->n_cut_cfa ? block->cut_cfa[i] : 0,
            .thread_index = thread,
        };
        error = give(pass, &sample);
    }
    return error;
}

/* First byte of the function at a pc, as well as it can be told after the fact: the symbol's, else
 * that of the function which interned stacks have seen calling from there, else the pc itself. */
static uint64_t function_of(const struct lapse_session *session,
                            const struct lapse_session_state *state, uint64_t pc, bool is_return,
                            uint64_t time_ns)
{
    uint32_t number;
    if (is_return && lapse_map_get(&state->function_of_site, pc, &number))
        return state->site_functions[number];
    const struct lapse_symbol *symbol =
        lapse_session_symbol(session, pc - is_return, time_ns, NULL);
    return symbol ? symbol->address : pc - is_return;
}

/* Node of a raw stack, made when it is not there yet. Returns 0 without memory. */
static int raw_node(struct lapse_session *session, const struct lapse_session_state *state,
                    const Lapse__RawSample *raw, uint32_t *node)
{
    size_t count = raw->n_pcs < LAPSE_RECORDED_DEPTH_MAX ? raw->n_pcs : LAPSE_RECORDED_DEPTH_MAX;
    uint64_t pseudo =
        raw->flags & LAPSE__RAW_FLAG__RAW_NOT_SAMPLED     ? LAPSE__PSEUDO__PSEUDO_NOT_SAMPLED
        : raw->flags & LAPSE__RAW_FLAG__RAW_UNWIND_FAILED ? LAPSE__PSEUDO__PSEUDO_UNWIND_FAILED
                                                          : LAPSE__PSEUDO__PSEUDO_TRUNCATED;
    *node = 0;
    if ((raw->flags & LAPSE_RAW_KNOWN) || count < raw->n_pcs) {
        *node = lapse_call_tree_child(session->tree, 0, 0, pseudo, 0);
        if (!*node)
            return -ENOMEM;
    }
    for (size_t i = count; i-- > 0;) {
        uint64_t pc = raw->pcs[i] & ~PC_GUESSED;
        uint64_t site = i + 1 < count ? raw->pcs[i + 1] & ~PC_GUESSED : 0;
        *node = lapse_call_tree_child(
            session->tree, *node, site, function_of(session, state, pc, i > 0, raw->time_ns),
            raw->pcs[i] & PC_GUESSED ? LAPSE__NODE_FLAG__NODE_GUESSED : 0);
        if (!*node)
            return -ENOMEM;
    }
    return 0;
}

static int raw_sample(struct lapse_sample_pass *pass, uint32_t session, const Lapse__RawSample *raw)
{
    struct lapse_recorded_sample sample = {
        .session = session, .thread = raw->thread, .labels = raw->labels, .time_ns = raw->time_ns,
        .leaf_pc = raw->n_pcs ? raw->pcs[0] & ~PC_GUESSED : 0, .weight_ns = raw->weight_ns,
        .cut_cfa = raw->cut_cfa,
        .thread_index = lapse_recording_thread(pass->recording, session, raw->thread),
    };
    if (sample.thread_index == LAPSE_INDEX_NONE)
        return -ENOMEM;
    if (pass->each) {
        int error = raw_node(&pass->recording->sessions[session],
                             &pass->recording->source->states[session], raw, &sample.node);
        if (error)
            return error;
    }
    return give(pass, &sample);
}

int lapse_recording_chunk_samples(struct lapse_sample_pass *pass, uint32_t session,
                                  const Lapse__Chunk *chunk)
{
    int error = 0;
    for (size_t i = 0; i < chunk->n_samples && !error; i++)
        error = block_samples(pass, session, chunk->samples[i]);
    for (size_t i = 0; i < chunk->n_raw_samples && !error; i++)
        error = raw_sample(pass, session, chunk->raw_samples[i]);
    return error;
}

/* Which function each known call site lies in: the parent of the node that was called from it. */
static int learn_sites(struct lapse_session *session, struct lapse_session_state *state)
{
    uint32_t count, number;
    const struct lapse_call_node *nodes = lapse_call_tree_nodes(session->tree, &count);
    for (uint32_t i = 1; i < count; i++) {
        uint64_t site = nodes[i].call_site;
        if (!site || !nodes[i].parent || lapse_map_get(&state->function_of_site, site, &number))
            continue;
        uint64_t *functions =
            lapse_array_grow(state->site_functions, state->site_count, sizeof *functions);
        if (!functions || lapse_map_put(&state->function_of_site, site, state->site_count))
            return -ENOMEM;
        state->site_functions = functions;
        functions[state->site_count++] = nodes[nodes[i].parent].function;
    }
    return 0;
}

/* Stream chunks with samples. Sessions are found again in the order in which they were made. */
static int each_chunk(struct lapse_sample_pass *pass, bool raw_only)
{
    struct lapse_recording *recording = pass->recording;
    struct lapse_damage unused = { 0 };
    uint32_t current = LAPSE_INDEX_NONE, seen = 0;
    Lapse__Chunk *chunk;
    bool gap;
    int result;
    lapse_chunk_file_rewind(&recording->source->file);
    lapse_map_free(&recording->source->tags);
    while ((result = lapse_recording_next_chunk(recording, &unused, &chunk, &gap)) > 0) {
        uint32_t owner = chunk->header ? LAPSE_INDEX_NONE
                                       : lapse_recording_session_of(recording, current, chunk);
        current = owner == LAPSE_INDEX_NONE ? seen++ : owner;
        if (current >= recording->session_count) /* the file has changed since it was opened */
            return -ESTALE;
        if (owner == LAPSE_INDEX_NONE && lapse_recording_met_session(recording, current))
            return -ENOMEM;
        if (raw_only && !chunk->n_raw_samples)
            continue;
        if (raw_only)
            chunk->n_samples = 0;
        result = lapse_recording_chunk_samples(pass, current, chunk);
        if (result)
            return result;
    }
    return result;
}

static int forget_times(struct lapse_recording *recording)
{
    for (uint32_t i = 0; i < recording->session_count; i++) {
        struct lapse_session_state *state = &recording->source->states[i];
        free(state->thread_last_ns);
        state->thread_last_count = recording->sessions[i].thread_count;
        state->thread_last_ns = calloc(state->thread_last_count + 1, sizeof *state->thread_last_ns);
        if (!state->thread_last_ns)
            return -ENOMEM;
    }
    return 0;
}

static int ignore(void *context, const struct lapse_recorded_sample *sample)
{
    (void)context;
    (void)sample;
    return 0;
}

int lapse_recording_intern_raw(struct lapse_recording *recording)
{
    struct lapse_damage unused = { 0 };
    struct lapse_sample_pass pass = { recording, &unused, ignore, NULL };
    bool any = false;
    int error = forget_times(recording);
    for (uint32_t i = 0; i < recording->session_count && !error; i++) {
        if (recording->source->states[i].has_raw)
            error = learn_sites(&recording->sessions[i], &recording->source->states[i]);
        any |= recording->source->states[i].has_raw;
    }
    return any && !error ? each_chunk(&pass, true) : error;
}

int lapse_recording_each_sample(struct lapse_recording *recording, lapse_each_sample *each,
                                void *context)
{
    struct lapse_damage unused = { 0 };
    struct lapse_sample_pass pass = { recording, &unused, each, context };
    int error = forget_times(recording);
    if (!error)
        error = each_chunk(&pass, false);
    lapse_chunk_file_idle(&recording->source->file);
    return error;
}
