/* SPDX-License-Identifier: MIT */
/* Reader of recordings: what the chunks of a session add to it. Nothing in them is believed: every
 * id, count and length is checked before it is used. Called by recording.c in the first pass only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "recording_source.h"

/* Append room for one zeroed item to an array. Returns it, or NULL. */
static void *append(void *array_pointer, uint32_t *count, size_t item_size)
{
    void *array;
    memcpy(&array, array_pointer, sizeof array);
    char *grown = lapse_array_grow(array, *count, item_size);
    if (!grown)
        return NULL;
    memcpy(array_pointer, &grown, sizeof grown);
    char *item = grown + (size_t)*count * item_size;
    memset(item, 0, item_size);
    ++*count;
    return item;
}

/* Replace a text; "" leaves the old one when `keep`. */
static int set_text(char **to, const char *text, bool keep)
{
    if (keep && *to && !*text)
        return 0;
    char *copy = strdup(text);
    if (!copy)
        return -ENOMEM;
    free(*to);
    *to = copy;
    return 0;
}

static int set_optional_text(char **to, const char *text)
{
    return *text ? set_text(to, text, false) : 0;
}

int lapse_recording_add_note(struct lapse_session *session, const char *text)
{
    char **note = append(&session->notes, &session->note_count, sizeof *note);
    return note && (*note = strdup(text)) ? 0 : -ENOMEM;
}

static uint64_t tag_of(const ProtobufCBinaryData *id)
{
    uint64_t tag = 0;
    for (size_t i = 0; i < 8 && i < id->len; i++)
        tag |= (uint64_t)id->data[i] << 8 * i;
    return tag;
}

struct lapse_session *lapse_recording_add_session(struct lapse_recording *recording)
{
    struct lapse_recording_source *source = recording->source;
    uint32_t count = recording->session_count;
    struct lapse_session_state *state = append(&source->states, &count, sizeof *state);
    if (!state)
        return NULL;
    struct lapse_session *session = append(&recording->sessions, &recording->session_count,
                                           sizeof *session);
    if (!session)
        return NULL;
    state->nodes = malloc(8 * sizeof *state->nodes);
    if (!state->nodes || lapse_call_tree_create(&session->tree, &lapse_heap) ||
        set_text(&session->program, "", false) || set_text(&session->host, "", false) ||
        set_text(&session->writer, "", false))
        return NULL;
    state->nodes[0] = 0;
    state->node_count = 1;
    return session;
}

static int add_arguments(struct lapse_session *session, const Lapse__Header *header)
{
    for (size_t i = 0; i < header->n_arguments; i++) {
        char **argument = append(&session->arguments, &session->argument_count, sizeof *argument);
        if (!argument)
            return -ENOMEM;
        *argument = strndup((const char *)header->arguments[i].data, header->arguments[i].len);
        if (!*argument)
            return -ENOMEM;
    }
    for (size_t i = 0; i < header->n_ns_pids; i++) {
        uint32_t *pid = append(&session->ns_pids, &session->ns_pid_count, sizeof *pid);
        if (!pid)
            return -ENOMEM;
        *pid = header->ns_pids[i];
    }
    return 0;
}

static void copy_id(uint8_t to[16], const ProtobufCBinaryData *from)
{
    if (from->len)
        memcpy(to, from->data, from->len < 16 ? from->len : 16);
}

int lapse_recording_take_header(struct lapse_recording *recording, const Lapse__Header *header)
{
    struct lapse_session *session = lapse_recording_add_session(recording);
    if (!session)
        return -ENOMEM;
    recording->source->states[recording->session_count - 1].tag = tag_of(&header->session_id);
    copy_id(session->session_id, &header->session_id);
    copy_id(session->run_id, &header->run_id);
    session->has_run_id = header->run_id.len == 16;
    session->run_index = header->run_index;
    session->variant = header->variant;
    session->pid = header->pid;
    session->ppid = header->ppid;
    session->clock = header->clock == LAPSE__CLOCK__CLOCK_PERF   ? LAPSE_RECORDED_PERF
                     : header->clock == LAPSE__CLOCK__CLOCK_WALL ? LAPSE_RECORDED_WALL
                                                                 : LAPSE_RECORDED_CPU;
    session->period_ns = header->period_ns;
    session->start_monotonic_ns = header->start_monotonic_ns;
    session->start_realtime_ns = header->start_realtime_ns;
    session->depth_limit = header->depth_limit;
    session->min_samples = header->min_samples;
    session->gap_ns = header->gap_ns;
    session->close = header->close;
    if (header->version > 1 &&
        lapse_recording_add_note(
            session, "written by a newer lapse: what this one does not know is left out"))
        return -ENOMEM;
    if (set_text(&session->program, header->program, false) ||
        set_text(&session->host, header->host, false) ||
        set_text(&session->writer, header->writer, false))
        return -ENOMEM;
    return add_arguments(session, header);
}

