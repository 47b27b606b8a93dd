# SPDX-License-Identifier: MIT
# Node and the packages of package.json, for tests of what browsers read. They are installed into the
# build folder, once, by a test that the others wait for.
include_guard(DIRECTORY)
find_program(LAPSE_NODE NAMES node nodejs)
find_program(LAPSE_NPM npm)
set(LAPSE_NODE_FOLDER ${PROJECT_BINARY_DIR}/tests/node)
if(LAPSE_NODE AND LAPSE_NPM)
    add_test(NAME integration.node-packages COMMAND ${CMAKE_COMMAND} -DNPM=${LAPSE_NPM}
        -DFROM=${CMAKE_CURRENT_LIST_DIR}/package.json -DTO=${LAPSE_NODE_FOLDER}
        -P ${PROJECT_SOURCE_DIR}/cmake/node_packages.cmake)
    set_tests_properties(integration.node-packages PROPERTIES LABELS integration TIMEOUT 300
        FIXTURES_SETUP node-packages)
endif()
