# How tests run under an emulator (CMAKE_CROSSCOMPILING_EMULATOR: qemu's user-mode emulator), and
# the one list of those that do not.

# For the whole program: ctest lists them as disabled.
set(emulator_lacks
  # Silence: it adds a line of its own to stderr when a signal ends a program.
  unit.check_test
  unit.options_test
  # A fork among threads: it stops in its own `cpu == current_cpu`.
  unit.fork_test unit.fork_epochs_test
  # Refusals of madvise, and RLIMIT_AS, which counts the emulator's own addresses.
  unit.os_linux_test unit.os_map_test unit.os_share_test
  api.new_handler_frees.preload api.new_handler_frees.archive
  # A moved mapping in /proc/self/maps.
  unit.os_move_test
  # The number of threads in /proc/self/task: it has some of its own.
  unit.helper_test
  # Return addresses where x86-64 has them: such stacks are not recalled elsewhere.
  unit.sites_fake_test
  # Resident memory, of which the kernel counts the emulator's own, and mincore.
  api.aligned.preload api.aligned.archive api.prefixed.alone api.prefixed.preload
  api.epoch_memory_in_c.preload api.epoch_memory_in_c.archive
  api.realloc_moves.preload api.realloc_moves.archive
  # A place whose pages moved away and which stays mapped (MREMAP_DONTUNMAP): it takes that for
  # unmapped, and ends the program that uses it again.
  api.realloc.preload api.realloc.archive api.realloc.static
  # Programs that run with raised privileges.
  api.privileged
  # A /proc/PID/stat of another process that agrees with that process's own.
  api.statistics_in_c.preload api.statistics_in_c.archive
  # Quick starts: a hundred programs each, which run once, preloaded.
  api.misuse.archive api.epoch_misuse_in_c.archive api.options.archive)

# With pages larger than the machine's (preset aarch64-64k leaves out the label not-64k).
set(emulator_lacks_with_large_pages
  # Memory up to the end of the last page of the dynamic linker, which lays thread variables there.
  unit.label_test
  # A mincore that writes a byte for each page: it writes one for each of the machine's.
  api.glibc_control.preload api.glibc_control.archive
  api.stats_in_c.preload api.stats_in_c.archive)

# The variable that preloads a library into an emulated program, not into the emulator.
set(test_preload_variable LD_PRELOAD)
# The words that start a program, as C strings with a comma behind each.
set(test_emulator)
if(CMAKE_CROSSCOMPILING_EMULATOR)
  set(test_preload_variable QEMU_SET_ENV=LD_PRELOAD)
  list(TRANSFORM CMAKE_CROSSCOMPILING_EMULATOR REPLACE "(.+)" "\"\\1\"," OUTPUT_VARIABLE words)
  list(JOIN words "" test_emulator)
endif()

# test_emulated(NAME): what the emulator lacks for a test.
function(test_emulated name)
  if(NOT CMAKE_CROSSCOMPILING_EMULATOR)
    return()
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
  string(REGEX REPLACE "_static$" "" plain "${name}")
  if(plain IN_LIST emulator_lacks)
    set_tests_properties(${name} PROPERTIES DISABLED ON)
  elseif(plain IN_LIST emulator_lacks_with_large_pages)
    set_property(TEST ${name} APPEND PROPERTY LABELS not-64k)
  endif()
endfunction()
