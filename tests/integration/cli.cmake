# SPDX-License-Identifier: MIT
# The command line on made-up recordings and small real commands: cli_*.sh, each runnable by hand with
# LAPSE_BUILD set to a build folder.
if(TARGET lapse AND TARGET lapse_shared)
    add_executable(cli-burn ${CMAKE_CURRENT_LIST_DIR}/cli_burn.c)
    set_target_properties(cli-burn PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/integration)
    target_link_libraries(cli-burn PRIVATE Threads::Threads)
    add_executable(cli-burn-static ${CMAKE_CURRENT_LIST_DIR}/cli_burn.c)
    set_target_properties(cli-burn-static PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/integration)
    target_link_options(cli-burn-static PRIVATE -static)
    target_link_libraries(cli-burn-static PRIVATE Threads::Threads)
    add_library(cli-held-signal SHARED ${CMAKE_CURRENT_LIST_DIR}/cli_held_signal.c)
    target_link_libraries(cli-held-signal PRIVATE ${CMAKE_DL_LIBS})
    add_executable(cli-killed ${CMAKE_CURRENT_LIST_DIR}/cli_killed.c)
    target_compile_options(cli-killed PRIVATE -O1 -g)
    target_link_libraries(cli-killed PRIVATE lapse_shared)
    add_library(cli-killed-late SHARED ${CMAKE_CURRENT_LIST_DIR}/cli_killed.c)
    target_compile_options(cli-killed-late PRIVATE -O1 -g)
    target_compile_definitions(cli-killed-late PRIVATE LATE)
    target_link_libraries(cli-killed-late PRIVATE lapse_shared)
    set_target_properties(cli-killed cli-killed-late cli-held-signal PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/integration
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/integration)
    file(GLOB cli_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/cli_*.sh)
    foreach(script ${cli_tests})
        get_filename_component(name ${script} NAME_WE)
        add_test(NAME integration.${name} COMMAND sh ${script})
        set_tests_properties(integration.${name} PROPERTIES LABELS integration TIMEOUT 120
            SKIP_RETURN_CODE 77 ENVIRONMENT "LAPSE_BUILD=${PROJECT_BINARY_DIR}")
    endforeach()
endif()
