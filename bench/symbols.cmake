# SPDX-License-Identifier: MIT
# Names of 100,000 addresses: lapse beside llvm-symbolizer and eu-addr2line. `lapse-addresses` is
# lapse's own addr2line, for this and for the tests.
if(TARGET lapse_unwind_offline)
    add_executable(lapse-addresses ${CMAKE_CURRENT_LIST_DIR}/symbols.c)
    set_target_properties(lapse-addresses PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench/tools)
    target_link_libraries(lapse-addresses PRIVATE lapse_unwind_offline)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/bench/symbols CONTENT "#!/bin/sh
exec python3 ${CMAKE_CURRENT_LIST_DIR}/symbols.py ${PROJECT_BINARY_DIR}/bench/tools/lapse-addresses \\
    ${CMAKE_CURRENT_LIST_DIR}/symbols_program.cc \"$@\"
")
    file(CHMOD ${PROJECT_BINARY_DIR}/bench/symbols PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE
        GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
endif()
