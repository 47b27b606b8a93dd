# SPDX-License-Identifier: MIT
# Cost of one sample: lapse's walker and its whole handler beside an empty handler, unw_backtrace and gperftools.
if(TARGET lapse_unwind)
    pkg_check_modules(LIBUNWIND REQUIRED IMPORTED_TARGET libunwind)
    add_executable(bench_handler ${CMAKE_CURRENT_LIST_DIR}/handler.c)
    set_target_properties(bench_handler PROPERTIES OUTPUT_NAME handler
        RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
    target_link_libraries(bench_handler PRIVATE lapse_unwind iberty PkgConfig::LIBUNWIND
        Threads::Threads ${CMAKE_DL_LIBS})
    if(TARGET lapse_shared)
        add_dependencies(bench_handler lapse_shared) # opened at run time
    endif()
endif()