static int set_text_ranges(struct lapse_module *module, const Lapse__Module *from)
{
    free(module->text);
    module->text = NULL;
    module->text_count = 0;
    for (size_t i = 0; i < from->n_text; i++) {
        struct lapse_text_range *range = append(&module->text, &module->text_count, sizeof *range);
        if (!range)
            return -ENOMEM;
        *range = (struct lapse_text_range){ from->text[i]->start, from->text[i]->end,
                                            from->text[i]->file_offset };
    }
    return 0;
}

static int take_module(struct lapse_session *session, struct lapse_session_state *state,
                       const Lapse__Module *from)
{
    struct lapse_module *module;
    uint32_t index;
    if (lapse_map_get(&state->modules, from->id, &index)) {
        module = &session->modules[index];
    } else {
        if (lapse_map_put(&state->modules, from->id, session->module_count) ||
            !(module = append(&session->modules, &session->module_count, sizeof *module)))
            return -ENOMEM;
    }
    module->id = from->id;
    module->start = from->start;
    module->end = from->end;
    module->bias = from->bias;
    module->loaded_ns = from->loaded_ns;
    module->unloaded_ns = from->unloaded_ns;
    module->build_id_size = from->build_id.len < sizeof module->build_id
                                ? (uint32_t)from->build_id.len : (uint32_t)sizeof module->build_id;
    if (module->build_id_size)
        memcpy(module->build_id, from->build_id.data, module->build_id_size);
    int error = set_text_ranges(module, from);
    return error ? error : set_text(&module->path, from->path, true);
}

uint32_t lapse_recording_thread(struct lapse_recording *recording, uint32_t session_index,
                                uint32_t id)
{
    struct lapse_session *session = &recording->sessions[session_index];
    struct lapse_session_state *state = &recording->source->states[session_index];
    struct lapse_recorded_thread *thread;
    uint32_t index;
    if (lapse_map_get(&state->threads, id, &index))
        return index;
    index = session->thread_count;
    if (lapse_map_put(&state->threads, id, index) ||
        !(thread = append(&session->threads, &session->thread_count, sizeof *thread)) ||
        !(thread->name = strdup("")))
        return LAPSE_INDEX_NONE;
    thread->id = id;
    return index;
}

static int take_thread(struct lapse_recording *recording, uint32_t session,
                       const Lapse__Thread *from)
{
    uint32_t index = lapse_recording_thread(recording, session, from->id);
    if (index == LAPSE_INDEX_NONE)
        return -ENOMEM;
    struct lapse_recorded_thread *thread = &recording->sessions[session].threads[index];
    if (from->tid)
        thread->tid = from->tid;
    if (from->start_ns)
        thread->start_ns = from->start_ns;
    if (from->end_ns)
        thread->end_ns = from->end_ns;
    if (from->cpu_ns)
        thread->cpu_ns = from->cpu_ns;
    thread->unsampled |= from->unsampled;
    return set_text(&thread->name, from->name, true);
}

static int add_node_id(struct lapse_session_state *state, uint32_t node)
{
    uint32_t *nodes = lapse_array_grow(state->nodes, state->node_count, sizeof *nodes);
    if (!nodes)
        return -ENOMEM;
    state->nodes = nodes;
    nodes[state->node_count++] = node;
    return 0;
}

/* Behind a lost chunk the ids go on where the chunk says. Where it does not say, or says what cannot
 * be, no further node of the session has a known id. Returns 0, or a negative errno. */
static int place_nodes(struct lapse_recording *recording, struct lapse_session_state *state,
                       const Lapse__Chunk *chunk)
{
    uint64_t lost_at_most = recording->source->file.size / 2; /* a node takes two bytes or more */
    if (chunk->first_node ? chunk->first_node < state->node_count ||
                                chunk->first_node - state->node_count > lost_at_most
                          : state->unsure)
        state->closed = true;
    while (!state->closed && state->node_count < chunk->first_node)
        if (add_node_id(state, LAPSE_INDEX_NONE))
            return -ENOMEM;
    state->unsure = false;
    return 0;
}

