/* SPDX-License-Identifier: MIT */
/* long syscall(long number, ...): numbers that matter to the session go to lapse_syscall_watched
 * (interpose_sandbox.c), all others make the system call right here. Leaves the frame alone, so a
 * call that returns twice, or on another stack, does so as it always did.
 *
 * Watched: 3 close, 13 rt_sigaction, 14 rt_sigprocmask, 33 dup2, 56 clone, 57 fork, 59 execve,
 * 157 prctl, 231 exit_group, 272 unshare, 292 dup3, 308 setns, 317 seccomp, 322 execveat, 435 clone3,
 * 436 close_range. */
    .section .rodata
    .balign 8
watched:
    .quad 0x0b00000200006008 /*   0: 3 13 14 33 56 57 59 */
    .quad 0                  /*  64 */
    .quad 0x0000000020000000 /* 128: 157 */
    .quad 0x0000008000000000 /* 192: 231 */
    .quad 0x2010001000010000 /* 256: 272 292 308 317 */
    .quad 0x0000000000000004 /* 320: 322 */
    .quad 0x0018000000000000 /* 384: 435 436 */

#define CLONE_VM 0x100
#define CLONE3_STACK 40

    .text
    .globl syscall
    .type syscall, @function
    .balign 16
syscall:
    .cfi_startproc
    cmpq $447, %rdi
    ja 2f
    leaq watched(%rip), %rax
    btq %rdi, (%rax)
    jnc 2f
    cmpq $56, %rdi /* clone: flags, stack */
    jne 1f
    testl $CLONE_VM, %esi
    jnz 2f
    testq %rdx, %rdx
    jnz 2f
    jmp lapse_syscall_watched
1:  cmpq $435, %rdi /* clone3: the same in memory */
    jne lapse_syscall_watched
    testl $CLONE_VM, (%rsi)
    jnz 2f
    cmpq $0, CLONE3_STACK(%rsi)
    jnz 2f
    jmp lapse_syscall_watched
2:  movq %rdi, %rax
    movq %rsi, %rdi
    movq %rdx, %rsi
    movq %rcx, %rdx
    movq %r8, %r10
    movq %r9, %r8
    movq 8(%rsp), %r9
    syscall
    cmpq $-4095, %rax
    jae 3f
    ret
3:  negl %eax
    pushq %rax
    .cfi_adjust_cfa_offset 8
    call __errno_location@PLT
    popq %rcx
    .cfi_adjust_cfa_offset -8
    movl %ecx, (%rax)
    movq $-1, %rax
    ret
    .cfi_endproc
    .size syscall, . - syscall
    .section .note.GNU-stack, "", @progbits
