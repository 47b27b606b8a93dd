/* SPDX-License-Identifier: MIT */
/* Files of names for run-time code, as the command line reads them (jit_code.h). Offline only. */
#include <errno.h>
#include <unistd.h>

#include "jit_code.h"

#define FILE_BYTES_MAX (UINT64_C(1) << 32)

static long read_file(void *context, void *to, size_t size, uint64_t offset)
{
    ssize_t got;
    do
        got = pread(*(const int *)context, to, size, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got < 0 ? 0 : got; /* what cannot be read is not there */
}

struct lapse_jit_source lapse_jit_file(const int *fd)
{
    return (struct lapse_jit_source){ read_file, (void *)fd, FILE_BYTES_MAX };
}
