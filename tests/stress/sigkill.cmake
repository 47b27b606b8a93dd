# SPDX-License-Identifier: MIT
# SIGKILL at random moments: some in every run of the tests, 500 in the long one.
if(TARGET lapse_shared AND NOT LAPSE_SANITIZE_THREAD AND NOT LAPSE_SANITIZE_ADDRESS)
    add_executable(stress-sigkill ${CMAKE_CURRENT_LIST_DIR}/sigkill.c)
    set_target_properties(stress-sigkill PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/stress)
    target_include_directories(stress-sigkill PRIVATE ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/unwind)
    target_link_libraries(stress-sigkill PRIVATE lapse_export Threads::Threads)
    add_test(NAME stress.sigkill COMMAND stress-sigkill $<TARGET_FILE:lapse_shared> $<TARGET_FILE:lapse> 40)
    set_tests_properties(stress.sigkill PROPERTIES LABELS stress TIMEOUT 120)
    add_test(NAME stress.sigkill_500 COMMAND stress-sigkill $<TARGET_FILE:lapse_shared> $<TARGET_FILE:lapse> 500)
    set_tests_properties(stress.sigkill_500 PROPERTIES LABELS "stress;long" TIMEOUT 900)
endif()
