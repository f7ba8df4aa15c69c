# `cmake --install`: the library, its headers under include/tessera/<room>/, and the package that find_package(tessera)
# reads; apps/ adds the programs. Headers that only kernels include (*_kernels.h, simd.h) stay at home.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)
install(TARGETS tessera EXPORT tesseraTargets)
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION ${package_dir})

foreach(room IN LISTS TESSERA_ROOMS)
  if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/${room})
    install(DIRECTORY ${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tessera
      FILES_MATCHING PATTERN "*.h" PATTERN "*_kernels.h" EXCLUDE PATTERN "simd.h" EXCLUDE)
  endif()
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tesseraConfig.cmake.in
  ${PROJECT_BINARY_DIR}/tesseraConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tesseraConfig.cmake ${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake
  DESTINATION ${package_dir})
