# SPDX-License-Identifier: MIT
# What labels cost where they are pushed.
if(TARGET lapse_shared)
    add_executable(bench-labels labels.c)
    set_target_properties(bench-labels PROPERTIES OUTPUT_NAME labels RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
    target_link_libraries(bench-labels PRIVATE lapse_shared)
endif()
