/* SPDX-License-Identifier: MIT */
/* Code made at run time, without unwind information and without a file: some keeps a frame pointer,
 * some uses rbp as data, all of it is thrown away and made again while ticks arrive. */
#include "host.h"

#include <sys/mman.h>

/* xor eax,eax; L: imul rax,rax,7; add rax,rdi; dec rdi; jnz L */
static const unsigned char loop[] = { 0x31, 0xc0, 0x48, 0x6b, 0xc0, 0x07, 0x48, 0x01, 0xf8,
                                      0x48, 0xff, 0xcf, 0x75, 0xf4 };
static const unsigned char enter_frame[] = { 0x55, 0x48, 0x89, 0xe5 };  /* push rbp; mov rbp,rsp */
static const unsigned char enter_data[] = { 0x55, 0x48, 0x8d, 0x2f };   /* push rbp; lea rbp,[rdi] */
static const unsigned char leave[] = { 0x5d, 0xc3 };                    /* pop rbp; ret */

static uint64_t expected(uint64_t n)
{
    uint64_t value = 0;
    for (; n; n--)
        value = value * 7 + n;
    return value;
}

int main(void)
{
    uint64_t want = expected(200000);
    int64_t end = host_clock_us(CLOCK_THREAD_CPUTIME_ID) + 400000;
    for (int round = 0; host_clock_us(CLOCK_THREAD_CPUTIME_ID) < end; round++) {
        unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                                   -1, 0);
        unsigned char *at = code + (round % 16) * 64;
        uint64_t (*function)(uint64_t);
        memcpy(&function, &at, sizeof function);
        memcpy(at, round % 2 ? enter_frame : enter_data, 4);
        memcpy(at + 4, loop, sizeof loop);
        memcpy(at + 4 + sizeof loop, leave, sizeof leave);
        mprotect(code, 4096, PROT_READ | PROT_EXEC);
        HOST_CHECK(function(200000) == want, "wrong result");
        munmap(code, 4096);
    }
    return host_end();
}
