# The same compiler with musl instead of glibc, which tools/musl-aarch64 unpacks.
include("${CMAKE_CURRENT_LIST_DIR}/aarch64.cmake")
get_filename_component(musl "${CMAKE_CURRENT_LIST_DIR}/../../build/musl-aarch64" ABSOLUTE)
if(NOT EXISTS "${musl}/musl-gcc.specs")
  message(FATAL_ERROR "no musl for AArch64 here; run tools/musl-aarch64")
endif()
set(CMAKE_C_FLAGS_INIT "-specs=${musl}/musl-gcc.specs")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L "${musl}")
