/* SPDX-License-Identifier: MIT */
/* The line-number state machine. Rows of one sequence come in order of address; sequences are put
 * in order at the end. Of several rows at one address the last one holds. */
#include "line_table.h"

#include "array.h"
#include "cursor.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>

struct program {
    struct lapse_cursor code;
    unsigned version, address_size, offset_size;
    uint8_t min_length, opcode_base, line_range;
    int8_t line_base;
    uint8_t lengths[256];
};

struct sequence {
    uint64_t start, end;
    size_t first, count;
};
struct sequences {
    struct sequence *items;
    size_t count, capacity;
};

static int push_directory(struct lapse_line_table *table, const char *name)
{
    if (!lapse_array_room(&table->directories, table->directory_count, &table->directory_capacity,
                          sizeof name))
        return -ENOMEM;
    table->directories[table->directory_count++] = name;
    return 0;
}

static int push_file(struct lapse_line_table *table, const char *name, uint64_t directory)
{
    if (!lapse_array_room(&table->files, table->file_count, &table->file_capacity,
                          sizeof *table->files))
        return -ENOMEM;
    table->files[table->file_count++] = (struct lapse_line_file){ name, (uint32_t)directory };
    return 0;
}

static int read_old_tables(struct lapse_line_table *table, struct lapse_cursor *cursor)
{
    int error = push_directory(table, table->compile_dir);
    const char *name;
    while (!error && *(name = lapse_cursor_string(cursor)))
        error = push_directory(table, name);
    while (!error && *(name = lapse_cursor_string(cursor))) {
        uint64_t directory = lapse_cursor_uleb(cursor);
        lapse_cursor_uleb(cursor);
        lapse_cursor_uleb(cursor);
        error = push_file(table, name, directory);
    }
    return error ? error : cursor->bad ? -EBADMSG : 0;
}

struct entry_format {
    uint64_t content, form;
};

static const char *read_entry_value(const struct lapse_line_sections *sections,
                                    const struct program *program, struct lapse_cursor *cursor,
                                    uint64_t form, uint64_t *number)
{
    switch (form) {
    case DW_FORM_string: return lapse_cursor_string(cursor);
    case DW_FORM_line_strp:
        return lapse_section_string(sections->line_str.bytes, sections->line_str.size,
                                    lapse_cursor_fixed(cursor, program->offset_size));
    case DW_FORM_strp:
        return lapse_section_string(sections->str.bytes, sections->str.size,
                                    lapse_cursor_fixed(cursor, program->offset_size));
    case DW_FORM_udata: *number = lapse_cursor_uleb(cursor); return "";
    case DW_FORM_data1: *number = lapse_cursor_fixed(cursor, 1); return "";
    case DW_FORM_data2: *number = lapse_cursor_fixed(cursor, 2); return "";
    case DW_FORM_data4: *number = lapse_cursor_fixed(cursor, 4); return "";
    case DW_FORM_data8: *number = lapse_cursor_fixed(cursor, 8); return "";
    case DW_FORM_data16: lapse_cursor_skip(cursor, 16); return "";
    case DW_FORM_block: lapse_cursor_skip(cursor, lapse_cursor_uleb(cursor)); return "";
    default: cursor->bad = true; return "";
    }
}

