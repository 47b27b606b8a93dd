/* SPDX-License-Identifier: MIT */
/* long lapse_drain_clone(flags, stack, parent_tid, child_tid, tls): the clone system call whose child
 * runs lapse_drain_main on `stack` and ends. Context: the handler or a thread with signals blocked. */
    .text
    .globl lapse_drain_clone
    .hidden lapse_drain_clone
    .type lapse_drain_clone, @function
lapse_drain_clone:
    .cfi_startproc
    endbr64
    movq %rcx, %r10
    movl $56, %eax
    syscall
    testq %rax, %rax
    jz 1f
    ret
1:  .cfi_undefined %rip
    xorl %ebp, %ebp
    call lapse_drain_main
    xorl %edi, %edi
    movl $60, %eax
    syscall
    hlt
    .cfi_endproc
    .size lapse_drain_clone, . - lapse_drain_clone

/* void lapse_drain_call(function, stack): calls it on the drain's stack, in the thread that we are in.
 * Context: the thread that ends a session, with signals blocked. */
    .globl lapse_drain_call
    .hidden lapse_drain_call
    .type lapse_drain_call, @function
lapse_drain_call:
    .cfi_startproc
    endbr64
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    movq %rsi, %rsp
    call *%rdi
    movq %rbp, %rsp
    popq %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size lapse_drain_call, . - lapse_drain_call
    .section .note.GNU-stack, "", @progbits
