# Headers, libraries, manual pages, a CMake package, pkg-config files and tslab-config, in the
# standard places; the command as well, with what shells complete its words by, once
# tools/tslab/build has made it.
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/tslab")

install(TARGETS tslab tslab_preload tslab_static EXPORT tslabTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT runtime NAMELINK_COMPONENT development
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT development)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  COMPONENT development FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(EXPORT tslabTargets NAMESPACE tslab:: DESTINATION "${package_dir}" COMPONENT development)

configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/tslabConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/tslabConfig.cmake" INSTALL_DESTINATION "${package_dir}"
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/tslabConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/tslabConfig.cmake" "${PROJECT_BINARY_DIR}/tslabConfigVersion.cmake"
  DESTINATION "${package_dir}" COMPONENT development)

# way_up(RESULT FOLDER): the way from a folder of the prefix to the prefix.
function(way_up result folder)
  file(RELATIVE_PATH up "/${folder}" "/")
  string(REGEX REPLACE "/$" "" up "${up}")
  set(${result} "${up}" PARENT_SCOPE)
endfunction()

# The prefix follows from where the file lies, so that the installed tree may be moved.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  way_up(up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  set(pc_prefix "\${pcfiledir}/${up}")
endif()
foreach(dir IN ITEMS LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${dir}}")
    set(pc_${dir} "${CMAKE_INSTALL_${dir}}")
  else()
    set(pc_${dir} "\${prefix}/${CMAKE_INSTALL_${dir}}")
  endif()
endforeach()
# As tslab::tslab, tslab::preload and tslab::static; why: src/CMakeLists.txt.
set(pc_libs_tslab "-ltslab")
set(pc_libs_tslab-preload "-Wl,--push-state,--no-as-needed -ltslab-preload -Wl,--pop-state")
set(pc_libs_tslab-static "-Wl,--undefined=malloc -l:libtslab.a -pthread")
set(pc_what_tslab "tslab_* beside another malloc")
set(pc_what_tslab-preload "malloc and tslab_*")
set(pc_what_tslab-static "malloc and tslab_*, linked statically")
set(pc_secure OFF)
if(TSLAB_SECURE)
  set(pc_secure ON)
endif()
foreach(pc_name IN ITEMS tslab tslab-preload tslab-static)
  set(pc_libs "${pc_libs_${pc_name}}")
  set(pc_what "${pc_what_${pc_name}}")
  configure_file("${CMAKE_CURRENT_LIST_DIR}/tslab.pc.in" "${PROJECT_BINARY_DIR}/${pc_name}.pc"
    @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${pc_name}.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT development)
endforeach()

# Its prefix follows from where it lies as well.
if(IS_ABSOLUTE "${CMAKE_INSTALL_BINDIR}")
  set(config_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  way_up(up "${CMAKE_INSTALL_BINDIR}")
  set(config_prefix "$(cd \"$(dirname \"$(readlink -f \"$0\")\")/${up}\" && pwd)")
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/tslab-config.in" "${PROJECT_BINARY_DIR}/tslab-config"
  @ONLY)
install(PROGRAMS "${PROJECT_BINARY_DIR}/tslab-config" TYPE BIN COMPONENT development)

set(command "${PROJECT_BINARY_DIR}/cargo/release/tslab")
install(PROGRAMS "${command}" TYPE BIN COMPONENT tools OPTIONAL)

# The command itself writes its completions: they are those of what is installed.
foreach(place IN ITEMS
    bash-completion/completions/tslab fish/vendor_completions.d/tslab.fish
    zsh/site-functions/_tslab)
  string(REGEX MATCH "^[a-z]+" shell "${place}")
  set(completions "${PROJECT_BINARY_DIR}/completions/${place}")
  get_filename_component(folder "${place}" DIRECTORY)
  install(CODE "set(command [[${command}]])\nset(shell ${shell})\nset(file [[${completions}]])"
    COMPONENT tools)
  install(SCRIPT "${CMAKE_CURRENT_LIST_DIR}/Completions.cmake" COMPONENT tools)
  install(FILES "${completions}" DESTINATION "${CMAKE_INSTALL_DATADIR}/${folder}"
    COMPONENT tools OPTIONAL)
endforeach()

install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/man/" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
  COMPONENT tools FILES_MATCHING PATTERN "*.1")
install(FILES "${PROJECT_SOURCE_DIR}/docs/man/tslab.3" DESTINATION "${CMAKE_INSTALL_MANDIR}/man3"
  COMPONENT development)

# Each function's page is the one of the interface.
file(STRINGS "${PROJECT_SOURCE_DIR}/include/tslab.h" prototypes REGEX "^TSLAB_API ")
foreach(prototype IN LISTS prototypes)
  string(REGEX MATCH "(tslab_[a-z_]+)\\(" name "${prototype}")
  set(alias "${PROJECT_BINARY_DIR}/man/${CMAKE_MATCH_1}.3")
  file(WRITE "${alias}" ".so man3/tslab.3\n")
  install(FILES "${alias}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man3" COMPONENT development)
endforeach()