/* One table of DWARF 5: directories, or files. */
static int read_new_table(struct lapse_line_table *table,
                          const struct lapse_line_sections *sections, const struct program *program,
                          struct lapse_cursor *cursor, bool files)
{
    struct entry_format formats[16];
    unsigned format_count = (unsigned)lapse_cursor_fixed(cursor, 1);
    if (format_count > sizeof formats / sizeof *formats)
        return -EBADMSG;
    for (unsigned i = 0; i < format_count; i++) {
        formats[i].content = lapse_cursor_uleb(cursor);
        formats[i].form = lapse_cursor_uleb(cursor);
    }
    uint64_t count = lapse_cursor_uleb(cursor);
    for (uint64_t n = 0; n < count && !cursor->bad; n++) {
        const char *path = "";
        uint64_t directory = 0;
        if (cursor->at == cursor->end)
            return -EBADMSG;
        for (unsigned i = 0; i < format_count; i++) {
            uint64_t number = 0;
            const char *text = read_entry_value(sections, program, cursor, formats[i].form,
                                                &number);
            if (formats[i].content == DW_LNCT_path)
                path = text;
            else if (formats[i].content == DW_LNCT_directory_index)
                directory = number;
        }
        if (files ? push_file(table, path, directory) : push_directory(table, path))
            return -ENOMEM;
    }
    return cursor->bad ? -EBADMSG : 0;
}

static int read_header(struct lapse_line_table *table, const struct lapse_line_sections *sections,
                       uint64_t offset, struct program *program)
{
    if (offset >= sections->line.size)
        return -EBADMSG;
    struct lapse_cursor cursor = { sections->line.bytes + offset,
                                   sections->line.bytes + sections->line.size, false };
    uint64_t length = lapse_cursor_fixed(&cursor, 4);
    program->offset_size = 4;
    if (length == 0xffffffff) {
        length = lapse_cursor_fixed(&cursor, 8);
        program->offset_size = 8;
    }
    if (length > (uint64_t)(cursor.end - cursor.at))
        return -EBADMSG;
    cursor.end = cursor.at + length;
    program->version = (unsigned)lapse_cursor_fixed(&cursor, 2);
    program->address_size = 8;
    if (program->version < 2 || program->version > 5)
        return -EBADMSG;
    if (program->version == 5) {
        program->address_size = (unsigned)lapse_cursor_fixed(&cursor, 1);
        lapse_cursor_skip(&cursor, 1);
    }
    uint64_t header_length = lapse_cursor_fixed(&cursor, program->offset_size);
    if (header_length > (uint64_t)(cursor.end - cursor.at) || program->address_size > 8)
        return -EBADMSG;
    program->code = (struct lapse_cursor){ cursor.at + header_length, cursor.end, false };
    program->min_length = (uint8_t)lapse_cursor_fixed(&cursor, 1);
    if (program->version >= 4)
        lapse_cursor_skip(&cursor, 1);
    lapse_cursor_skip(&cursor, 1); /* default_is_stmt: every row counts here */
    program->line_base = (int8_t)lapse_cursor_fixed(&cursor, 1);
    program->line_range = (uint8_t)lapse_cursor_fixed(&cursor, 1);
    program->opcode_base = (uint8_t)lapse_cursor_fixed(&cursor, 1);
    for (unsigned i = 1; i < program->opcode_base; i++)
        program->lengths[i] = (uint8_t)lapse_cursor_fixed(&cursor, 1);
    if (cursor.bad || !program->line_range)
        return -EBADMSG;
    table->from_zero = program->version >= 5;
    if (program->version < 5)
        return read_old_tables(table, &cursor);
    int error = read_new_table(table, sections, program, &cursor, false);
    return error ? error : read_new_table(table, sections, program, &cursor, true);
}

static int push_row(struct lapse_line_table *table, uint64_t address, uint32_t file, uint32_t line,
                    size_t first)
{
    size_t at = table->count;
    if (at > first && table->starts[at - 1] == address) /* the last of several holds */
        table->count = --at;
    if (at > first && table->rows[at - 1].file == file && table->rows[at - 1].line == line)
        return 0;
    if (!lapse_array_room(&table->starts, at, &table->capacity, sizeof *table->starts)
        || !lapse_array_room(&table->rows, at, &table->row_capacity, sizeof *table->rows))
        return -ENOMEM;
    table->starts[at] = address;
    table->rows[at] = (struct lapse_line_row){ file, line };
    table->count++;
    return 0;
}

struct machine {
    uint64_t address, file;
    int64_t line;
    size_t first;
    uint64_t start;
    bool started, ordered;
};

