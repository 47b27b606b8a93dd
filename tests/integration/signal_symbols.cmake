# SPDX-License-Identifier: MIT
# Code that runs in the signal handler needs nothing but what is listed, with reasons.
foreach(part unwind)
    if(TARGET lapse_${part} AND NOT LAPSE_SANITIZE_ADDRESS AND NOT LAPSE_SANITIZE_THREAD)
        add_test(NAME integration.signal_symbols_${part}
            COMMAND ${CMAKE_CURRENT_LIST_DIR}/signal_symbols.sh ${CMAKE_CURRENT_LIST_DIR}/signal_symbols.txt
                $<TARGET_OBJECTS:lapse_${part}>
            COMMAND_EXPAND_LISTS)
        set_tests_properties(integration.signal_symbols_${part} PROPERTIES LABELS integration)
    endif()
endforeach()
