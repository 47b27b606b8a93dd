# SPDX-License-Identifier: MIT
add_compile_options(-Wall -Wextra -Wshadow -Wpointer-arith -Wvla
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
if(LAPSE_WERROR)
    add_compile_options(-Werror)
endif()
