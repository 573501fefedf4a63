# cmake -DPORT_DIR=DIR -DWORK=DIR [-DFEATURES=LIST] -P vcpkg.cmake: runs a port's portfile without
# vcpkg. The functions of vcpkg that it calls stand below: they build and install with CMake as
# vcpkg's do, for the release configuration alone, and refuse what they do not know. What vcpkg
# corrects in CMake packages and pkg-config files they only look for.
cmake_minimum_required(VERSION 3.19)

file(READ "${PORT_DIR}/vcpkg.json" manifest)
string(JSON PORT GET "${manifest}" name)
string(JSON VERSION GET "${manifest}" version)
set(CURRENT_PORT_DIR "${PORT_DIR}")
set(CURRENT_PACKAGES_DIR "${WORK}/packages")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}" "${WORK}/sources")

# parsed(ONE MANY ARGUMENT...): sets arg_NAME for each argument's name.
macro(parsed one many)
  cmake_parse_arguments(arg "" "${one}" "${many}" ${ARGN})
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "not known: ${arg_UNPARSED_ARGUMENTS}")
  endif()
endmacro()

function(run)
  execute_process(COMMAND ${ARGN}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}:\n${output}")
  endif()
endfunction()

function(must_exist)
  foreach(path IN LISTS ARGN)
    if(NOT EXISTS "${path}")
      message(FATAL_ERROR "${path} is not there")
    endif()
  endforeach()
endfunction()

function(vcpkg_extract_source_archive result)
  parsed("ARCHIVE" "" ${ARGN})
  file(ARCHIVE_EXTRACT INPUT "${arg_ARCHIVE}" DESTINATION "${WORK}/sources")
  file(GLOB folder "${WORK}/sources/*")
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

function(vcpkg_check_features)
  parsed("OUT_FEATURE_OPTIONS" "FEATURES" ${ARGN})
  list(GET arg_FEATURES 0 feature)
  list(GET arg_FEATURES 1 option)
  string(JSON described GET "${manifest}" features "${feature}" description)
  set(value OFF)
  if(feature IN_LIST FEATURES)
    set(value ON)
  endif()
  set(${arg_OUT_FEATURE_OPTIONS} "-D${option}=${value}" PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  parsed("SOURCE_PATH" "OPTIONS" ${ARGN})
  must_exist("${arg_SOURCE_PATH}/CMakeLists.txt")
  run("${CMAKE_COMMAND}" -S "${arg_SOURCE_PATH}" -B "${WORK}/build" -G Ninja
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_INSTALL_PREFIX=${CURRENT_PACKAGES_DIR}"
    -DCMAKE_INSTALL_LIBDIR=lib ${arg_OPTIONS})
endfunction()

function(vcpkg_cmake_install)
  run("${CMAKE_COMMAND}" --build "${WORK}/build" --target install)
endfunction()

function(vcpkg_cmake_config_fixup)
  parsed("CONFIG_PATH" "" ${ARGN})
  must_exist("${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH}/${PORT}Config.cmake")
endfunction()

function(vcpkg_fixup_pkgconfig)
  must_exist("${CURRENT_PACKAGES_DIR}/lib/pkgconfig/${PORT}.pc")
endfunction()

function(vcpkg_install_copyright)
  parsed("" "FILE_LIST" ${ARGN})
  must_exist(${arg_FILE_LIST})
endfunction()

include("${PORT_DIR}/portfile.cmake")
must_exist("${CURRENT_PACKAGES_DIR}/share/${PORT}/usage" "${CURRENT_PACKAGES_DIR}/include/tslab.h")
