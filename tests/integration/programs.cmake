# SPDX-License-Identifier: MIT
# Real programs plain and recorded (programs/). Those of big packages have the label long; their
# packages are the group `long` of cmake/packages.txt.
if(TARGET lapse AND TARGET lapse_shared)
    set(programs sqlite3 xz zstd sort gcc make python perl git openssl bash short_children cxx)
    set(long_programs ssh_keygen node redis nginx postgres ffmpeg imagemagick tmux chromium go_static)
    foreach(program ${programs} ${long_programs})
        add_test(NAME integration.program_${program}
            COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/programs/check.py ${program} $<TARGET_FILE:lapse>
                ${PROJECT_BINARY_DIR}/tests/integration)
        set_tests_properties(integration.program_${program} PROPERTIES LABELS integration TIMEOUT 280
            SKIP_RETURN_CODE 77 ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
    endforeach()
    foreach(program ${long_programs})
        set_tests_properties(integration.program_${program} PROPERTIES LABELS "integration;long")
    endforeach()
    # The five functions that perf names; skipped where it is not there or not permitted.
    foreach(program sqlite3 xz python cxx gcc)
        add_test(NAME integration.perf_${program}
            COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/programs/perf.py ${program} $<TARGET_FILE:lapse>
                ${PROJECT_BINARY_DIR}/tests/integration)
        set_tests_properties(integration.perf_${program} PROPERTIES LABELS integration TIMEOUT 120
            SKIP_RETURN_CODE 77 ENVIRONMENT "PYTHONDONTWRITEBYTECODE=1")
    endforeach()
    foreach(program xz python gcc)
        set_tests_properties(integration.perf_${program} PROPERTIES LABELS "integration;long")
    endforeach()
endif()
