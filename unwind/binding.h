/* SPDX-License-Identifier: MIT */
/* libunwind as lapse uses it: the generic address-space half, libunwind-x86_64. Found at run time,
 * so that a host without it runs unprofiled instead of not at all, and bound before the first tick,
 * since a lazy binding inside the handler would run the loader. */
#ifndef LAPSE_UNWIND_BINDING_H
#define LAPSE_UNWIND_BINDING_H

#include <libunwind-x86_64.h>
#include <stdint.h>

struct lapse_libunwind {
    unw_addr_space_t (*create_addr_space)(unw_accessors_t *accessors, int byte_order);
    int (*set_caching_policy)(unw_addr_space_t space, unw_caching_policy_t policy);
    int (*init_remote)(unw_cursor_t *cursor, unw_addr_space_t space, void *argument);
    int (*step)(unw_cursor_t *cursor);
    int (*get_reg)(unw_cursor_t *cursor, int reg, unw_word_t *value);
    int (*dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t pc, unw_dyn_info_t *table,
                                     unw_proc_info_t *info, int need_info, void *argument);
};
/* Set by lapse_libunwind_bind, constant after. */
extern struct lapse_libunwind lapse_libunwind;

/* Context: start of the session, outside any handler. Returns 0 or -ENOENT with a line in `error`. */
int lapse_libunwind_bind(char *error, uint32_t error_size);

#endif
