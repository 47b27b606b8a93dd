/* SPDX-License-Identifier: MIT */
/* The command line's readers of perf maps and jitdump files, on any bytes: the first byte chooses. What
 * is found at an address covers it, at a time not before its beginning. */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "jit_code.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { LOADS = 8 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void look_up(struct lapse_jit_code *code, uint64_t address, uint64_t time_ns)
{
    const struct lapse_jit_load *loads[LOADS];
    uint64_t until;
    const struct lapse_jit_load *load = lapse_jit_code_find(code, address, time_ns, &until);
    if (load) {
        check(address - load->start < load->size && load->from_ns <= time_ns && *load->name);
        check(!until || until > time_ns);
        const struct lapse_jit_line *line = lapse_jit_code_line(code, load, address);
        check(!line || (line->address <= address && line->file));
    }
    uint32_t count = lapse_jit_code_all(code, address, loads, LOADS);
    check(count <= LOADS);
    for (uint32_t i = 0; i < count; i++) {
        check(address - loads[i]->start < loads[i]->size);
        check(!i || loads[i - 1]->from_ns <= loads[i]->from_ns);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct lapse_jit_code code = { 0 };
    int fd = memfd_create("jit", MFD_CLOEXEC);
    check(fd >= 0);
    if (size && write(fd, bytes + 1, size - 1) == (ssize_t)size - 1) {
        if (bytes[0] & 1)
            lapse_jit_code_read_dump(&code, fd);
        else
            lapse_jit_code_read_map(&code, fd);
        for (uint64_t i = 0; i < 64; i++)
            look_up(&code, 0x1000 + i * 16, i * 10);
        uint32_t count = code.load_count;
        for (uint32_t i = 0; i < count && i < 64; i++)
            look_up(&code, code.loads[i].start + code.loads[i].size - 1, code.loads[i].from_ns);
    }
    close(fd);
    lapse_jit_code_free(&code);
    return 0;
}
