/* SPDX-License-Identifier: MIT */
/* Run-time code as messages of a recording's chunk (jit_code.h). */
#include "jit_code.h"

#include <string.h>

enum { FIELD_SYMBOLS = 7, FIELD_ADDRESSES = 8 };

void lapse_jit_put_symbol(struct lapse_wire *wire, const struct lapse_jit_code *code,
                          struct lapse_jit_load *load, uint64_t address, const char *name)
{
    uint64_t start = load->start, end = load->start + load->size;
    const struct lapse_jit_line *line = load->line_count ? &code->lines[load->first_line] : NULL;
    if (address < load->written)
        return;
    /* Without times what came later counts, so the load is named where it is the last one. */
    if (!load->from_ns)
        lapse_jit_code_part(code, load, address, &start, &end);
    load->written = end;
    size_t mark = lapse_wire_begin(wire, FIELD_SYMBOLS);
    lapse_wire_uint(wire, 1, start);
    lapse_wire_uint(wire, 2, end - start);
    lapse_wire_string(wire, 3, name);
    if (strcmp(name, load->name))
        lapse_wire_string(wire, 4, load->name);
    if (line) {
        lapse_wire_string(wire, 5, line->file);
        lapse_wire_uint(wire, 6, line->line);
    }
    lapse_wire_uint(wire, 7, load->from_ns);
    lapse_wire_uint(wire, 8, lapse_jit_code_until(code, load));
    lapse_wire_end(wire, mark);
}

void lapse_jit_put_line(struct lapse_wire *wire, const struct lapse_jit_code *code,
                        const struct lapse_jit_load *load, uint64_t pc, bool is_return, const char *name)
{
    const struct lapse_jit_line *line = lapse_jit_code_line(code, load, pc - is_return);
    if (!line)
        return;
    size_t mark = lapse_wire_begin(wire, FIELD_ADDRESSES);
    lapse_wire_uint(wire, 1, pc);
    size_t inner = lapse_wire_begin(wire, 2);
    lapse_wire_string(wire, 1, name);
    lapse_wire_string(wire, 3, line->file);
    lapse_wire_uint(wire, 4, line->line);
    lapse_wire_end(wire, inner);
    lapse_wire_uint(wire, 3, is_return);
    lapse_wire_end(wire, mark);
}