static int take_node(struct lapse_session *session, struct lapse_session_state *state,
                     const Lapse__Node *from, struct lapse_damage *damage)
{
    uint32_t count, node = LAPSE_INDEX_NONE;
    uint32_t parent =
        from->parent < state->node_count ? state->nodes[from->parent] : LAPSE_INDEX_NONE;
    if (parent != LAPSE_INDEX_NONE &&
        lapse_call_tree_nodes(session->tree, &count)[parent].depth < LAPSE_RECORDED_DEPTH_MAX) {
        node = lapse_call_tree_child(session->tree, parent, from->call_site, from->function,
                                     from->flags);
        if (!node)
            return -ENOMEM;
    } else {
        damage->bad_references++;
    }
    return add_node_id(state, node);
}

static int take_nodes(struct lapse_recording *recording, uint32_t index, const Lapse__Chunk *chunk)
{
    struct lapse_session_state *state = &recording->source->states[index];
    int error = chunk->n_nodes ? place_nodes(recording, state, chunk) : 0;
    if (state->closed) {
        recording->damage.bad_references += chunk->n_nodes;
        return error;
    }
    for (size_t i = 0; i < chunk->n_nodes && !error; i++)
        error = take_node(&recording->sessions[index], state, chunk->nodes[i], &recording->damage);
    return error;
}

static int take_symbol(struct lapse_session *session, const Lapse__Symbol *from)
{
    struct lapse_symbol *symbol = append(&session->symbols, &session->symbol_count, sizeof *symbol);
    if (!symbol)
        return -ENOMEM;
    symbol->address = from->address;
    symbol->size = from->size;
    symbol->line = from->line;
    symbol->from_ns = from->from_ns;
    symbol->until_ns = from->until_ns;
    symbol->reach = session->symbol_count; /* until sorted: order of arrival */
    if (set_text(&symbol->name, from->name, false) ||
        set_optional_text(&symbol->system_name, from->system_name))
        return -ENOMEM;
    return set_optional_text(&symbol->file, from->file);
}

static int take_address(struct lapse_session *session, const Lapse__AddressInfo *from)
{
    struct lapse_address_info *info =
        append(&session->addresses, &session->address_count, sizeof *info);
    if (!info)
        return -ENOMEM;
    info->address = from->address;
    info->is_return = from->is_return;
    for (size_t i = 0; i < from->n_frames; i++) {
        struct lapse_inline_frame *frame = append(&info->frames, &info->frame_count, sizeof *frame);
        if (!frame || set_text(&frame->name, from->frames[i]->name, false) ||
            set_optional_text(&frame->system_name, from->frames[i]->system_name) ||
            set_optional_text(&frame->file, from->frames[i]->file))
            return -ENOMEM;
        frame->line = from->frames[i]->line;
    }
    return 0;
}

static int take_label_set(struct lapse_session *session, struct lapse_session_state *state,
                          const Lapse__LabelSet *from)
{
    struct lapse_label_set *set;
    uint32_t index;
    if (lapse_map_get(&state->label_sets, from->id, &index))
        return 0; /* a set never changes */
    if (lapse_map_put(&state->label_sets, from->id, session->label_set_count) ||
        !(set = append(&session->label_sets, &session->label_set_count, sizeof *set)))
        return -ENOMEM;
    set->id = from->id;
    for (size_t i = 0; i < from->n_labels; i++) {
        struct lapse_label *label = append(&set->labels, &set->label_count, sizeof *label);
        if (!label || set_text(&label->key, from->labels[i]->key, false) ||
            set_text(&label->value, from->labels[i]->value, false))
            return -ENOMEM;
    }
    return 0;
}

static int take_span(struct lapse_session *session, const Lapse__Span *from)
{
    struct lapse_recorded_span *span = append(&session->spans, &session->span_count, sizeof *span);
    if (!span)
        return -ENOMEM;
    span->thread = from->thread;
    span->start_ns = from->start_ns;
    span->end_ns = from->end_ns;
    return set_text(&span->name, from->name, false);
}

static void take_counters(struct lapse_counters *to, const Lapse__Counters *from)
{
    *to = (struct lapse_counters){
        .ticks = from->ticks, .merged_ticks = from->merged_ticks, .recorded = from->recorded,
        .dropped_ring_full = from->dropped_ring_full,
        .dropped_gate_closed = from->dropped_gate_closed, .truncated = from->truncated,
        .unwind_failures = from->unwind_failures, .guessed_frames = from->guessed_frames,
        .unsampled_threads = from->unsampled_threads, .unsampled_ns = from->unsampled_ns,
        .late_ticks = from->late_ticks, .handler_ns = from->handler_ns, .drain_ns = from->drain_ns,
        .rate_lowered = from->rate_lowered, .cache_full = from->cache_full,
        .write_errors = from->write_errors, .threads_seen = from->threads_seen,
        .dropped_weight_ns = from->dropped_weight_ns, .lost_samples = from->lost_samples,
        .dropped_spans = from->dropped_spans, .unread_modules = from->unread_modules,
        .signal_taken = from->signal_taken,
        .before_ns = from->before_ns,
    };
}

