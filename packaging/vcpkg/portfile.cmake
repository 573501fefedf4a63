# Builds a release's tarball that lies beside this port; without one the sources that the port is a
# part of.
set(tarball "${CURRENT_PORT_DIR}/tslab-${VERSION}.tar.gz")
if(EXISTS "${tarball}")
  vcpkg_extract_source_archive(SOURCE_PATH ARCHIVE "${tarball}")
else()
  get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)
endif()

# The package has the shared libraries and the archive, whatever the triplet wants: which of them a
# program links says whether its malloc is replaced.
set(VCPKG_POLICY_DLLS_IN_STATIC_LIBRARY enabled)

vcpkg_check_features(OUT_FEATURE_OPTIONS features FEATURES secure TSLAB_SECURE)
vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${features} -DTSLAB_TESTS=OFF -DTSLAB_EXAMPLES=OFF -DTSLAB_BENCH=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/tslab)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(INSTALL "${CURRENT_PORT_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE-MIT" "${SOURCE_PATH}/LICENSE-APACHE")
