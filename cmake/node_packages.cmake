# SPDX-License-Identifier: MIT
# Installs the packages of FROM into the folder TO with NPM, unless that has been done.
file(SHA256 ${FROM} wanted)
set(mark ${TO}/installed)
if(EXISTS ${mark})
    file(READ ${mark} installed)
    if(installed STREQUAL wanted)
        return()
    endif()
endif()
file(MAKE_DIRECTORY ${TO})
file(COPY ${FROM} DESTINATION ${TO})
execute_process(COMMAND ${NPM} install --ignore-scripts --no-audit --no-fund --no-package-lock
    WORKING_DIRECTORY ${TO} RESULT_VARIABLE result)
if(result)
    message(FATAL_ERROR "npm could not install the packages of ${FROM}")
endif()
file(WRITE ${mark} ${wanted})
