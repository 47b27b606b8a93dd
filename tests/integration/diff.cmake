# SPDX-License-Identifier: MIT
# lapse diff on real runs, and what labels cost.
if(TARGET lapse AND TARGET lapse_shared)
    add_test(NAME integration.diff
        COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/diff.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
    set_tests_properties(integration.diff PROPERTIES LABELS integration TIMEOUT 240)
endif()
if(TARGET lapse_shared AND LAPSE_BENCH)
    add_test(NAME integration.labels_cost
        COMMAND sh ${CMAKE_CURRENT_LIST_DIR}/labels_cost.sh ${PROJECT_BINARY_DIR}/bench/labels)
    set_tests_properties(integration.labels_cost PROPERTIES LABELS integration TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()
