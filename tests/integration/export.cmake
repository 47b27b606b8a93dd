# SPDX-License-Identifier: MIT
# Exports, read back by the programs they are for. One test per consumer; without its consumer a test is
# registered all the same, as skipped with the reason.
include(${CMAKE_CURRENT_LIST_DIR}/node.cmake)
file(GLOB go_tools /usr/lib/go-*/pkg/tool/linux_amd64 /usr/lib/go/pkg/tool/linux_amd64)
find_program(LAPSE_PPROF NAMES pprof PATHS ${go_tools})
find_program(LAPSE_CALLGRIND_ANNOTATE callgrind_annotate)
find_program(LAPSE_PROTOC protoc)
find_program(LAPSE_XMLLINT xmllint)

# lapse_export_test(NAME NEEDED...): NEEDED are variables of find_program.
function(lapse_export_test name)
    foreach(needed LAPSE_NODE ${ARGN})
        if(NOT ${needed})
            string(TOLOWER ${needed} program)
            string(REPLACE lapse_ "" program ${program})
            string(REPLACE _ " " program ${program})
            add_test(NAME integration.export-${name}
                COMMAND sh -c "echo 'skipped: no ${program}'; exit 77")
            set_tests_properties(integration.export-${name} PROPERTIES LABELS integration SKIP_RETURN_CODE 77)
            return()
        endif()
    endforeach()
    add_test(NAME integration.export-${name}
        COMMAND ${LAPSE_NODE} --test ${CMAKE_CURRENT_LIST_DIR}/export_${name}.mjs)
    set_tests_properties(integration.export-${name} PROPERTIES LABELS integration TIMEOUT 120
        FIXTURES_REQUIRED node-packages
        ENVIRONMENT "LAPSE=$<TARGET_FILE:lapse>;MAKE_RECORDING=$<TARGET_FILE:make-recording>;NODE_FOLDER=${LAPSE_NODE_FOLDER};PPROF=${LAPSE_PPROF};CALLGRIND_ANNOTATE=${LAPSE_CALLGRIND_ANNOTATE}")
endfunction()

if(TARGET lapse AND TARGET make-recording)
    lapse_export_test(rules LAPSE_XMLLINT)
    lapse_export_test(speedscope LAPSE_NPM)
    lapse_export_test(firefox LAPSE_NPM)
    lapse_export_test(pprof LAPSE_PPROF)
    lapse_export_test(callgrind LAPSE_CALLGRIND_ANNOTATE)
    lapse_export_test(perfetto LAPSE_PROTOC)
    add_test(NAME integration.export-progress
        COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/export_progress.py $<TARGET_FILE:lapse> $<TARGET_FILE:make-recording>)
    set_tests_properties(integration.export-progress PROPERTIES LABELS integration TIMEOUT 60)
endif()
