# SPDX-License-Identifier: MIT
# A loaded server for minutes: throughput and memory.
if(TARGET lapse_shared AND NOT LAPSE_SANITIZE_THREAD AND NOT LAPSE_SANITIZE_ADDRESS)
    add_test(NAME stress.soak COMMAND ${CMAKE_CURRENT_LIST_DIR}/soak.sh $<TARGET_FILE:lapse_shared> 15)
    set_tests_properties(stress.soak PROPERTIES LABELS "stress;long" TIMEOUT 1200 SKIP_RETURN_CODE 77)
endif()
