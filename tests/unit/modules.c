/* SPDX-License-Identifier: MIT */
/* unwind/modules: the list against the loader's own, in this very process. */
#include <criterion/criterion.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "modules.h"

static void *resize(void *context, void *old, size_t old_size, size_t new_size)
{
    int64_t *balance = context;
    *balance += (int64_t)new_size - (int64_t)old_size;
    if (new_size)
        return realloc(old, new_size);
    free(old);
    return NULL;
}

static int64_t balance;
static const struct lapse_allocator allocator = { resize, &balance };

static int compare_with_loader(struct dl_phdr_info *info, size_t size, void *opaque)
{
    const struct lapse_modules *modules = opaque;
    (void)size;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
            continue;
        uint64_t address = info->dlpi_addr + segment->p_vaddr;
        const struct lapse_mapped_module *module = lapse_modules_find(modules, address);
        cr_assert(module, "%s is missing", info->dlpi_name);
        cr_assert_eq(module->bias, info->dlpi_addr, "bias of %s", module->path);
        cr_assert(address >= module->text[0].start && address < module->text[0].end);
        cr_assert(module->build_id_size == 0 || module->build_id_size >= 8);
        struct stat status;
        if (info->dlpi_name[0] == '/' && !stat(info->dlpi_name, &status))
            cr_assert_eq(status.st_ino, module->inode, "%s is not %s", module->path,
                         info->dlpi_name);
    }
    return 0;
}

Test(modules, agree_with_the_loader)
{
    struct lapse_modules modules;
    cr_assert_eq(lapse_modules_read(&modules, &allocator), 0);
    cr_assert_geq(modules.count, 4);
    dl_iterate_phdr(compare_with_loader, &modules);
    for (uint32_t i = 1; i < modules.count; i++)
        cr_assert_leq(modules.modules[i - 1].start, modules.modules[i].start);
    lapse_modules_free(&modules);
    cr_assert_eq(balance, 0, "all memory went back");
}

Test(modules, vdso_and_run_time_code)
{
    struct lapse_modules modules;
    char *code = mmap(NULL, 3 * 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(code + 4096, 4096, PROT_NONE);
    cr_assert_eq(lapse_modules_read(&modules, &allocator), 0);
    const struct lapse_mapped_module *vdso =
        lapse_modules_find(&modules, getauxval(AT_SYSINFO_EHDR));
    cr_assert(vdso);
    cr_assert_str_eq(vdso->path, "[vdso]");
    cr_assert_gt(vdso->build_id_size, 0);
    const struct lapse_mapped_module *jit = lapse_modules_find(&modules, (uintptr_t)code);
    cr_assert(jit);
    cr_assert_str_eq(jit->path, "[anon:exec]");
    cr_assert_null(lapse_modules_find(&modules, (uintptr_t)code + 4096));
    cr_assert(lapse_modules_find(&modules, (uintptr_t)code + 8192));
    cr_assert_null(lapse_modules_find(&modules, 0));
    lapse_modules_free(&modules);
}

Test(modules, c_library_has_a_build_id_and_one_text)
{
    struct lapse_modules modules;
    cr_assert_eq(lapse_modules_read(&modules, &allocator), 0);
    const struct lapse_mapped_module *libc = lapse_modules_find(&modules, (uintptr_t)qsort);
    cr_assert(libc);
    cr_assert_eq(libc->build_id_size, 20);
    cr_assert_eq(libc->text_count, 1);
    cr_assert_gt(libc->inode, 0);
    lapse_modules_free(&modules);
}

static void *no_memory(void *context, void *old, size_t old_size, size_t new_size)
{
    int *left = context;
    if (new_size && (*left)-- <= 0)
        return NULL;
    if (new_size)
        return realloc(old, new_size);
    (void)old_size;
    free(old);
    return NULL;
}

Test(modules, every_allocation_may_fail)
{
    struct lapse_modules modules;
    for (int allowed = 0; allowed < 1000; allowed++) {
        int left = allowed;
        struct lapse_allocator failing = { no_memory, &left };
        int result = lapse_modules_read(&modules, &failing);
        lapse_modules_free(&modules);
        if (!result)
            return;
        cr_assert_eq(result, -12);
        cr_assert_eq(modules.count, 0);
    }
    cr_assert_fail("never enough");
}
