# SPDX-License-Identifier: MIT
# The offline symbolizer against llvm-symbolizer and addr2line, on one program built in many ways.
if(TARGET lapse-addresses)
    function(add_symbols_test name addresses parts)
        add_test(NAME integration.symbols_${name}
            COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/symbols_files.sh $<TARGET_FILE:lapse-addresses>
                ${PROJECT_SOURCE_DIR} ${addresses} ${parts} ${ARGN})
        set_tests_properties(integration.symbols_${name} PROPERTIES LABELS integration TIMEOUT 600
            SKIP_RETURN_CODE 77)
    endfunction()
    foreach(kind dwarf5 dwarf4 dwarf3 dwz split package separate compressed clang lto tables_only mini c_o3 libc hostile)
        add_symbols_test(${kind} 2000 1 ${kind})
    endforeach()
    add_symbols_test(all_long 20000 8 dwarf5 dwarf4 dwarf3 dwz split package separate compressed clang lto
        tables_only mini c_o3 libc)
    set_tests_properties(integration.symbols_all_long PROPERTIES LABELS "integration;long" TIMEOUT 5400)
endif()

# Recordings of real programs, read here and elsewhere.
foreach(kind elsewhere changed vanished stripped rust rustc node reused no_unwind jit_dump jit_at_exit jit_stale jit_killed
        jit_namespace budget debuginfod java luajit python)
    add_test(NAME integration.symbols_recording_${kind}
        COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/symbols_recording.sh $<TARGET_FILE:lapse> ${kind})
    set_tests_properties(integration.symbols_recording_${kind} PROPERTIES LABELS integration TIMEOUT 240
        SKIP_RETURN_CODE 77)
endforeach()
foreach(kind java luajit python)
    set_tests_properties(integration.symbols_recording_${kind} PROPERTIES LABELS "integration;long")
endforeach()
