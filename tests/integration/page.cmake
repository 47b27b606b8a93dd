# SPDX-License-Identifier: MIT
# lapse's own page, driven in a headless browser.
include(${CMAKE_CURRENT_LIST_DIR}/node.cmake)
find_program(CHROMIUM NAMES chromium chromium-browser google-chrome)
if(LAPSE_NODE AND CHROMIUM AND TARGET lapse AND TARGET make-recording)
    foreach(part flame timeline hostile view)
        add_test(NAME integration.page-${part}
            COMMAND ${LAPSE_NODE} --test ${CMAKE_CURRENT_LIST_DIR}/page_${part}.mjs)
        set_tests_properties(integration.page-${part} PROPERTIES LABELS integration TIMEOUT 180
            FIXTURES_REQUIRED node-packages
            ENVIRONMENT "LAPSE=$<TARGET_FILE:lapse>;MAKE_RECORDING=$<TARGET_FILE:make-recording>;CHROMIUM=${CHROMIUM};NODE_FOLDER=${LAPSE_NODE_FOLDER}")
    endforeach()
endif()
