/* SPDX-License-Identifier: MIT */
/* Functions that a tick handler must never reach, put in the place of the C library's: each looks
 * whether it runs inside one (then every signal is blocked in the kernel, also those that no program
 * can block) and says so. Meanwhile the program throws itself into every kind of code. */
#include "host.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/syscall.h>

static atomic_int entered;
static _Thread_local int looking;

static void look(const char *what)
{
    uint64_t mask = 0;
    if (looking)
        return;
    looking = 1;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, sizeof mask);
    /* All but SIGKILL and SIGSTOP. The C library blocks all in pthread_create too, but runs none of
     * these there in the new thread; the parent allocates before. */
    if ((mask | (UINT64_C(1) << (SIGKILL - 1)) | (UINT64_C(1) << (SIGSTOP - 1))) == UINT64_MAX &&
        atomic_fetch_add(&entered, 1) == 0)
        host_fail("%s inside the handler", what);
    looking = 0;
}

#define REAL(name) ((__typeof__(&name))real(&name##_real, #name))
static void *real(void **kept, const char *name)
{
    if (!*kept)
        *kept = dlsym(RTLD_NEXT, name);
    return *kept;
}
#define STAND_IN(result, name, parameters, arguments) \
    static void *name##_real; \
    result name parameters \
    { \
        look(#name); \
        return REAL(name) arguments; \
    }

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *at, size_t size);
extern void __libc_free(void *at);
void *malloc(size_t size) { look("malloc"); return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { look("calloc"); return __libc_calloc(count, size); }
void *realloc(void *at, size_t size) { look("realloc"); return __libc_realloc(at, size); }
void free(void *at) { look("free"); __libc_free(at); }
STAND_IN(int, dl_iterate_phdr,
         (int (*visit)(struct dl_phdr_info *, size_t, void *), void *data), (visit, data))
STAND_IN(int, dladdr, (const void *at, Dl_info *info), (at, info))
STAND_IN(int, pthread_cond_wait, (pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex),
         (cond, mutex))
STAND_IN(void *, dlopen, (const char *name, int flags), (name, flags))
STAND_IN(FILE *, fopen, (const char *restrict name, const char *restrict mode), (name, mode))

static int visit(struct dl_phdr_info *info, size_t size, void *sum)
{
    (void)info;
    *(size_t *)sum += size;
    return 0;
}

__attribute__((noinline)) static void *fresh_code(void *unused)
{
    size_t sum = 0;
    for (int i = 0; i < 30; i++) {
        free(realloc(malloc(100), 100000));
        dl_iterate_phdr(visit, &sum);
        void *library = dlopen("libresolv.so.2", RTLD_NOW);
        if (library)
            dlclose(library);
        char text[64];
        snprintf(text, sizeof text, "%f %zu", i / 3.0, sum);
        host_burn_us(1000);
    }
    return unused;
}

int main(void)
{
    pthread_t thread;
    for (int i = 0; i < 8; i++) {
        HOST_CHECK(pthread_create(&thread, NULL, fresh_code, NULL) == 0, "create");
        fresh_code(NULL);
        pthread_join(thread, NULL);
    }
    return host_end();
}