static void take_end(struct lapse_session *session, const Lapse__End *from)
{
    session->ended = true;
    session->end_reason = from->reason >= 0 && from->reason <= (int)LAPSE_END_KILLED
                              ? (enum lapse_end_reason)from->reason : LAPSE_END_UNKNOWN;
    session->end_signal = from->signal;
    session->end_ns = from->time_ns;
    session->user_ns = from->user_ns;
    session->system_ns = from->system_ns;
}

/* Everything of a chunk but header and samples. */
int lapse_recording_take_contents(struct lapse_recording *recording, uint32_t index,
                                  const Lapse__Chunk *chunk)
{
    struct lapse_session *session = &recording->sessions[index];
    struct lapse_session_state *state = &recording->source->states[index];
    int error = 0;
    for (size_t i = 0; i < chunk->n_modules && !error; i++)
        error = take_module(session, state, chunk->modules[i]);
    for (size_t i = 0; i < chunk->n_threads && !error; i++)
        error = take_thread(recording, index, chunk->threads[i]);
    if (!error)
        error = take_nodes(recording, index, chunk);
    for (size_t i = 0; i < chunk->n_symbols && !error; i++)
        error = take_symbol(session, chunk->symbols[i]);
    for (size_t i = 0; i < chunk->n_addresses && !error; i++)
        error = take_address(session, chunk->addresses[i]);
    for (size_t i = 0; i < chunk->n_label_sets && !error; i++)
        error = take_label_set(session, state, chunk->label_sets[i]);
    for (size_t i = 0; i < chunk->n_spans && !error; i++)
        error = take_span(session, chunk->spans[i]);
    for (size_t i = 0; i < chunk->n_notes && !error; i++)
        error = lapse_recording_add_note(session, chunk->notes[i]);
    if (chunk->counters)
        take_counters(&session->counters, chunk->counters);
    if (chunk->end)
        take_end(session, chunk->end);
    if (chunk->tree_ns)
        session->tree_ns = chunk->tree_ns;
    return error;
}

static void free_module(struct lapse_module *module)
{
    free(module->path);
    free(module->text);
}

static void free_symbol(struct lapse_symbol *symbol)
{
    free(symbol->name);
    free(symbol->system_name);
    free(symbol->file);
}

static void free_address(struct lapse_address_info *info)
{
    for (uint32_t i = 0; i < info->frame_count; i++) {
        free(info->frames[i].name);
        free(info->frames[i].system_name);
        free(info->frames[i].file);
    }
    free(info->frames);
}

static void free_label_set(struct lapse_label_set *set)
{
    for (uint32_t i = 0; i < set->label_count; i++) {
        free(set->labels[i].key);
        free(set->labels[i].value);
    }
    free(set->labels);
}

static void free_texts(char **texts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void lapse_recording_free_session(struct lapse_session *session, struct lapse_session_state *state)
{
    for (uint32_t i = 0; i < session->module_count; i++)
        free_module(&session->modules[i]);
    for (uint32_t i = 0; i < session->thread_count; i++)
        free(session->threads[i].name);
    for (uint32_t i = 0; i < session->symbol_count; i++)
        free_symbol(&session->symbols[i]);
    for (uint32_t i = 0; i < session->address_count; i++)
        free_address(&session->addresses[i]);
    for (uint32_t i = 0; i < session->label_set_count; i++)
        free_label_set(&session->label_sets[i]);
    for (uint32_t i = 0; i < session->span_count; i++)
        free(session->spans[i].name);
    free_texts(session->arguments, session->argument_count);
    free_texts(session->notes, session->note_count);
    free(session->modules);
    free(session->threads);
    free(session->symbols);
    free(session->addresses);
    free(session->label_sets);
    free(session->spans);
    free(session->ns_pids);
    free(session->program);
    free(session->host);
    free(session->writer);
    lapse_call_tree_destroy(session->tree);
    free(state->nodes);
    free(state->site_functions);
    free(state->thread_last_ns);
    lapse_map_free(&state->modules);
    lapse_map_free(&state->threads);
    lapse_map_free(&state->label_sets);
    lapse_map_free(&state->function_of_site);
}
