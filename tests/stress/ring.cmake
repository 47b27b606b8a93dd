# SPDX-License-Identifier: MIT
# Threads in place of signals on a small ring. In the tsan preset this is where ThreadSanitizer looks.
add_executable(stress-ring ${CMAKE_CURRENT_LIST_DIR}/ring.c ${PROJECT_SOURCE_DIR}/runtime/ring.c
    ${PROJECT_SOURCE_DIR}/runtime/ring_sig.c)
set_target_properties(stress-ring PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/stress)
target_include_directories(stress-ring PRIVATE ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/unwind)
target_link_libraries(stress-ring PRIVATE Threads::Threads)
add_test(NAME stress.ring COMMAND stress-ring 2)
set_tests_properties(stress.ring PROPERTIES LABELS stress TIMEOUT 60)
# The same with ThreadSanitizer, whatever the preset.
if(NOT LAPSE_SANITIZE_THREAD AND NOT LAPSE_SANITIZE_ADDRESS)
    add_executable(stress-ring-tsan ${CMAKE_CURRENT_LIST_DIR}/ring.c ${PROJECT_SOURCE_DIR}/runtime/ring.c
        ${PROJECT_SOURCE_DIR}/runtime/ring_sig.c)
    set_target_properties(stress-ring-tsan PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/stress)
    target_include_directories(stress-ring-tsan PRIVATE ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/unwind)
    target_compile_options(stress-ring-tsan PRIVATE -fsanitize=thread)
    target_link_options(stress-ring-tsan PRIVATE -fsanitize=thread)
    target_link_libraries(stress-ring-tsan PRIVATE Threads::Threads)
    add_test(NAME stress.ring_tsan COMMAND stress-ring-tsan 2)
    set_tests_properties(stress.ring_tsan PROPERTIES LABELS stress TIMEOUT 60)
endif()
