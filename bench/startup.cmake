# SPDX-License-Identifier: MIT
# What a session costs a process that lives for a millisecond.
if(TARGET lapse_shared)
    add_executable(bench-startup startup.c)
    set_target_properties(bench-startup PROPERTIES OUTPUT_NAME startup RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
    add_dependencies(bench-startup lapse_shared)
    if(LAPSE_TESTS)
        # A bound that only a real regression passes: the goal is 1 ms and 4 MiB.
        add_test(NAME bench.startup COMMAND bench-startup $<TARGET_FILE:lapse_shared> 100 3000 8192)
        set_tests_properties(bench.startup PROPERTIES LABELS integration TIMEOUT 60)
    endif()
endif()
