# SPDX-License-Identifier: MIT
# Code that runs in the signal handler needs nothing but what is listed, with reasons.
if(TARGET lapse_unwind AND TARGET lapse_runtime AND NOT LAPSE_SANITIZE_ADDRESS AND NOT LAPSE_SANITIZE_THREAD)
    add_test(NAME integration.signal_symbols
        COMMAND ${CMAKE_CURRENT_LIST_DIR}/signal_symbols.sh ${CMAKE_CURRENT_LIST_DIR}/signal_symbols.txt
            $<TARGET_OBJECTS:lapse_unwind> $<TARGET_OBJECTS:lapse_runtime>
        COMMAND_EXPAND_LISTS)
    set_tests_properties(integration.signal_symbols PROPERTIES LABELS integration)
endif()
