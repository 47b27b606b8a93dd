/* SPDX-License-Identifier: MIT */
/* See signal_keeper.h. Raw system calls only: most calls come from the drain thread. */
#include "signal_keeper.h"

#include <stdatomic.h>

#include "interpose.h"
#include "message.h"
#include "session.h"
#include "state.h"

#define NS_PER_S UINT64_C(1000000000)
#define PATIENCE 8                      /* takings in a row that are answered */
#define PATIENCE_COMES_NS (10 * NS_PER_S) /* one more is, after so long */
#define WORTH_SAYING_NS (NS_PER_S / 5)  /* of CPU time without samples */

/* The drain thread's own; begun anew while it does not run. */
static uint64_t taken_seen, patience, patience_ns;

void lapse_signal_keeper_reset(void)
{
    atomic_store_explicit(&lapse_runtime.signal_taken, 0, memory_order_relaxed);
    taken_seen = patience_ns = 0;
    patience = PATIENCE;
}

static bool take_back(void)
{
    if (!lapse_interpose_recheck())
        return false;
    /* relaxed: a statistic */
    atomic_fetch_add_explicit(&lapse_runtime.signal_taken, 1, memory_order_relaxed);
    return true;
}

void lapse_signal_keep(void)
{
    if (lapse_session_is_mine())
        take_back();
}

static void say(const char *what, uint64_t lost_ns)
{
    char number[24], milliseconds[24];
    struct lapse_text signal = { number, 0, sizeof number };
    struct lapse_text lost = { milliseconds, 0, sizeof milliseconds };
    char line[160];
    struct lapse_text text = { line, 0, sizeof line };
    lapse_text_number(&signal, (uint64_t)lapse_runtime.signal);
    lapse_text_number(&lost, lost_ns / 1000000);
    lapse_text_string(&text, " by raw system calls; ");
    if (lost_ns) {
        lapse_text_string(&text, milliseconds);
        lapse_text_string(&text, " ms are not sampled. ");
    }
    lapse_text_string(&text, what);
    lapse_message(LAPSE_MESSAGE_SIGNAL, "the program sets a handler of its own for signal ", number, line,
                  "LAPSE_SIGNAL names another one");
}

bool lapse_signal_keep_on(uint64_t now_ns)
{
    take_back();
    uint64_t taken = atomic_load_explicit(&lapse_runtime.signal_taken, memory_order_relaxed);
    uint64_t fresh = taken - taken_seen;
    taken_seen = taken;
    if (now_ns - patience_ns >= PATIENCE_COMES_NS) {
        patience += patience < PATIENCE;
        patience_ns = now_ns;
    }
    patience = fresh < patience ? patience - fresh : 0;
    if (patience)
        return true;
    say("The profile ends here: ", 0);
    return false;
}

void lapse_signal_keeper_end(uint64_t late)
{
    /* Late ticks come to all threads; it is the host's taking that makes them many. */
    uint64_t lost = late * lapse_runtime.period_ns;
    if (take_back() && lost >= WORTH_SAYING_NS)
        say("", lost);
}
