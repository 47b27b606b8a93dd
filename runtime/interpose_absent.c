/* SPDX-License-Identifier: MIT */
/* Stand-ins while the interposers are not linked in: the handler is installed directly. */
#include <errno.h>

#include "interpose.h"
#include "state.h"
#include "sys.h"

struct kernel_action { void *handler; unsigned long flags; void *restorer; uint64_t mask; };

__attribute__((weak)) int lapse_interpose_begin(const struct lapse_interpose_options *options)
{
    struct kernel_action action = { (void *)options->entry, SA_SIGINFO | SA_RESTART | SA_ONSTACK | 0x04000000,
                                    (void *)lapse_handler_restorer, ~UINT64_C(0) };
    return (int)lapse_sys(SYS_rt_sigaction, options->signal, &action, 0, 8);
}
__attribute__((weak)) void lapse_interpose_foreign(int signal, siginfo_t *info, void *context) { (void)signal; (void)info; (void)context; }
__attribute__((weak)) bool lapse_mask_for_new_thread(const pthread_attr_t *attr) { (void)attr; return false; }
__attribute__((weak)) void lapse_mask_thread_begin(bool wished) { (void)wished; }