static void reset(struct machine *machine, const struct lapse_line_table *table)
{
    *machine = (struct machine){ .file = 1, .line = 1, .first = table->count, .ordered = true };
}

static int emit(struct lapse_line_table *table, struct machine *machine)
{
    if (!machine->started) {
        machine->started = true;
        machine->start = machine->address;
    }
    if (table->count > machine->first && machine->address < table->starts[table->count - 1])
        machine->ordered = false;
    uint32_t line = machine->line > 0 && machine->line < INT32_MAX ? (uint32_t)machine->line : 0;
    return push_row(table, machine->address, (uint32_t)machine->file, line, machine->first);
}

static int end_sequence(struct lapse_line_table *table, struct machine *machine,
                        struct sequences *sequences, lapse_line_is_code *is_code,
                        const void *context)
{
    bool good = machine->started && machine->ordered && machine->address > machine->start
                && is_code(context, machine->start);
    if (!good) {
        table->count = machine->first;
    } else {
        if (push_row(table, machine->address, LAPSE_LINE_GAP, 0, machine->first)
            || !lapse_array_room(&sequences->items, sequences->count, &sequences->capacity,
                                 sizeof *sequences->items))
            return -ENOMEM;
        sequences->items[sequences->count++] = (struct sequence){ table->starts[machine->first],
                                                                  machine->address, machine->first,
                                                                  table->count - machine->first };
    }
    reset(machine, table);
    return 0;
}

static int extended(struct lapse_line_table *table, struct program *program,
                    struct machine *machine, struct sequences *sequences,
                    lapse_line_is_code *is_code, const void *context)
{
    struct lapse_cursor *code = &program->code;
    uint64_t length = lapse_cursor_uleb(code);
    if (!length || length > (uint64_t)(code->end - code->at))
        return length ? -EBADMSG : 0;
    struct lapse_cursor body = { code->at, code->at + length, false };
    code->at += length;
    switch (lapse_cursor_fixed(&body, 1)) {
    case DW_LNE_end_sequence: return end_sequence(table, machine, sequences, is_code, context);
    case DW_LNE_set_address:
        machine->address = lapse_cursor_fixed(&body, (unsigned)(length - 1 < 8 ? length - 1 : 8));
        return 0;
    case DW_LNE_define_file: {
        const char *name = lapse_cursor_string(&body);
        return push_file(table, name, lapse_cursor_uleb(&body));
    }
    default: return 0;
    }
}

static int standard(struct lapse_line_table *table, struct program *program,
                    struct machine *machine, uint8_t opcode)
{
    struct lapse_cursor *code = &program->code;
    switch (opcode) {
    case DW_LNS_copy: return emit(table, machine);
    case DW_LNS_advance_pc:
        machine->address += lapse_cursor_uleb(code) * program->min_length;
        return 0;
    case DW_LNS_advance_line: machine->line += lapse_cursor_sleb(code); return 0;
    case DW_LNS_set_file: machine->file = lapse_cursor_uleb(code); return 0;
    case DW_LNS_const_add_pc:
        machine->address += (uint64_t)((255 - program->opcode_base) / program->line_range)
                            * program->min_length;
        return 0;
    case DW_LNS_fixed_advance_pc: machine->address += lapse_cursor_fixed(code, 2); return 0;
    default: /* column, statement and block marks, and what a later version may add */
        for (unsigned i = 0; i < program->lengths[opcode]; i++)
            lapse_cursor_uleb(code);
        return 0;
    }
}

