# SPDX-License-Identifier: MIT
# The API: one program linked in three ways, and the control functions under stress (api/states.c).
if(TARGET lapse_shared AND TARGET lapse)
    foreach(kind labels-shared labels-static labels-program states)
        string(REGEX REPLACE "-.*" "" source ${kind})
        add_executable(api-${kind} ${CMAKE_CURRENT_LIST_DIR}/api/${source}.c)
        set_target_properties(api-${kind} PROPERTIES OUTPUT_NAME ${kind}
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/integration/api)
        target_compile_options(api-${kind} PRIVATE -O1 -g)
    endforeach()
    target_link_libraries(api-labels-shared PRIVATE lapse_shared Threads::Threads)
    target_link_libraries(api-labels-static PRIVATE lapse_static)
    target_link_libraries(api-labels-program PRIVATE lapse_static_program)
    target_link_libraries(api-states PRIVATE lapse_shared Threads::Threads)
    foreach(case labels-shared labels-static labels-program two-copies snapshot threads children handler repeated atexit flush full)
        add_test(NAME integration.api_${case}
            COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/api.sh ${PROJECT_BINARY_DIR} ${case})
        set_tests_properties(integration.api_${case} PROPERTIES LABELS integration TIMEOUT 120)
    endforeach()
endif()
