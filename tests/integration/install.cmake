# SPDX-License-Identifier: MIT
# Install into a scratch folder, then build and run a project that says find_package(lapse).
if(TARGET lapse_shared)
    add_test(NAME integration.install
        COMMAND ${CMAKE_CURRENT_LIST_DIR}/install.sh ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
    set_tests_properties(integration.install PROPERTIES LABELS integration TIMEOUT 120 SKIP_RETURN_CODE 77)
endif()
