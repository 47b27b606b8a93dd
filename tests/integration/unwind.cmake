# SPDX-License-Identifier: MIT
# The walker against libunwind's own unw_step: addresses of some libraries on a made-up stack,
# and running programs at random moments.
if(TARGET lapse_unwind)
    pkg_check_modules(LIBUNWIND REQUIRED IMPORTED_TARGET libunwind)
    add_executable(unwind_sweep unwind_sweep.c)
    target_link_libraries(unwind_sweep PRIVATE lapse_unwind iberty PkgConfig::LIBUNWIND ${CMAKE_DL_LIBS})
    foreach(case "unwind_sweep;29;integration" "unwind_sweep_all;7;integration,long")
        list(GET case 0 name)
        list(GET case 1 step)
        list(GET case 2 labels)
        string(REPLACE "," ";" labels "${labels}")
        add_test(NAME integration.${name} COMMAND unwind_sweep ${step}
            libc.so.6 libstdc++.so.6 libcrypto.so.3 libsqlite3.so.0 libpython3.11.so.1.0)
        set_tests_properties(integration.${name} PROPERTIES LABELS "${labels}" TIMEOUT 300 SKIP_RETURN_CODE 77)
    endforeach()

    add_executable(unwind_threads unwind_threads.c)
    target_link_libraries(unwind_threads PRIVATE lapse_unwind iberty Threads::Threads ${CMAKE_DL_LIBS})
    add_test(NAME integration.unwind_threads COMMAND unwind_threads 1500)
    set_tests_properties(integration.unwind_threads PROPERTIES LABELS integration TIMEOUT 60)

    add_library(unwind_remnant SHARED unwind_remnant.c)
    target_compile_options(unwind_remnant PRIVATE -O2 -fno-omit-frame-pointer -fno-asynchronous-unwind-tables
        -fno-unwind-tables -fno-toplevel-reorder)
    add_executable(unwind_stepping unwind_stepping.c unwind_throw.cc)
    target_compile_options(unwind_stepping PRIVATE -O2 -fomit-frame-pointer -mno-red-zone)
    target_link_libraries(unwind_stepping PRIVATE unwind_remnant lapse_unwind iberty Threads::Threads ${CMAKE_DL_LIBS})
    target_link_options(unwind_stepping PRIVATE -Wl,-z,lazy)
    add_test(NAME integration.unwind_stepping COMMAND unwind_stepping)
    set_tests_properties(integration.unwind_stepping PROPERTIES LABELS integration TIMEOUT 120 SKIP_RETURN_CODE 77)

    add_library(unwind_probe SHARED unwind_probe.c)
    target_link_libraries(unwind_probe PRIVATE lapse_unwind iberty PkgConfig::LIBUNWIND Threads::Threads
        ${CMAKE_DL_LIBS})
    target_link_options(unwind_probe PRIVATE -Wl,-z,now)

    # Percentages that must agree and that must reach the root.
    function(compare_unwinding name agree root)
        add_test(NAME integration.unwind_${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/unwind_compare.sh
            $<TARGET_FILE:unwind_probe> ${agree} ${root} ${ARGN})
        set_tests_properties(integration.unwind_${name} PROPERTIES LABELS integration TIMEOUT 120
            SKIP_RETURN_CODE 77)
    endfunction()

    foreach(variant "o0;-O0" "o2;-O2" "o3;-O3" "o2_omit;-O2;-fomit-frame-pointer" "o2_keep;-O2;-fno-omit-frame-pointer"
            "o3_avx2;-O3;-mavx2;-mstackrealign" "o2_cet;-O2;-fcf-protection")
        list(POP_FRONT variant name)
        add_executable(unwind_program_${name} unwind_program.cc)
        target_compile_options(unwind_program_${name} PRIVATE ${variant} -w)
        compare_unwinding(${name} 99.9 99 $<TARGET_FILE:unwind_program_${name}> 1500)
    endforeach()
    compare_unwinding(python3 99.9 99 python3 -c
        "import json,re\nfor n in range(40):\n  d={str(i):[i]*9 for i in range(3000)}; s=json.dumps(d); json.loads(s); re.findall('[0-9]+1',s); sorted(d,reverse=True)")
    compare_unwinding(sqlite3 99.9 99 sqlite3 :memory:
        "with recursive t(i) as (select 1 union all select i+1 from t where i<700) select count(*), sum(a.i*b.i%7) from t a, t b where (a.i*b.i)%13<5")
    compare_unwinding(openssl 99 90 openssl speed -seconds 1 -bytes 1024 sha256 aes-128-cbc ecdsap256 rsa2048)
endif()
