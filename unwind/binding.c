/* SPDX-License-Identifier: MIT */
/* Binds libunwind; binding.h says why like this. Called once by lapse_unwind_init. */
#include "binding.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#define LIBRARY "libunwind-x86_64.so.8"

struct lapse_libunwind lapse_libunwind;

/* Defined when a static application links libunwind itself. */
#define WEAK __attribute__((weak))
WEAK extern unw_addr_space_t _Ux86_64_create_addr_space(unw_accessors_t *, int);
WEAK extern int _Ux86_64_set_caching_policy(unw_addr_space_t, unw_caching_policy_t);
WEAK extern int _Ux86_64_init_remote(unw_cursor_t *, unw_addr_space_t, void *);
WEAK extern int _Ux86_64_step(unw_cursor_t *);
WEAK extern int _Ux86_64_get_reg(unw_cursor_t *, int, unw_word_t *);
WEAK extern int _Ux86_64_dwarf_search_unwind_table(unw_addr_space_t, unw_word_t, unw_dyn_info_t *,
                                                   unw_proc_info_t *, int, void *);
/* Weak too: a static application should not be told that it needs the loader. */
#pragma weak dlopen
#pragma weak dlsym

static int bind_linked(void)
{
    if (!_Ux86_64_create_addr_space || !_Ux86_64_set_caching_policy || !_Ux86_64_init_remote ||
        !_Ux86_64_step || !_Ux86_64_get_reg || !_Ux86_64_dwarf_search_unwind_table)
        return -ENOENT;
    lapse_libunwind = (struct lapse_libunwind){
        .create_addr_space = _Ux86_64_create_addr_space,
        .set_caching_policy = _Ux86_64_set_caching_policy,
        .init_remote = _Ux86_64_init_remote,
        .step = _Ux86_64_step,
        .get_reg = _Ux86_64_get_reg,
        .dwarf_search_unwind_table = _Ux86_64_dwarf_search_unwind_table,
    };
    return 0;
}

/* A copy beside liblapse.so is found through our run path, which the loader does not apply to what
 * the copy itself needs: those are opened first then. */
static void *open_library(void)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library)
        return library;
    dlopen("liblzma.so.5", RTLD_NOW | RTLD_LOCAL);
    dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    return dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

static int bind_symbol(void *library, const char *name, void *to)
{
    void *symbol = dlsym(library, name);
    memcpy(to, &symbol, sizeof symbol);
    return symbol ? 0 : -ENOENT;
}

static int bind_opened(void)
{
    void *library = dlopen && dlsym ? open_library() : NULL;
    struct lapse_libunwind *to = &lapse_libunwind;
    if (!library || bind_symbol(library, "_Ux86_64_create_addr_space", &to->create_addr_space) ||
        bind_symbol(library, "_Ux86_64_set_caching_policy", &to->set_caching_policy) ||
        bind_symbol(library, "_Ux86_64_init_remote", &to->init_remote) ||
        bind_symbol(library, "_Ux86_64_step", &to->step) ||
        bind_symbol(library, "_Ux86_64_get_reg", &to->get_reg) ||
        bind_symbol(library, "_Ux86_64_dwarf_search_unwind_table", &to->dwarf_search_unwind_table))
        return -ENOENT;
    return 0; /* never closed: a handler may be inside */
}

int lapse_libunwind_bind(char *error, uint32_t error_size)
{
    static const char message[] = LIBRARY " is missing (package libunwind8) or not usable";
    if (!bind_linked() || !bind_opened())
        return 0;
    if (error_size) {
        uint32_t length = error_size < sizeof message ? error_size : (uint32_t)sizeof message;
        memcpy(error, message, length);
        error[length - 1] = 0;
    }
    return -ENOENT;
}
