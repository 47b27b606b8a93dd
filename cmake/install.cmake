# SPDX-License-Identifier: MIT
# Installed: the library, the command, the two headers, lapse.pc, a CMake package and the man pages.
# `cpack -G DEB` makes a Debian package of the same.
include(CMakePackageConfigHelpers)

set_target_properties(lapse_shared PROPERTIES EXPORT_NAME shared)
set_target_properties(lapse_static PROPERTIES EXPORT_NAME static)
set_target_properties(lapse_static_program PROPERTIES EXPORT_NAME static_program)
target_include_directories(lapse_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_include_directories(lapse_static INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

install(TARGETS lapse_shared lapse_static lapse_static_program EXPORT lapse
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS lapse RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${PROJECT_BINARY_DIR}/static.options DESTINATION ${CMAKE_INSTALL_LIBDIR}/lapse)
install(DIRECTORY include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES docs/lapse.proto DESTINATION ${CMAKE_INSTALL_DATADIR}/lapse)
install(FILES docs/man/lapse.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES docs/man/lapse.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/lapse)
install(EXPORT lapse NAMESPACE lapse:: DESTINATION ${package_dir})
configure_package_config_file(cmake/lapseConfig.cmake.in ${PROJECT_BINARY_DIR}/lapseConfig.cmake
    INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lapseConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/lapseConfig.cmake ${PROJECT_BINARY_DIR}/lapseConfigVersion.cmake
    DESTINATION ${package_dir})
# Relative to where lapse.pc is found, so that the installation can be moved.
file(RELATIVE_PATH LAPSE_PC_TO_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/lapse.pc.in ${PROJECT_BINARY_DIR}/lapse.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/lapse.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_PACKAGE_NAME lapse)
set(CPACK_PACKAGE_CONTACT "the lapse authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "sampling profiler that lives inside the process it profiles")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libunwind8")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_GENERATOR DEB)
include(CPack)
