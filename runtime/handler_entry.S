/* SPDX-License-Identifier: MIT */
/* Entry of the tick handler: from the host's stack to the slot's own.
 * Context: delivered by the kernel on whatever stack the thread was on, every signal masked. On that
 * stack it leaves 48 bytes of its own and the small frame of lapse_handler_enter; all the rest runs
 * on the stack that lapse_handler_enter returns (NULL: nothing more to do).
 *
 * The sixteen bytes before the entry tell another copy of lapse in the process (one preloaded, one
 * linked) whose handler this is, and where its state is: session.c, another_copy_runs. */
    .text
    .balign 16
    .quad 0x314f4c4c45485041        /* LAPSE_HANDLER_MARK */
    .long 0
    .long lapse_runtime - lapse_handler_entry
    .globl lapse_handler_entry
    .hidden lapse_handler_entry
    .type lapse_handler_entry, @function
lapse_handler_entry:
    .cfi_startproc
    endbr64
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    subq $8, %rsp
    .cfi_offset %rbx, -24
    .cfi_offset %r12, -32
    .cfi_offset %r13, -40
    movl %edi, %ebx
    movq %rsi, %r12
    movq %rdx, %r13
    movq 8(%rbp), %rcx /* where we return to: the kernel's restorer, or a host that called us */
    call lapse_handler_enter
    /* Return addresses that stay behind in memory that the host will use uninitialised would be
     * taken for callers by a scan for them (unwind/guess_sig.c): the frames just left are cleared.
     * The host's xmm0 is in the signal frame. */
    pxor %xmm0, %xmm0
    .set offset, -16
    .rept 8
    movups %xmm0, offset(%rsp)
    .set offset, offset - 16
    .endr
    testq %rax, %rax
    jz 1f
    movq %rax, %rsp
    movl %ebx, %edi
    movq %r12, %rsi
    movq %r13, %rdx
    movq %rax, %rcx
    call lapse_handler_tick
1:  leaq -24(%rbp), %rsp
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size lapse_handler_entry, . - lapse_handler_entry

    .section .note.GNU-stack, "", @progbits
