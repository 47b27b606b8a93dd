# SPDX-License-Identifier: MIT
add_executable(bench-engine ${CMAKE_CURRENT_LIST_DIR}/engine.c)
set_target_properties(bench-engine PROPERTIES OUTPUT_NAME engine
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
target_compile_definitions(bench-engine PRIVATE LAPSE_COMMAND="$<TARGET_FILE:lapse>")
target_link_libraries(bench-engine PRIVATE lapse_export)
add_dependencies(bench-engine lapse)
