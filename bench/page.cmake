# SPDX-License-Identifier: MIT
# How long lapse's own page takes to open and to draw a frame, in headless Chromium.
find_program(LAPSE_NODE NAMES node nodejs)
find_program(CHROMIUM NAMES chromium chromium-browser google-chrome)
if(LAPSE_NODE AND CHROMIUM AND LAPSE_TESTS)
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/bench/page CONTENT "#!/bin/sh
# Written by the build. usage: page [SAMPLES [NODES]]
LAPSE=$<TARGET_FILE:lapse> MAKE_RECORDING=$<TARGET_FILE:make-recording> CHROMIUM=${CHROMIUM} \\
NODE_FOLDER=${PROJECT_BINARY_DIR}/tests/node exec ${LAPSE_NODE} --test-reporter=spec ${CMAKE_CURRENT_LIST_DIR}/page.mjs \"$@\"
" FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()
