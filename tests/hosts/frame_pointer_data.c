/* SPDX-License-Identifier: MIT */
/* Assembly without and with wrong unwind information: rbp counts, points to unmapped memory, is not
 * aligned, points above the stack; a CFI that names a frame which does not exist. */
#include "host.h"

#include <sys/mman.h>

uint64_t host_spin_bare(uint64_t count, uint64_t rbp);
uint64_t host_spin_wrong(uint64_t count, uint64_t rbp);
#define SPIN(name, cfi_begin, cfi_lie, cfi_end) \
    __asm__(".text\n.globl " name "\n.type " name ", @function\n" name ":\n" cfi_begin \
            "    push %rbp\n    mov %rsi, %rbp\n    xor %eax, %eax\n" cfi_lie \
            "1:  lea 1(%rax,%rdi), %rax\n    add $1, %rbp\n    dec %rdi\n    jnz 1b\n" \
            "    pop %rbp\n    ret\n" cfi_end ".size " name ", . - " name "\n")
SPIN("host_spin_bare", "", "", "");
SPIN("host_spin_wrong", ".cfi_startproc\n", ".cfi_def_cfa %rbp, 16\n.cfi_offset %rbp, -16\n",
     ".cfi_endproc\n");

int main(void)
{
    char *hole = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uint64_t values[] = { 0, 1, (uint64_t)(uintptr_t)hole, (uint64_t)(uintptr_t)hole + 4090,
                                UINT64_MAX - 4096, UINT64_C(0x800000000000), 
                                (uint64_t)(uintptr_t)&hole + 3, (uint64_t)(uintptr_t)&hole + (64u << 20),
                                (uint64_t)(uintptr_t)&hole };
    const uint64_t count = 300000;
    int64_t end = host_clock_us(CLOCK_THREAD_CPUTIME_ID) + 500000;
    for (unsigned i = 0; host_clock_us(CLOCK_THREAD_CPUTIME_ID) < end; i++) {
        uint64_t rbp = values[i % (sizeof values / sizeof values[0])];
        uint64_t sum = count * (count + 1) / 2 + count;
        HOST_CHECK(host_spin_bare(count, rbp) == sum, "bare");
        HOST_CHECK(host_spin_wrong(count, rbp) == sum, "wrong");
    }
    return host_end();
}
