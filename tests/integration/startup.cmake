# SPDX-License-Identifier: MIT
# A bound on the cost of start and end that only a real regression passes; bench/startup has the figures.
if(TARGET bench-startup)
    add_test(NAME integration.startup COMMAND bench-startup $<TARGET_FILE:lapse_shared> 100 3000 8192)
    set_tests_properties(integration.startup PROPERTIES LABELS integration TIMEOUT 60)
endif()
