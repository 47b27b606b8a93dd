# SPDX-License-Identifier: MIT
# The walker against libunwind's own unw_step.
if(TARGET lapse_unwind)
    pkg_check_modules(LIBUNWIND REQUIRED IMPORTED_TARGET libunwind)
    add_executable(unwind_sweep unwind_sweep.c)
    target_link_libraries(unwind_sweep PRIVATE lapse_unwind iberty PkgConfig::LIBUNWIND ${CMAKE_DL_LIBS})
    add_test(NAME integration.unwind_sweep
        COMMAND unwind_sweep libc.so.6 libstdc++.so.6 libcrypto.so.3 libsqlite3.so.0 libpython3.11.so.1.0)
    set_tests_properties(integration.unwind_sweep PROPERTIES LABELS integration TIMEOUT 300 SKIP_RETURN_CODE 77)
endif()
