/* SPDX-License-Identifier: MIT */
/* Modules that go away. Their unwind rules must be forgotten before other code can lie at their
 * addresses and be walked by them.
 *
 * dlopen and dlmopen are not interposed: what they search (RUNPATH, $ORIGIN, the name space) depends
 * on the address they are called from, and a wrapper would be that caller. A new module is noticed
 * by the first pc in it that no known module holds. Called by the host; dlclose runs the host's
 * destructors. */
#include "interpose.h"

#include <dlfcn.h>
#include <errno.h>

#include "interpose_state.h"
#include "real.h"
#include "session.h"

LAPSE_INTERPOSE int dlclose(void *handle)
{
    bool taken = lapse_taken_signal();
    if (taken) {
        int error = errno;
        lapse_session_unload_begin();
        errno = error;
    }
    int result = LAPSE_REAL(dlclose)(handle);
    if (taken) {
        int error = errno;
        lapse_session_unload_end();
        errno = error;
    }
    return result;
}
