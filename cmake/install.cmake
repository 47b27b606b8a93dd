# SPDX-License-Identifier: MIT
# Installed: the library, the command, the two headers, lapse.pc and a CMake package.