static int run(struct lapse_line_table *table, struct program *program, struct sequences *sequences,
               lapse_line_is_code *is_code, const void *context)
{
    struct lapse_cursor *code = &program->code;
    struct machine machine;
    int error = 0;
    reset(&machine, table);
    while (code->at < code->end && !error && !code->bad) {
        uint8_t opcode = *code->at++;
        if (opcode >= program->opcode_base) {
            uint8_t special = (uint8_t)(opcode - program->opcode_base);
            machine.address += (uint64_t)(special / program->line_range) * program->min_length;
            machine.line += program->line_base + special % program->line_range;
            error = emit(table, &machine);
        } else if (opcode == 0) {
            error = extended(table, program, &machine, sequences, is_code, context);
        } else {
            error = standard(table, program, &machine, opcode);
        }
    }
    table->count = machine.first; /* rows without an end are damage */
    return error == -ENOMEM ? error : 0;
}

static int by_start(const void *a, const void *b)
{
    const struct sequence *x = a, *y = b;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Sequences in order of address; the end of one gives way to a start at the same place, and one
 * that overlaps the one before is left out. */
static int order(struct lapse_line_table *table, struct sequences *sequences)
{
    bool sorted = true;
    for (size_t i = 1; i < sequences->count; i++)
        sorted = sorted && sequences->items[i].start >= sequences->items[i - 1].end;
    if (sorted)
        return 0;
    qsort(sequences->items, sequences->count, sizeof *sequences->items, by_start);
    uint64_t *starts = malloc(table->count * sizeof *starts), covered = 0;
    struct lapse_line_row *rows = malloc(table->count * sizeof *rows);
    size_t count = 0;
    if (!starts || !rows) {
        free(starts);
        free(rows);
        return -ENOMEM;
    }
    for (size_t i = 0; i < sequences->count; i++) {
        const struct sequence *sequence = &sequences->items[i];
        if (sequence->start < covered)
            continue;
        memcpy(starts + count, table->starts + sequence->first, sequence->count * sizeof *starts);
        memcpy(rows + count, table->rows + sequence->first, sequence->count * sizeof *rows);
        count += sequence->count;
        covered = sequence->end;
    }
    free(table->starts);
    free(table->rows);
    table->starts = starts;
    table->rows = rows;
    table->capacity = table->row_capacity = table->count;
    table->count = count;
    return 0;
}

int lapse_line_table_read(struct lapse_line_table *table,
                          const struct lapse_line_sections *sections, uint64_t offset,
                          const char *compile_dir, bool files_only, lapse_line_is_code *is_code,
                          const void *context)
{
    struct program program = { 0 };
    struct sequences sequences = { 0 };
    *table = (struct lapse_line_table){ .compile_dir = compile_dir };
    int error = read_header(table, sections, offset, &program);
    if (!error && !files_only)
        error = run(table, &program, &sequences, is_code, context);
    if (!error)
        error = order(table, &sequences);
    free(sequences.items);
    if (error)
        lapse_line_table_free(table);
    return error;
}

void lapse_line_table_free(struct lapse_line_table *table)
{
    free(table->starts);
    free(table->rows);
    free(table->files);
    free(table->directories);
    *table = (struct lapse_line_table){ 0 };
}

const struct lapse_line_row *lapse_line_table_find(const struct lapse_line_table *table,
                                                   uint64_t address)
{
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->starts[middle] <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low && table->rows[low - 1].file != LAPSE_LINE_GAP ? &table->rows[low - 1] : NULL;
}

char *lapse_line_table_file(const struct lapse_line_table *table, uint64_t number,
                            struct lapse_names *names)
{
    uint64_t index = table->from_zero ? number : number - 1;
    if (index >= table->file_count || !*table->files[index].name)
        return NULL;
    const struct lapse_line_file *file = &table->files[index];
    const char *directory = file->directory < table->directory_count
                                ? table->directories[file->directory]
                                : "";
    if (file->name[0] != '/' && directory[0] != '/' && file->directory)
        directory = lapse_names_path(names, table->compile_dir, directory);
    return directory ? lapse_names_path(names, directory, file->name) : NULL;
}

size_t lapse_line_table_bytes(const struct lapse_line_table *table)
{
    return table->capacity * (sizeof *table->starts + sizeof *table->rows)
           + table->file_capacity * sizeof *table->files;
}
