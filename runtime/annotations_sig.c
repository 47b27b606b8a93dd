/* SPDX-License-Identifier: MIT */
/* The handler's side of annotations.h. Context: the handler, in the thread whose they are. */
#include "annotations.h"

_Thread_local struct lapse_annotations lapse_annotations __attribute__((tls_model("initial-exec")));
_Atomic uint32_t lapse_annotations_session;

LAPSE_SIGSAFE bool lapse_annotations_paused(int32_t tid)
{
    const struct lapse_annotations *own = &lapse_annotations;
    /* relaxed: a number, from which nothing else is inferred */
    uint32_t session = atomic_load_explicit(&lapse_annotations_session, memory_order_relaxed);
    return own->tid == tid && (own->excluded || (own->paused && own->session == session));
}

LAPSE_SIGSAFE uint32_t lapse_annotations_labels(int32_t tid, uint64_t pairs[2 * LAPSE_LABELS_MAX])
{
    const struct lapse_annotations *own = &lapse_annotations;
    if (own->tid != tid ||
        own->session != atomic_load_explicit(&lapse_annotations_session, memory_order_relaxed))
        return 0;
    /* relaxed, and the compiler's fence: pairs with the one in lapse_label_push, same thread */
    uint32_t depth = atomic_load_explicit(&own->label_depth, memory_order_relaxed);
    atomic_signal_fence(memory_order_acquire);
    if (depth > LAPSE_LABELS_MAX)
        depth = LAPSE_LABELS_MAX;
    for (uint32_t i = 0; i < depth; i++) {
        pairs[2 * i] = (uint64_t)(uintptr_t)own->labels[i].key;
        pairs[2 * i + 1] = (uint64_t)(uintptr_t)own->labels[i].value;
    }
    return depth;
}
