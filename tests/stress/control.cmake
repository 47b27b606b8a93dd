# SPDX-License-Identifier: MIT
# ThreadSanitizer on the whole runtime: all control functions, labels, spans and names from many threads
# (tests/integration/api/states.c), with threads in place of signals (control_seam.c).
if(NOT TARGET lapse_shared OR NOT TARGET lapse)
    return()
endif()
enable_language(ASM)
file(GLOB runtime CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/runtime/*.c ${PROJECT_SOURCE_DIR}/unwind/*.c)
list(FILTER runtime EXCLUDE REGEX "/clocks\\.c$")
get_target_property(host lapse_export_host SOURCES)
list(TRANSFORM host PREPEND ${PROJECT_SOURCE_DIR}/export/)
add_executable(stress-control-tsan ${CMAKE_CURRENT_LIST_DIR}/control_seam.c ${runtime} ${host}
    ${PROJECT_SOURCE_DIR}/runtime/handler_entry.S ${PROJECT_SOURCE_DIR}/tests/integration/api/states.c)
set_target_properties(stress-control-tsan PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/stress)
target_include_directories(stress-control-tsan PRIVATE ${PROJECT_SOURCE_DIR}/runtime
    ${PROJECT_SOURCE_DIR}/unwind ${PROJECT_SOURCE_DIR}/export)
target_compile_options(stress-control-tsan PRIVATE -O1 -fsanitize=thread -fno-stack-protector)
target_link_options(stress-control-tsan PRIVATE -fsanitize=thread
    -Wl,--wrap=malloc -Wl,--wrap=realloc -Wl,--wrap=calloc -Wl,--wrap=free)
target_link_libraries(stress-control-tsan PRIVATE iberty Threads::Threads ${CMAKE_DL_LIBS})
# Forked children begin a session of their own in `atexit`.
foreach(case threads flush full atexit)
    add_test(NAME stress.control_${case}_tsan COMMAND sh ${PROJECT_SOURCE_DIR}/tests/integration/api.sh
        ${PROJECT_BINARY_DIR} ${case}/tests/stress/stress-control-tsan)
    set_tests_properties(stress.control_${case}_tsan PROPERTIES LABELS stress TIMEOUT 120
        ENVIRONMENT "TSAN_OPTIONS=die_after_fork=0")
endforeach()
