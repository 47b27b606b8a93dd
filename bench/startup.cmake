# SPDX-License-Identifier: MIT
# What a session costs a process that lives for a millisecond.
if(TARGET lapse_shared)
    add_executable(bench-startup startup.c)
    set_target_properties(bench-startup PROPERTIES OUTPUT_NAME startup RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
    add_dependencies(bench-startup lapse_shared)
endif()
