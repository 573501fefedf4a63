# What the suites of whole programs share: how they are compiled, and how they meet the library.

# A program in which the compiler does not know what malloc means: every call is made as written.
function(test_program name)
  add_executable(${name} ${ARGN})
  set_target_properties(${name} PROPERTIES
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS ON
    CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS ON)
  target_compile_definitions(${name} PRIVATE
    _GNU_SOURCE TSL_SECURE=$<BOOL:${TSLAB_SECURE}> "TEST_EMULATOR=${test_emulator}")
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
  # Misuse and impossible sizes are what these programs are about.
  target_compile_options(${name} PRIVATE -fno-builtin -Wno-free-nonheap-object
    $<$<COMPILE_LANGUAGE:CXX>:-fsized-deallocation>
    $<$<C_COMPILER_ID:GNU>:
      -Wno-alloc-size-larger-than -Wno-use-after-free -Wno-stringop-overflow>)
  # The library is compiled as ever. The release compiles the tests so, too, for the warnings; in
  # the other builds that takes half of the time.
  if(NOT TSLAB_ONCE_TESTS)
    target_compile_options(${name} PRIVATE -Og)
  endif()
  # Lazy binding would put the loader's frames on the smallest stacks.
  target_link_options(${name} PRIVATE LINKER:-z,now)
  target_link_libraries(${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  tslab_warnings(${name})
endfunction()

# test_entry(NAME LABEL SECONDS COMMAND...): a ctest entry that may say it had to skip. Those that
# may take longest begin first.
function(test_entry name label seconds)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES
    LABELS ${label} TIMEOUT ${seconds} COST ${seconds} SKIP_RETURN_CODE 77)
  test_emulated(${name})
endfunction()

# TSLAB_TEST_PRELOAD names another allocator to hold to the same tests.
set(TSLAB_TEST_PRELOAD "$<TARGET_FILE:tslab_preload>"
  CACHE STRING "Library that the tests preload")

# What the loader says of a library that it leaves out.
set(not_preloaded "cannot be preloaded")

# test_entry_preloaded(NAME LABEL SECONDS PROGRAM [ARGUMENT...]): the entry runs with the library
# preloaded.
function(test_entry_preloaded name label seconds)
  test_entry(${name} ${label} ${seconds} ${ARGN})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "${test_preload_variable}=${TSLAB_TEST_PRELOAD}"
    FAIL_REGULAR_EXPRESSION "${not_preloaded}")
endfunction()
