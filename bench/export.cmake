# SPDX-License-Identifier: MIT
# Samples a second of every export format, and folded text against a copy of its output.
file(GLOB support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.c)
add_executable(bench_export ${CMAKE_CURRENT_LIST_DIR}/export.c ${support})
set_target_properties(bench_export PROPERTIES OUTPUT_NAME export
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
target_include_directories(bench_export PRIVATE ${PROJECT_SOURCE_DIR}/tests/support)
target_link_libraries(bench_export PRIVATE lapse_export)
