/* SPDX-License-Identifier: MIT */
/* Resolves the functions behind the interposed ones; see real.h. Called by our constructor and, when
 * another library's constructor is earlier, by the first interposed call. */
#include "real.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/auxv.h>

/* A static program has none; nobody shall be told that it needs one. */
#pragma weak dlsym

struct lapse_real lapse_real;
atomic_bool lapse_real_ready;

void *lapse_real_find(const char *name, void *linked)
{
    /* Without a loader (no interpreter was mapped) there is nothing to look in. */
    return linked ? linked : dlsym && getauxval(AT_BASE) ? dlsym(RTLD_NEXT, name) : NULL;
}

/* POSIX lets a function pointer be read out of a void *; ISO C wants a copy. */
static void resolve(const char *name, void *linked, void *field)
{
    void *address = lapse_real_find(name, linked);
    memcpy(field, &address, sizeof address);
}

void lapse_real_init(void)
{
#define LAPSE_REAL_RESOLVE(result, name, arguments) \
    resolve(#name, (void *)__real_##name, &lapse_real.name);
    LAPSE_REAL_FUNCTIONS(LAPSE_REAL_RESOLVE)
#undef LAPSE_REAL_RESOLVE
    /* Release: the pointers before the flag; pairs with the acquire in LAPSE_REAL. */
    atomic_store_explicit(&lapse_real_ready, true, memory_order_release);
}

/* 101: the earliest priority open to applications, so that constructors of ours find it done. */
__attribute__((constructor(101))) static void resolve_early(void)
{
    lapse_real_init();
}
