# SPDX-License-Identifier: MIT
# Hosts and real programs under memcheck, lapse preloaded: one in each run of the tests, more in the long one.
if(TARGET lapse_shared AND TARGET host-errno_kept AND NOT LAPSE_SANITIZE_THREAD AND NOT LAPSE_SANITIZE_ADDRESS)
    set(check ${CMAKE_CURRENT_LIST_DIR}/valgrind.sh $<TARGET_FILE:lapse_shared> ${PROJECT_BINARY_DIR}/tests/hosts)
    add_test(NAME stress.valgrind COMMAND ${check} errno_kept)
    set_tests_properties(stress.valgrind PROPERTIES LABELS stress TIMEOUT 120 SKIP_RETURN_CODE 77)
    add_test(NAME stress.valgrind_hosts COMMAND ${check} coroutine fork_threads
        recursion_deep frame_pointer_data -- python3 -c "import json\nfor i in range(30): json.loads(json.dumps([list(range(500))]*5))\nprint(1)")
    add_test(NAME stress.valgrind_sort COMMAND ${check} -- sort -r --parallel=2 ${PROJECT_BINARY_DIR}/compile_commands.json)
    add_test(NAME stress.valgrind_xz COMMAND ${check} -- xz -T2 -1 -c $<TARGET_FILE:lapse_shared>)
    set_tests_properties(stress.valgrind_hosts stress.valgrind_sort stress.valgrind_xz PROPERTIES LABELS "stress;long"
        TIMEOUT 900 SKIP_RETURN_CODE 77)
endif()
