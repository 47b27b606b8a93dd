# SPDX-License-Identifier: MIT
# Each system call of the runtime fails in turn: every 40th in each run of the tests, all in the long one.
if(TARGET lapse_shared AND NOT LAPSE_SANITIZE_THREAD AND NOT LAPSE_SANITIZE_ADDRESS)
    foreach(name host inject)
        add_executable(stress-faults-${name} ${CMAKE_CURRENT_LIST_DIR}/faults/${name}.c)
        set_target_properties(stress-faults-${name} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests/stress)
        target_link_libraries(stress-faults-${name} PRIVATE Threads::Threads)
    endforeach()
    foreach(case "faults;40;stress" "faults_all;1;stress,long")
        list(GET case 0 name)
        list(GET case 1 step)
        list(GET case 2 labels)
        string(REPLACE "," ";" labels "${labels}")
        add_test(NAME stress.${name} COMMAND stress-faults-inject $<TARGET_FILE:lapse_shared>
            $<TARGET_FILE:stress-faults-host> ${step})
        set_tests_properties(stress.${name} PROPERTIES LABELS "${labels}" TIMEOUT 1200)
    endforeach()
endif()
