# SPDX-License-Identifier: MIT
# Programs under LD_PRELOAD: totals, shares, threads, allocation, options.
if(TARGET lapse_shared)
    set(preload_folder ${PROJECT_BINARY_DIR}/tests/integration)
    foreach(source shares.c threads.c own_malloc.c forks.c raw_signal.c exceptions.cc)
        get_filename_component(name ${source} NAME_WE)
        add_executable(preload-${name} preload/${source})
        set_target_properties(preload-${name} PROPERTIES OUTPUT_NAME ${name}
            RUNTIME_OUTPUT_DIRECTORY ${preload_folder})
        target_compile_options(preload-${name} PRIVATE -O2 -fomit-frame-pointer -fno-builtin-malloc)
        target_link_libraries(preload-${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
    endforeach()
    set(preload_cases sqlite xz python exceptions shares nothing malloc late living exits outlives own_frames fast options messages raw_signal raw_threads before)
    set(preload_long_cases living_5000 short cgo gperftools)
    foreach(case ${preload_cases} ${preload_long_cases})
        add_test(NAME integration.preload_${case}
            COMMAND python3 ${CMAKE_CURRENT_SOURCE_DIR}/preload/check.py ${case}
                $<TARGET_FILE:lapse_shared> ${preload_folder})
        set_tests_properties(integration.preload_${case} PROPERTIES LABELS integration TIMEOUT 120
            SKIP_RETURN_CODE 77)
    endforeach()
    foreach(case ${preload_long_cases})
        set_tests_properties(integration.preload_${case} PROPERTIES LABELS "integration;long")
    endforeach()
endif()
