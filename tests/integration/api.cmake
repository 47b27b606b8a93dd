# SPDX-License-Identifier: MIT
# The API: one program linked in three ways, and the control functions under stress (api/states.c).
if(TARGET lapse_shared AND TARGET lapse)
    foreach(kind labels-shared labels-static labels-program states first_start)
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
    target_link_libraries(api-first_start PRIVATE lapse_shared Threads::Threads ${CMAKE_DL_LIBS})
    add_test(NAME integration.api_first_start
        COMMAND sh -c "cd $(mktemp -d) && timeout 20 \"$0\" out; s=$?; rm -r \"$PWD\"; exit $s" $<TARGET_FILE:api-first_start>)
    set_tests_properties(integration.api_first_start PROPERTIES LABELS integration TIMEOUT 30)
    foreach(case labels-shared labels-static labels-program two-copies snapshot threads children handler repeated atexit flush full)
        add_test(NAME integration.api_${case}
            COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/api.sh ${PROJECT_BINARY_DIR} ${case})
        set_tests_properties(integration.api_${case} PROPERTIES LABELS integration TIMEOUT 120)
    endforeach()
endif()
